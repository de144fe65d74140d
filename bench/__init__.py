"""Measurements: each a ratio within one run, against the limit that this machine sets. See ``bench/__main__.py``."""

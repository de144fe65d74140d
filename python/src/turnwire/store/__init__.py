"""Stores: where the logs of sessions lie. ``base`` is the protocol, each other module one implementation."""

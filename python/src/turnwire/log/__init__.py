"""The log: admission of entries, their digests, the order of places, and the folded history."""

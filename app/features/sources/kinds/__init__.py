"""The kinds of sources, by name."""

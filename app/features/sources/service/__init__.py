"""The use cases of sources."""

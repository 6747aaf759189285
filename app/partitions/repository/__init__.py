"""Repository."""

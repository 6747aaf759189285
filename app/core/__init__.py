"""TODO: what this wing is for."""

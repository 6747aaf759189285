"""Commands for datasets and their rows."""

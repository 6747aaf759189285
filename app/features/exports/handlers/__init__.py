"""HTTP: exports, their runs and their files."""

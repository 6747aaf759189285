"""HTTP: writes, uploads and explanations."""

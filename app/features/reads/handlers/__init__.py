"""HTTP: pages of rows, read jobs and their results."""

"""What joins of a view compare: how different columns are, and whether a join compares all pairs of rows."""

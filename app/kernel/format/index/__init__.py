"""What is known of the rows of a file without reading them: deletion vectors, key indexes, bounds of columns."""

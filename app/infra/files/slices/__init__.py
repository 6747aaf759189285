"""File slices: the live rows of a file group, read, merged with incoming rows or logs, sorted, spilled and compared."""

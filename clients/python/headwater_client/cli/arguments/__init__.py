"""What arguments mean: times, positions, versions, columns, and files that are read."""

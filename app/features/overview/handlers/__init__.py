"""HTTP: files, partitions and statistics of a version."""

"""Pages of rows, read jobs in the API, and their runs in the worker."""

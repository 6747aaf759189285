"""Views in the API, and their refreshes in the worker."""

"""HTTP: requests for compactions and clusterings."""

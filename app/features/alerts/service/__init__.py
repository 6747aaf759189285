"""Use cases of the health of the service."""

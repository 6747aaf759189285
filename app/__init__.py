"""Headwater: the service behind the REST API."""

"""Openapi."""

"""Lookups."""

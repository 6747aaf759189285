"""Verifications."""

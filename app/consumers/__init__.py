"""Consumers."""

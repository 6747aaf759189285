"""Changelog."""

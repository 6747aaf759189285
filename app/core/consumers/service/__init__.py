"""Positions of readers in the API, and the worker's loop over followers."""

"""The fault of a text that should be a type."""

from __future__ import annotations


class TypeSyntaxError(ValueError):
    """The text is not a data type; the message says what was expected and where."""

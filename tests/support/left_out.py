"""Tests that CI leaves out: a target of the Makefile sets a variable, and runs all."""

from __future__ import annotations

import os

import pytest


def left_out(variable: str, target: str) -> pytest.MarkDecorator:
    """The mark of tests that run only if the environment variable is `long`, as `make TARGET` sets it."""
    return pytest.mark.skipif(os.environ.get(variable) != "long", reason=f"`make {target}` runs it")

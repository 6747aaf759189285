"""docs/clients.md against the methods of the Python client."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from headwater_client import Headwater

_DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "clients.md"
_OTHERS: Final = {"close", "from_environment", "read_scan_part_range", "scan_unless_job"}
"""The lifetime of a client, which its examples show, and what tables for other libraries call."""


def test_every_method_of_the_client_is_named():
    named = set(re.findall(r"`(?:headwater\.)?(\w+)", _DOCUMENT.read_text()))
    methods = {name for name in dir(Headwater) if not name.startswith("_")}
    assert sorted(methods - named - _OTHERS) == []

"""An issuer for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.issuer import LocalIssuer, running_issuer


@pytest.fixture
def issuer() -> Iterator[LocalIssuer]:
    with running_issuer() as running:
        yield running

"""What a refused connection discloses, to a tenant and to the operator."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable

import pytest

from app.infra.outbound.addresses import AddressRefused, Rules
from app.infra.outbound.connector import Connector

HOST = "db.internal.example"


def _not_found(host: str, port: int) -> list[str]:
    raise socket.gaierror("Name or service not known")


def _not_a_name(host: str, port: int) -> list[str]:
    raise UnicodeError("label too long")


@pytest.mark.parametrize(
    ("resolve", "logged"),
    [
        (_not_found, "Name or service not known"),
        (_not_a_name, "label too long"),
        (lambda host, port: [], "none"),
        (lambda host, port: ["10.7.0.9"], "10.7.0.9"),
        (lambda host, port: ["8.8.8.8", "fd00::7"], "8.8.8.8, fd00::7"),
    ],
    ids=["no such name", "no name", "no address", "internal", "public and internal"],
)
def test_refusal_does_not_disclose_whether_an_internal_name_exists(
    resolve: Callable[[str, int], list[str]], logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    connector = Connector(rules=Rules(), resolve=resolve)
    target = connector.rules.target(f"https://{HOST}:5432/")
    with caplog.at_level(logging.INFO), pytest.raises(AddressRefused) as refusal:
        connector.addresses(target, 5.0)
    assert str(refusal.value) == (
        f"{HOST} could not be looked up, or is a private address; the operator can add it to HEADWATER_WEBHOOK_ALLOW"
    )
    # The operator reads the reason.
    assert [logged in message and HOST in message for message in caplog.messages] == [True]

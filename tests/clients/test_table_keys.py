"""`headwater table-keys rotate`: which keys are accepted after it."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import pytest

from app.features.objects.service import secrets
from tests.support.service import Service
from tests.support.tables_in_s3 import TableClient, error_code, table_client
from tests.support.waiting import until


def rotate(service: Service, *options: str) -> str:
    settings = service.settings
    ran = subprocess.run(
        [sys.executable, "-m", "clients.cli", "table-keys", "rotate", *options],
        env={
            **os.environ,
            "HEADWATER_DATABASE_URL": settings.database_url,
            "HEADWATER_REDIS_URL": settings.redis_url,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_keys_of_before_are_accepted_until_they_are_revoked(
    service: Service, api_key: str, orders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert orders

    def table() -> TableClient:
        return table_client(service, api_key, "orders")

    def status(table: TableClient) -> int:
        # A table without a version has no files: 404 is the answer to a key that is accepted.
        return table.get("data/none").status_code

    # Processes read the secrets again sooner.
    monkeypatch.setattr(secrets, "FRESH_SECONDS", 1.5)
    before = table()
    assert "stay valid" in rotate(service)
    between = table()
    assert between.key.access_key_id != before.key.access_key_id
    assert status(between) == status(before) == 404
    assert "refused in" in rotate(service, "--revoke")
    assert status(table()) == 404
    for earlier in (before, between):
        until(partial(_is_refused, earlier), "the refusal of the key")
    assert status(table()) == 404


def _is_refused(table: TableClient) -> bool:
    answer = table.get("data/none")
    return answer.status_code == 403 and error_code(answer) == "InvalidAccessKeyId"

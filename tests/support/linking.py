"""A service whose links are those of a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import app.process.api
from app.infra.files.s3.links import StorageLinks
from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.postgres import TestServer
from tests.support.service import Service, running_service, settings_for


@contextmanager
def linking_service(
    postgres: TestServer, redis: EmbeddedValkey, folder: Path, *, prefix: str
) -> Iterator[Service]:
    """Its files are in the folder: no link leads to one. `prefix`: of the keys in the bucket."""
    made = StorageLinks(
        endpoint="https://s3.example.com", bucket="bucket", prefix=prefix, region="us-east-1", seconds=60
    )
    with ExitStack() as stack:
        name = stack.enter_context(postgres.fresh_database())
        settings = settings_for(postgres.application_url(name), postgres.admin_url(name), redis.url, folder)
        with pytest.MonkeyPatch.context() as patch:
            # Of this service only: others are composed later.
            patch.setattr(app.process.api, "storage_links", lambda *_, **__: made)
            service = stack.enter_context(running_service(settings))
        patched = stack.enter_context(pytest.MonkeyPatch.context())
        patched.setenv("AWS_ACCESS_KEY_ID", "key-id")
        patched.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        yield service

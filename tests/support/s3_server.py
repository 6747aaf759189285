"""A real S3 server, which tests kill and start."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import httpx2
import pytest

from app.infra.files.storage import open_storage
from app.infra.runtime.loopback import LOOPBACK, free_port
from tests.support.waiting import until


class S3Server:
    """An S3 server on a folder."""

    def __init__(self, program: Path, folder: str, port: int) -> None:
        self._program, self._folder, self._port = program, folder, port
        self.process = self._started()

    @classmethod
    @contextmanager
    def running(cls, program: Path) -> Iterator[Self]:
        """A server, and the environment of its clients in this process."""
        port = free_port()
        with TemporaryDirectory(prefix="headwater-storage-") as folder, pytest.MonkeyPatch.context() as patch:
            for name, value in {
                "AWS_ENDPOINT_URL": f"http://{LOOPBACK}:{port}",
                "AWS_ACCESS_KEY_ID": "headwater",
                "AWS_SECRET_ACCESS_KEY": "p@ss w/rd+",
                "AWS_REGION": "us-east-1",
            }.items():
                patch.setenv(name, value)
            server = cls(program, folder, port)
            try:
                server.wait_ready()
                # Storages of other servers have the same URIs.
                open_storage.cache_clear()
                yield server
            finally:
                server.process.terminate()
                server.process.wait(30)
                open_storage.cache_clear()

    def _started(self) -> subprocess.Popen[bytes]:
        environment = {
            "ROOT_ACCESS_KEY": "headwater",
            "ROOT_SECRET_KEY": os.environ["AWS_SECRET_ACCESS_KEY"],
            "VGW_PORT": f"{LOOPBACK}:{self._port}",
            "VGW_HEALTH": "/health",
            "VGW_QUIET": "true",
        }
        return subprocess.Popen(
            [self._program, "posix", self._folder],
            env=os.environ | environment,
            cwd=Path(self._folder).parent,
        )

    def wait_ready(self) -> None:
        until(lambda: _answers(f"http://{LOOPBACK}:{self._port}/health"), "the S3 server", seconds_max=60)

    def kill_for(self, seconds: float) -> None:
        """`kill -9`, and a successor on the same folder after this time."""
        self.process.kill()
        self.process.wait(30)
        time.sleep(seconds)
        self.process = self._started()
        self.wait_ready()


def _answers(url: str) -> bool:
    try:
        return httpx2.get(url, trust_env=False).status_code == 200
    except httpx2.TransportError:
        return False

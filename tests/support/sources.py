"""Sources of tests: folders that files arrive in, and what has become of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import msgspec

from tests.support.service import Service
from tests.support.webhooks import tenant_of


@dataclass(frozen=True, kw_only=True)
class Incoming:
    """A folder below a root of sources, a client, and the service that reads the folder."""

    folder: Path
    client: httpx2.Client
    service: Service

    @classmethod
    def of(cls, client: httpx2.Client, service: Service) -> Incoming:
        """A folder of its own."""
        folder = service.settings.data_dir / "incoming" / uuid4().hex
        folder.mkdir(parents=True)
        return cls(folder=folder, client=client, service=service)

    def put(self, name: str, *rows: dict[str, Any]) -> Path:
        """A file of NDJSON, which arrives whole."""
        return self.put_bytes(name, b"".join(msgspec.json.encode(row) + b"\n" for row in rows))

    def put_bytes(self, name: str, content: bytes) -> Path:
        """A file, which arrives whole."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}")
        part.write_bytes(content)
        return part.rename(path)

    def source(self, **members: Any) -> dict[str, Any]:
        """The members of a source of the folder that reads it once."""
        config = {"path": self.folder.as_uri(), "format": "ndjson", **members.pop("config", {})}
        return {
            "name": "in",
            "dataset": "orders",
            "kind": "files",
            "config": config,
            "mode": "once",
            **members,
        }

    def register(self, **members: Any) -> str:
        """Registers a source of the folder; returns its path."""
        answer = self.client.post("/sources", json=self.source(**members))
        assert answer.status_code == 201, answer.text
        return str(answer.headers["location"])

    def run(self, path: str) -> dict[str, Any]:
        """Has all that is due done; returns the source."""
        self.service.work()
        return self.found(path)

    def plan(self, path: str) -> None:
        """Plans the round of a source that is due, and does not run it."""
        self.service.start_rounds.run(tenant_of(self.client, self.service), path.rsplit("/", 1)[1])

    def found(self, path: str) -> dict[str, Any]:
        """The source."""
        source: dict[str, Any] = self.client.get(path).json()
        return source

    def rows(self, dataset: str = "orders") -> list[dict[str, Any]]:
        """The rows of the dataset, by their text."""
        answer = self.client.get(f"/datasets/{dataset}/rows", params={"limit": 1000})
        assert answer.status_code == 200, answer.text
        return sorted(answer.json()["rows"], key=repr)

    def jobs(self, dataset: str = "orders") -> list[dict[str, Any]]:
        """The rounds of the dataset, the first one first."""
        items = self.client.get("/jobs", params={"dataset": dataset, "kind": "source_round"}).json()["items"]
        return list(reversed(items))


def notes(rows: Iterable[dict[str, Any]]) -> dict[int, Any]:
    """The notes of rows of `orders`, by id."""
    return {row["id"]: row["note"] for row in rows}

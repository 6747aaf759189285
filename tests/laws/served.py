"""Histories on datasets of a running service: each write comes in by another way."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import httpx2

from tests.laws.bodies import FORMATS, body, forms_of, records
from tests.laws.checks import Change
from tests.laws.histories import is_alone
from tests.support.service import Service
from tests.support.sources import Incoming

Json = dict[str, Any]
_WAYS: Final = ("envelope", "upload", "uploads", *FORMATS)
# They need several jobs, so a commit of its own.
_WAYS_OF_ONE: Final = (*_WAYS, "redrive", "files")
_REFUSALS: Final = ("/problems/duplicate-key", "/problems/retracted-row-missing")
_numbers = count(1)


@dataclass
class ServedDatasets:
    """Makes datasets of one tenant. `dice` chooses the ways in."""

    service: Service
    client: httpx2.Client
    dice: random.Random

    def __call__(self, registration: Json) -> ServedDataset:
        name = f"d{next(_numbers)}"
        _json(self.client.post("/datasets", json={"name": name, **registration}), 201)
        return ServedDataset(datasets=self, name=name, registration=registration)


@dataclass
class ServedDataset:
    """One dataset."""

    datasets: ServedDatasets
    name: str
    registration: Json

    @property
    def path(self) -> str:
        return f"/datasets/{self.name}"

    @property
    def client(self) -> httpx2.Client:
        return self.datasets.client

    @property
    def dice(self) -> random.Random:
        return self.datasets.dice

    @property
    def version(self) -> int:
        return int(_json(self.client.get(self.path))["version"])

    def commit(self, writes: Sequence[Json]) -> list[bool]:
        """Sends writes; those that wait at the same time are committed together."""
        jobs = [self._send(write, alone=len(writes) == 1) for write in writes]
        self.datasets.service.work()
        return [self._is_refused(job) for job in jobs]

    def serve(self, service: str) -> None:
        request = {} if service == "compact" else {"columns": ["n", "name"]}
        where = "compactions" if service == "compact" else "clusterings"
        self._run(self.client.post(f"{self.path}/{where}", json=request))

    def restore(self, version: int) -> None:
        self._run(self.client.post(f"{self.path}/restores", json={"version": version}))

    def patch(self, keep_seconds: int) -> None:
        found = self.client.get(self.path)
        headers = {"If-Match": found.headers["etag"]}
        body = {"deletes": {"keep_seconds": keep_seconds}}
        _answered(self.client.patch(self.path, json=body, headers=headers))

    def rows(self) -> list[Json]:
        return self._rows({})

    def rows_at(self, version: int) -> list[Json]:
        return self._rows({"version": version})

    def changes(self, since: int) -> list[Change]:
        """The feed from an offset on, in pages of any size."""
        found: list[Change] = []
        while True:
            query = {"since": since + len(found), "limit": self.dice.choice((1, 3, 10_000))}
            page = _json(self.client.get(f"{self.path}/changes", params=query))
            found += [(change["op"], change["row"]) for change in page["changes"]]
            if not page["pending"]:
                return found

    def feed(self, form: str) -> bytes:
        """The whole feed in a form of FORMATS."""
        answer = self.client.get(
            f"{self.path}/changes", params={"limit": 50_000}, headers={"Accept": FORMATS[form]}
        )
        assert answer.status_code == 200, answer.text
        return answer.content

    def take(self, feed: bytes, form: str) -> None:
        """Applies the feed of another dataset."""
        answer = self.client.post(
            f"{self.path}/writes",
            params={"operation": "changelog"},
            content=feed,
            headers={"Content-Type": FORMATS[form]},
        )
        self._run(answer)

    def follow(self, other: ServedDataset) -> None:
        """Applies the feed of another dataset by a source."""
        source = {
            "name": f"s{next(_numbers)}",
            "dataset": self.name,
            "kind": "dataset",
            "config": {"dataset": other.name},
            "mode": "once",
            "max_rows": self.dice.choice((1, 3, 10_000)),
        }
        self._run_source(source)

    # The ways in.

    def _send(self, write: Json, *, alone: bool) -> str:
        """The id of the job of a write."""
        options = {name: value for name, value in write.items() if name not in ("operation", "rows")}
        if "rows" not in write or (is_alone(write) and write["operation"] != "changelog"):
            source = {"source": {"kind": "rows", "rows": write["rows"]}} if "rows" in write else {}
            return self._post({"operation": write["operation"], **options, **source})
        way = self.dice.choice(_WAYS_OF_ONE if alone and not options else _WAYS)
        match way:
            case "envelope":
                source = {"source": {"kind": "rows", "rows": records(write, self.dice)}}
                return self._post({"operation": write["operation"], **options, **source})
            case "upload" | "uploads":
                return self._upload(write, options, several=way == "uploads")
            case "redrive" if write["operation"] in ("upsert", "delete"):
                return self._redrive(write)
            case "files" if write["operation"] in ("upsert", "delete"):
                return self._files(write)
        form = way if way in forms_of(write) else "ndjson"
        return self._accepted(
            self.client.post(
                f"{self.path}/writes",
                params={"operation": write["operation"], **_parameters(options)},
                content=body(write, form, self.registration, self.dice),
                headers={"Content-Type": FORMATS[form]},
            )
        )

    def _post(self, envelope: Json) -> str:
        return self._accepted(self.client.post(f"{self.path}/writes", json=envelope))

    def _upload(self, write: Json, options: Json, *, several: bool) -> str:
        form = self.dice.choice(forms_of(write))
        rows = write["rows"]
        at = self.dice.randint(1, len(rows)) if several else len(rows)
        ids = []
        for part in (rows[:at], rows[at:]):
            if part:
                content = body({**write, "rows": part}, form, self.registration, self.dice)
                headers = {"Content-Type": "application/octet-stream"}
                answer = self.client.post(f"{self.path}/uploads", content=content, headers=headers)
                ids.append(_json(answer, 201)["id"])
        if several:
            source: Json = {"kind": "uploads", "upload_ids": ids, "format": form}
        else:
            source = {"kind": "upload", "upload_id": ids[0], "format": form}
        return self._post({"operation": write["operation"], **options, "source": source})

    def _redrive(self, write: Json) -> str:
        """Sends rows with a value that none has, and then the rows in their place."""
        bad = [{**row, "n": "bad"} for row in write["rows"]]
        envelope = {"operation": write["operation"], "on_error": "quarantine"}
        job = self._post({**envelope, "source": {"kind": "rows", "rows": bad}})
        self.datasets.service.work()
        assert self._job(job)["rows"]["quarantined"] == len(bad)
        items = _json(self.client.get(f"{self.path}/quarantine", params={"job": job}))["items"]
        repaired = [
            {"id": item["id"], "payload": json.dumps(write["rows"][item["position"]])} for item in items
        ]
        self.dice.shuffle(repaired)
        answer = self.client.post(f"{self.path}/quarantine/redrives", json={"records": repaired})
        return self._accepted(answer)

    def _files(self, write: Json) -> str:
        """Has a source read files with the rows."""
        incoming = Incoming.of(self.client, self.datasets.service)
        form = self.dice.choice(tuple(FORMATS))
        rows = write["rows"]
        size = self.dice.randint(1, len(rows))
        for number, start in enumerate(range(0, len(rows), size)):
            part = {**write, "rows": rows[start : start + size]}
            incoming.put_bytes(f"{number:04}", body(part, form, self.registration, self.dice))
        members = {"dataset": self.name, "operation": write["operation"], "config": {"format": form}}
        self._run_source(incoming.source(**members) | {"name": f"s{next(_numbers)}"})
        jobs = _json(self.client.get("/jobs", params={"dataset": self.name, "kind": "source_round"}))
        return str(jobs["items"][0]["id"])

    # Requests.

    def _run_source(self, source: Json) -> None:
        path = _answered(self.client.post("/sources", json=source), 201).headers["location"]
        self.datasets.service.work()
        found = _json(self.client.get(path))
        assert (found["state"], found["last_error"]) == ("finished", None), found
        self.client.delete(path)

    def _accepted(self, answer: httpx2.Response) -> str:
        return str(_json(answer, 202)["id"])

    def _run(self, answer: httpx2.Response) -> None:
        job = self._accepted(answer)
        self.datasets.service.work()
        found = self._job(job)
        assert found["state"] == "succeeded", found

    def _job(self, job: str) -> Json:
        return _json(self.client.get(f"/jobs/{job}"))

    def _is_refused(self, job: str) -> bool:
        found = self._job(job)
        if found["state"] == "failed":
            assert found["error"]["type"] in _REFUSALS, found
            return True
        assert found["state"] == "succeeded", found
        return False

    def _rows(self, query: Json) -> list[Json]:
        found: list[Json] = []
        query = {"limit": self.dice.choice((2, 10_000)), **query}
        while True:
            page = _json(self.client.get(f"{self.path}/rows", params=query))
            found += page["rows"]
            if page["next_page_token"] is None:
                return found
            query["page_token"] = page["next_page_token"]


def _parameters(options: Json) -> Json:
    """Options as query parameters."""
    return {name: str(value).lower() if isinstance(value, bool) else value for name, value in options.items()}


def _answered(answer: httpx2.Response, status: int = 200) -> httpx2.Response:
    assert answer.status_code == status, answer.text
    return answer


def _json(answer: httpx2.Response, status: int = 200) -> Json:
    found: Json = _answered(answer, status).json()
    return found

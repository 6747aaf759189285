"""`pause` and `resume` on the command line, of all that can be paused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headwater_client import Dataset
from tests.support.command_line import command_line, use_service
from tests.support.service import Service

Make = Callable[[], tuple[str, str]]


@pytest.fixture
def makers(orders: Dataset, service: Service, api_key: str) -> Iterator[dict[str, Make]]:
    """What makes a resource of each group of commands, and returns its reference and its name in messages."""
    folder = service.settings.data_dir / "incoming" / "of-states"
    folder.mkdir(parents=True, exist_ok=True)
    made: list[str] = []

    def post(path: str, body: dict[str, Any]) -> str:
        answer = client.post(path, json=body)
        assert answer.is_success, answer.text
        identity: str = answer.json()["id"]
        made.append(f"/{path.rsplit('/', 1)[1]}/{identity}")
        return identity

    def source() -> tuple[str, str]:
        config = {"path": folder.as_uri(), "format": "ndjson"}
        post("/sources", {"name": "paused_in", "dataset": orders.name, "kind": "files", "config": config})
        return "paused_in", "Source paused_in"

    def view() -> tuple[str, str]:
        post("/views", {"name": "paused_view", "sql": f'SELECT * FROM "{orders.name}"'})
        return "paused_view", "View paused_view"

    def webhook() -> tuple[str, str]:
        identity = post("/webhooks", {"dataset": orders.name, "url": "http://127.0.0.1:1/x"})
        return identity, f"Webhook {identity}"

    def export() -> tuple[str, str]:
        schedule = {"cron": "0 6 1 1 *"}
        body = {"query": "changes", "format": "csv", "schedule": schedule}
        identity = post(f"/datasets/{orders.name}/exports", body)
        return identity, f"Export {identity}"

    with service.client(api_key) as client:
        yield {"sources": source, "views": view, "webhooks": webhook, "exports": export}
        for path in made:
            client.delete(path)


@pytest.mark.parametrize("group", ["sources", "views", "webhooks", "exports"])
def test_pause_and_resume_print_the_new_state(
    group: str,
    makers: dict[str, Make],
    service: Service,
    api_key: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_service(monkeypatch, service.url, api_key)
    run = command_line(capsys)
    reference, name = makers[group]()
    assert run(group, "pause", reference, "-o", "table").out == f"{name} is paused.\n"
    assert f'"{reference}"' in run(group, "pause", reference).out
    assert run(group, "resume", reference, "-o", "table").out == f"{name} is active.\n"
    assert (
        "not-found" in run(group, "pause", "0", fails=3).err
        or "there is no" in run(group, "pause", "0", fails=3).err
    )


def test_the_help_of_exports_states_when_the_first_run_is(capsys: pytest.CaptureFixture[str]) -> None:
    run = command_line(capsys)
    assert "with cron, at the first of its times" in " ".join(run("exports", "create", "--help").out.split())

"""The database of a worker: no statement waits for a server that stands still."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from app.infra.db import answers
from app.infra.errors import Unavailable
from app.infra.runtime.loops import Loops
from tests.support.postgres import TestServer
from tests.support.service import settings_for
from tests.support.waiting import until
from workers.process import database_beat, worker_database


def test_statements_of_a_worker_end_while_postgres_stands_still(
    database_url: str, postgres: TestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "SILENCE_SECONDS", 1.0)
    settings = settings_for(database_url, database_url, "redis://127.0.0.1:1/0", tmp_path)
    database = worker_database(settings, "worker")
    loops = Loops()
    loops.add(database_beat(database))
    errors: list[Exception] = []

    def poll() -> None:
        try:
            with database.relay() as connection:
                connection.exec_driver_sql("SELECT 1")
        except Unavailable as error:
            errors.append(error)

    try:
        poll()
        loops.start()
        assert errors == []
        with postgres.frozen():
            thread = threading.Thread(target=poll, daemon=True)
            thread.start()
            until(lambda: len(errors) == 1, "the statement to end")
            thread.join()

        def answered() -> bool:
            count = len(errors)
            poll()
            return len(errors) == count

        until(answered, "statements to be answered again")
    finally:
        loops.stop(5)
        database.close()


def test_each_process_of_a_worker_has_such_a_database() -> None:
    folder = Path(__file__).parents[3] / "workers"
    makers = {path.name for path in folder.rglob("*.py") if " Database(" in path.read_text(encoding="utf-8")}
    assert makers == {"process.py"}

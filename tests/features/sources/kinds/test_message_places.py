"""Rows of messages that do not fit the dataset are quarantined with the message that they were made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.features.sources.kinds import kafka
from app.infra.files.quarantine_file import QuarantineFileStore
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.infra.kafka.messages import Message
from app.kernel.codecs.splits import Split, plan_splits
from app.kernel.format.operation import Operation
from app.kernel.format.quarantine import QuarantineFile
from app.kernel.format.rows.formats import Format
from app.kernel.format.rows.staged import RawInput, RowRun
from tests.support.lakehouse import definition
from workers.engine.decode.decode_handle import DecodeTask, Decoding, decode


def message(partition: int, offset: int) -> Message:
    return Message(topic="t", partition=partition, offset=offset, timestamp_ms=None, key=None, value=b"")


def runs_of(*messages: Message) -> list[RowRun]:
    runs: list[RowRun] = []
    with Path("/dev/null").open("wb") as file:
        lines = kafka._Lines(file, runs)
        for each in messages:
            lines.add(b"{}", each)
    return runs


def test_runs_begin_where_offsets_do_not_follow_each_other() -> None:
    runs = runs_of(message(0, 5), message(0, 6), message(0, 8), message(1, 9), message(1, 10))
    assert [(run.first_row, run.number, run.place) for run in runs] == [
        (0, 5, "partition 0 of topic 't'"),
        (2, 8, "partition 0 of topic 't'"),
        (3, 9, "partition 1 of topic 't'"),
    ]


def test_runs_are_bounded_and_rows_beyond_have_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "_RUNS_MAX", 3)
    runs = runs_of(*(message(0, 2 * number) for number in range(9)))
    assert [(run.first_row, run.place != "") for run in runs] == [(0, True), (1, True), (2, False)]


@pytest.mark.parametrize("split_bytes", [10_000, 40, 7])
def test_bad_rows_name_their_messages_in_every_split(tmp_path: Path, split_bytes: int) -> None:
    storage = LocalStorage(tmp_path)
    lines = [b'{"id": %d}' % number if number % 3 else b'{"id": "x%d"}' % number for number in range(20)]
    body = b"".join(line + b"\n" for line in lines)
    (tmp_path / "body").write_bytes(body)
    runs = (
        RowRun(first_row=0, number=100, place="partition 0 of topic 't'"),
        RowRun(first_row=7, number=40, place="partition 1 of topic 't'"),
        RowRun(first_row=15, number=0, place=""),
    )
    found: list[str] = []
    for number, split in enumerate(splits(storage, len(body), split_bytes)):
        task = DecodeTask(
            raw=RawInput(path="body", size_bytes=len(body), checksum="", format=Format.NDJSON, runs=runs),
            path="body",
            split=split,
            number=number,
            decoding=Decoding(
                dataset=definition(), operation=Operation.INSERT, prefix="out", quarantine="bad"
            ),
        )
        quarantined = decode(task, storage, MemoryBudget(bytes_max=2**30)).quarantine_file
        if quarantined is not None:
            found += details(storage, quarantined)
    places = {
        **{row: f"message {100 + row} of partition 0 of topic 't': " for row in (0, 3, 6)},
        **{row: f"message {40 + row - 7} of partition 1 of topic 't': " for row in (9, 12)},
        **dict.fromkeys((15, 18), "expected"),
    }
    assert len(found) == len(places)
    for detail, place in zip(found, places.values(), strict=True):
        assert detail.startswith(place), (detail, place)


def splits(storage: LocalStorage, size_bytes: int, split_bytes: int) -> list[Split]:
    return list(plan_splits(Format.NDJSON, storage.open("body"), size_bytes, split_bytes))


def details(storage: LocalStorage, file: QuarantineFile) -> list[str]:
    """The first fault of each record of the file."""
    records = QuarantineFileStore(storage).read(file, 0, file.row_count)
    return [record.errors[0].detail for record in records]

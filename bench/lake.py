"""Measuring one system at the work of `bench.workload`: the same code for the service and for its peers."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec
import psutil
import pyarrow as pa

from bench.contents import Contents, contents_of
from bench.processes import one_core, peak_memory, processor_seconds, tree
from bench.workload import BULK_INSERT, INSERT, READS, Step, Workload

_SAMPLING_SECONDS = 0.5


class Omitted(Exception):
    """A figure that is not available; the message is the reason for the reader of the table."""


class Lake(Protocol):
    """A system that keeps the table. Whatever returns is committed and can be read; anything may raise Omitted."""

    name: str
    version: str
    works: psutil.Process
    """Its processor time, with that of the processes below it, is what a write costs."""
    holds: psutil.Process
    """Its memory, with that of the processes below it, is what a write needs."""

    @property
    def readers(self) -> Sequence[psutil.Process]:
        """The processes that read for it, beside this one."""
        ...

    def create(self) -> None:
        """Begins an empty table; the one before is of no more use."""
        ...

    def stage(self, file: Path) -> Any:
        """Brings a Parquet file to where a write can name it; what the write is to name it by, its source."""
        ...

    def insert(self, source: Any) -> Mapping[str, float]:
        """Adds rows whose keys are new. Returns seconds of notable parts, by name."""
        ...

    def bulk_insert(self, source: Any) -> Mapping[str, float]:
        """The same; a system that may store rows in the order of their keys does so."""
        ...

    def upsert(self, source: Any) -> Mapping[str, float]:
        """Replaces the rows of known keys that are not newer, and adds the others."""
        ...

    def delete(self, where: str) -> Mapping[str, float]:
        """Deletes the rows that a condition holds for."""
        ...

    def changes(self) -> Mapping[str, Callable[[], int]]:
        """Ways to read what the last write changed, rows before and after, as Arrow; each returns the row count."""
        ...

    def read(self, where: str | None) -> int:
        """Reads whole rows of the table as it is now, in this process, as Arrow; returns the row count."""
        ...

    def rows(self) -> Iterable[pa.Table]:
        """The table as it is now, in any order: what it contains is compared, and reading it is not measured."""
        ...

    def files(self) -> dict[Path, int]:
        """What the table has on disk: paths below its folder, with sizes."""
        ...


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One measured step. `rows` is how many it changed, or read; `written` are bytes by folder.

    `parts` are times within the write, or before it (`upload`), `changes` those of reading what it changed; by name.
    `changes_cpu_seconds` is of the first way to read them. `contents`: of the table after the last run of a write.
    """

    case: str
    run: int
    rows: int
    seconds: float
    cpu_seconds: float
    parts: dict[str, float] = {}
    changes: dict[str, float] = {}
    changes_cpu_seconds: float | None = None
    change_rows: int = 0
    written: dict[str, int] = {}
    peak_bytes: int = 0
    contents: Contents | None = None


class Measured(msgspec.Struct, kw_only=True):
    """The results of one system, in the order of the measurements. `notes`: what is missing, and why."""

    system: str
    version: str = ""
    samples: list[Sample] = []
    notes: list[str] = []


def measure(lake: Lake, workload: Workload, inputs: Path) -> Measured:
    """Has a system do all of the work. What it cannot do is noted, and left out."""
    measured = Measured(system=lake.name, version=lake.version)
    omitted: set[str] = set()
    for case, sample in _trials(lake, workload, inputs):
        # Without its rows there is nothing to write into.
        if omitted & {case, BULK_INSERT}:
            continue
        try:
            found = sample()
        except Omitted as reason:
            omitted.add(case)
            measured.notes.append(f"{lake.name}, {case}: {reason}")
            print(measured.notes[-1], flush=True)
            continue
        measured.samples.append(found)
        if workload.ends(case, found.run):
            contents = contents_of(lake.rows())
            measured.samples[-1] = msgspec.structs.replace(found, contents=contents)
        print(f"{lake.name}, {case}: {_description(found)}", flush=True)
    return measured


def _trials(lake: Lake, workload: Workload, inputs: Path) -> Iterator[tuple[str, Callable[[], Sample]]]:
    for step in workload.loading():
        yield step.case, partial(_load, lake, step, workload.input(step, inputs))
    yield from _reads(lake, workload, ", loaded")
    for step in workload.upserts():
        yield step.case, partial(_upsert, lake, step, workload.input(step, inputs))
    yield from _reads(lake, workload, "")
    for step in workload.deletes():
        yield step.case, partial(_write, lake, step, partial(lake.delete, step.where or ""))


def _reads(lake: Lake, workload: Workload, state: str) -> Iterator[tuple[str, Callable[[], Sample]]]:
    """The reads of the table as it is then, which `state` describes."""
    for name, where in READS.items():
        for run in range(workload.repeat):
            yield name + state, partial(_read, lake, name + state, run, where)


def _load(lake: Lake, step: Step, file: Path) -> Sample:
    lake.create()
    return _upload_and(lake.insert if step.case == INSERT else lake.bulk_insert, lake, step, file)


def _upsert(lake: Lake, step: Step, file: Path) -> Sample:
    return _upload_and(lake.upsert, lake, step, file)


def _upload_and(write: Callable[[Any], Mapping[str, float]], lake: Lake, step: Step, file: Path) -> Sample:
    began = time.perf_counter()
    source = lake.stage(file)
    seconds = time.perf_counter() - began
    sample = _write(lake, step, partial(write, source))
    return msgspec.structs.replace(sample, parts={**sample.parts, "upload": seconds})


def _write(lake: Lake, step: Step, write: Callable[[], Mapping[str, float]]) -> Sample:
    # What others left to be written to the disk is not charged to this step.
    os.sync()
    before, cpu_before = lake.files(), processor_seconds(tree(lake.works))
    with peak_memory(lake.holds, every_seconds=_SAMPLING_SECONDS) as peak:
        began = time.perf_counter()
        parts = write()
        seconds = time.perf_counter() - began
    cpu_seconds = processor_seconds(tree(lake.works)) - cpu_before
    written = _written(before, lake.files())
    changes: dict[str, float] = {}
    changes_cpu_seconds = None
    change_rows = 0
    for way, read in lake.changes().items():
        began, cpu_before = time.perf_counter(), _reading_seconds(lake)
        change_rows = read()
        changes[way] = time.perf_counter() - began
        if changes_cpu_seconds is None:
            changes_cpu_seconds = _reading_seconds(lake) - cpu_before
        if change_rows != (step.changes or change_rows):
            raise Omitted(f"{change_rows} {way} instead of {step.changes}")
    if changes and not change_rows:
        raise Omitted("it succeeded, and changed nothing")
    return Sample(
        case=step.case,
        run=step.run,
        rows=step.rows or change_rows,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        parts=dict(parts),
        changes=changes,
        changes_cpu_seconds=changes_cpu_seconds,
        change_rows=change_rows,
        written=written,
        peak_bytes=peak.proportional,
    )


def _written(before: Mapping[Path, int], after: Mapping[Path, int]) -> dict[str, int]:
    """Bytes that files grew by, by the folder they are in."""
    grown: Counter[str] = Counter()
    for path, size in after.items():
        folder = path.parts[0] if len(path.parts) > 1 else "data"
        grown[folder] += max(0, size - before.get(path, 0))
    return {folder: size for folder, size in grown.items() if size}


def _read(lake: Lake, case: str, run: int, where: str | None) -> Sample:
    if run == 0:
        # The first time, files are checked and caches are filled: it is not counted.
        lake.read(where)
    with one_core():
        began, cpu_began = time.perf_counter(), _reading_seconds(lake)
        rows = lake.read(where)
        seconds, cpu_seconds = time.perf_counter() - began, _reading_seconds(lake) - cpu_began
    return Sample(case=case, run=run, rows=rows, seconds=seconds, cpu_seconds=cpu_seconds)


def _reading_seconds(lake: Lake) -> float:
    return time.process_time() + processor_seconds(list(lake.readers))


def _description(sample: Sample) -> str:
    times = {"": sample.seconds, **sample.parts, **sample.changes}
    return ", ".join(f"{name} {seconds:.2f} s".strip() for name, seconds in times.items())

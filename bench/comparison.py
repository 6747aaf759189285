"""What several systems took for the same work, case by case: medians, and how many times ours a peer's is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import median
from typing import Any, Final

import msgspec

from bench.contents import Contents
from bench.lake import Measured, Sample
from bench.processes import MEBIBYTE

LEGEND: Final = (
    "s: the write by the clock; run s: of it, from the claim of its job to the commit; changes s: reading its changes",
    "MB: written to files; MB ÷: that, divided by the Arrow bytes of the changed rows",
    "cpu s: of the processors; changes cpu s: of reading its changes in-process",
    "PEER ÷: the processor seconds of the peer divided by ours; +ch: of the write and of reading its changes",
)
"""What the columns mean."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The medians of one system's samples of one case. Seconds and bytes; None where a sample has no such figure."""

    rows: int
    seconds: float
    run_seconds: float | None
    stage_seconds: float | None
    cpu_seconds: float
    changes_seconds: float | None
    changes_cpu_seconds: float | None
    http_changes_seconds: float | None
    written_bytes: float
    peak_bytes: float

    @property
    def with_changes(self) -> float | None:
        """Processor seconds of writing, and of reading what the write changed."""
        return None if self.changes_cpu_seconds is None else self.cpu_seconds + self.changes_cpu_seconds


def summary(samples: Sequence[Sample]) -> Summary:
    """Of at least one sample; each figure has a median of its own."""

    def part(value: Callable[[Sample], float | None]) -> float | None:
        found = [number for number in map(value, samples) if number is not None]
        return median(found) if found else None

    return Summary(
        rows=samples[0].rows,
        seconds=median(sample.seconds for sample in samples),
        run_seconds=part(lambda sample: sample.parts.get("run")),
        stage_seconds=part(lambda sample: sample.parts.get("upload")),
        cpu_seconds=median(sample.cpu_seconds for sample in samples),
        changes_seconds=part(lambda sample: sample.changes.get("changes")),
        changes_cpu_seconds=part(lambda sample: sample.changes_cpu_seconds),
        http_changes_seconds=part(lambda sample: sample.changes.get("changes over HTTP")),
        written_bytes=median(sum(sample.written.values()) for sample in samples),
        peak_bytes=median(sample.peak_bytes for sample in samples),
    )


def compare(
    measured: Sequence[Measured], *, peers: Collection[str], row_bytes: float
) -> list[dict[str, Any]]:
    """A line for each case and system, in the order of the work. `row_bytes`: of a changed row, as Arrow."""
    lines: list[dict[str, Any]] = []
    for case in dict.fromkeys(sample.case for each in measured for sample in each.samples):
        samples = {each.system: [one for one in each.samples if one.case == case] for each in measured}
        found = {system: summary(each) for system, each in samples.items() if each}
        for system, ours in found.items():
            theirs = {} if system in peers else {name: found[name] for name in peers if name in found}
            lines.append({"case": case, "system": system, **_line(ours, row_bytes), **_ratios(ours, theirs)})
    return lines


def disagreements(measured: Sequence[Measured]) -> list[str]:
    """Where systems did not change, or did not read, the same rows: their times cannot be compared.

    Numbers of rows and of changes are compared for each run, contents of the tables after the last run of each write.
    A system without a feed states no changes, and may state no rows of a delete.
    """
    rows: dict[tuple[str, int], dict[str, int]] = {}
    changes: dict[tuple[str, int], dict[str, int]] = {}
    contents: dict[tuple[str, int], dict[str, Contents]] = {}
    for each in measured:
        for sample in each.samples:
            at = (sample.case, sample.run)
            if sample.rows:
                rows.setdefault(at, {})[each.system] = sample.rows
            if sample.changes:
                changes.setdefault(at, {})[each.system] = sample.change_rows
            if sample.contents is not None:
                contents.setdefault(at, {})[each.system] = sample.contents
    counted = [
        f"{case}, run {run}: the systems disagree about its {what}: {found}"
        for what, counts in (("rows", rows), ("changes", changes))
        for (case, run), found in counts.items()
        if len(set(found.values())) > 1
    ]
    return counted + [
        f"{case}, run {run}: the tables differ afterwards: {differences(found)}"
        for (case, run), found in contents.items()
        if differences(found)
    ]


def differences(found: Mapping[str, Contents]) -> dict[str, dict[str, Any]]:
    """What the tables of the systems do not have in common: rows, keys, columns, or whole rows, with each one's."""
    flat = {
        system: {"rows": each.rows, "keys": each.keys, "whole rows": each.whole, **each.columns}
        for system, each in found.items()
    }
    names = dict.fromkeys(name for each in flat.values() for name in each)
    values = {name: {system: each.get(name) for system, each in flat.items()} for name in names}
    return {name: each for name, each in values.items() if len(set(each.values())) > 1}


def _line(found: Summary, row_bytes: float) -> dict[str, Any]:
    line = {
        "rows": found.rows,
        "s": found.seconds,
        "run s": found.run_seconds,
        "upload s": found.stage_seconds,
        "cpu s": found.cpu_seconds,
        "changes s": found.changes_seconds,
        "changes cpu s": found.changes_cpu_seconds,
        "by HTTP": found.http_changes_seconds,
    }
    if found.written_bytes and found.rows:
        line["MB"] = found.written_bytes / 1e6
        line["MB ÷"] = found.written_bytes / (found.rows * row_bytes)
        line["peak MiB"] = round(found.peak_bytes / MEBIBYTE)
    # A peer reads the file where it is: nothing is uploaded.
    return {name: rounded for name, value in line.items() if (rounded := _rounded(value))}


def _ratios(ours: Summary, theirs: dict[str, Summary]) -> dict[str, float]:
    ratios = {}
    for name, peer in theirs.items():
        ratios[f"{name} ÷"] = peer.cpu_seconds / ours.cpu_seconds
        if ours.with_changes is not None and peer.with_changes is not None:
            ratios[f"{name} ÷ +ch"] = peer.with_changes / ours.with_changes
    return {name: round(value, 2) for name, value in ratios.items()}


def _rounded(value: float | None) -> float | None:
    return value if value is None or isinstance(value, int) else round(value, 3)

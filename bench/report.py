"""What a measurement leaves: a table for the reader, and a JSON file with the machine it was taken on."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import psutil

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
_PACKAGES = ("pyarrow", "polars", "numpy", "pyspark", "litestar", "uvicorn")


def machine() -> dict[str, Any]:
    """The machine, and how busy it is now: other work on it makes every figure worse."""
    return {
        "cpu": _cpu_model(),
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _PACKAGES},
        "load_average": [round(value, 2) for value in os.getloadavg()],
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Median, 95th and 99th percentile and the largest, in milliseconds."""
    values = np.array(seconds) * 1000
    found = {f"p{rank}": float(np.percentile(values, rank)) for rank in (50, 95, 99)}
    return {name: round(value, 1) for name, value in {**found, "max": float(values.max())}.items()}


def publish(
    name: str,
    parameters: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    *,
    notes: Sequence[str] = (),
    samples: Any = None,
) -> None:
    """Prints the rows as a table, and the notes below it, and writes `bench/results/NAME.json`.

    The file has the samples, too, that the rows sum up, where they are given.
    """
    RESULTS.mkdir(exist_ok=True)
    document = {
        "bench": name,
        "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": machine(),
        "parameters": dict(parameters),
        "figures": [dict(row) for row in rows],
        **({"notes": list(notes)} if notes else {}),
        **({} if samples is None else {"samples": samples}),
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n")
    print(f"\n{name}: {', '.join(f'{key}={value}' for key, value in parameters.items())}")
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns, *([_text(row.get(column, "")) for column in columns] for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(columns))]
    for line in cells:
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    for note in notes:
        print(f"  {note}")
    load = document["machine"]["load_average"]  # type: ignore[index]
    print(f"  load average {load}, {RESULTS.name}/{name}.json", flush=True)


def _text(value: Any) -> str:
    match value:
        case float():
            decimals = 2 if abs(value) < 10 else 1 if abs(value) < 1000 else 0
            return f"{value:,.{decimals}f}"
        case int():
            return f"{value:,}"
        case _:
            return str(value)

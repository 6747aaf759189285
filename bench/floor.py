"""The least that an upsert into every file can cost: each base file is read and written again, nothing else.

The same library, compression and encodings as the service's own files, two processes, no checksums, no fsync.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(frozen=True, kw_only=True, slots=True)
class Floor:
    """What the rewrite took, by the clock and of the processors. The second holds on a machine that others use too."""

    seconds: float
    cpu_seconds: float


def rewrite(files: Sequence[Path], folder: Path, *, processes: int) -> Floor:
    """Reads and writes all files. The copies are removed again, outside the measured time."""
    folder.mkdir()
    targets = [folder / file.name for file in files]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        # Processes are warm before the clock starts, as Spark's are.
        list(pool.map(_warm, range(processes * 4)))
        began = time.perf_counter()
        cpu_seconds = sum(pool.map(_rewrite, files, targets))
        seconds = time.perf_counter() - began
    for target in targets:
        target.unlink()
    folder.rmdir()
    return Floor(seconds=seconds, cpu_seconds=cpu_seconds)


def _warm(_: int) -> int:
    time.sleep(0.05)
    return pa.set_cpu_count(1) or 0


def _rewrite(source: Path, target: Path) -> float:
    began = time.process_time()
    with pq.ParquetFile(source, memory_map=True) as opened:
        first = opened.metadata.row_group(0)
        columns = [first.column(number) for number in range(first.num_columns)]
        repeated = [column.path_in_schema for column in columns if "RLE_DICTIONARY" in column.encodings]
        codecs = {column.path_in_schema: column.compression.lower() for column in columns}
        with pq.ParquetWriter(
            target,
            opened.schema_arrow,
            compression=codecs,
            compression_level={path: 1 for path, codec in codecs.items() if codec == "zstd"},
            use_dictionary=repeated or False,
        ) as writer:
            for group in range(opened.metadata.num_row_groups):
                writer.write_table(opened.read_row_group(group, use_threads=False))
    return time.process_time() - began

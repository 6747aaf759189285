"""Finding the old rows of an upsert by key: hashing, indexes, and rows at random positions. One thread, no service.

The table is the trips table in hashed buckets, each a Parquet file sorted by key, as `bulk_insert` leaves it. Every
figure of a bucket is the median over all buckets, each with keys of its own; the page cache is warm.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import xxhash

from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.lookups.hot_folder import HotFolder
from app.infra.files.lookups.key_index_file import read_index, write_index
from app.infra.files.lookups.lookup import KeyLookup
from app.infra.files.parquet_file import BASE_ROW_GROUP_ROWS, ParquetReader, create_parquet
from app.infra.files.storage import LocalStorage
from app.kernel.format.file_group import DataFile, Slot
from app.kernel.format.index.key_hash import hash_keys
from app.kernel.format.index.key_index import BloomFilter, KeyIndex
from app.kernel.format.rows.record_key import bucket_numbers, encode_keys
from bench.options import parser
from bench.report import publish
from bench.trips import SCHEMA as PLAIN
from bench.trips import trips

KEY: Final = ["uuid"]
SCHEMA: Final = pa.schema(
    [field.with_metadata({"PARQUET:field_id": str(number)}) for number, field in enumerate(PLAIN, 1)]
)
_STEP_ROWS: Final = 500_000
_HOT_BYTES: Final = 16 * 2**30
_SINGLE_KEYS: Final = 300
_T = TypeVar("_T")


def timed(work: Callable[[], _T]) -> tuple[np.ndarray, _T]:
    """Milliseconds by the clock and of the processor, and the result."""
    began = np.array([time.perf_counter(), time.thread_time()])
    result = work()
    return (np.array([time.perf_counter(), time.thread_time()]) - began) * 1e3, result


def figure(what: str, times: Iterable[np.ndarray]) -> dict[str, Any]:
    """The medians. Those of the processor hold on a machine that others use too."""
    clock, processor = np.median(list(times), axis=0)
    return {"what": what, "ms": round(float(clock), 2), "cpu ms": round(float(processor), 2)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Bucket:
    """One bucket of the table: its file without an index, with either, and keys that are in it or are not."""

    plain: DataFile
    record: DataFile
    bloom: DataFile
    known: np.ndarray
    unknown: np.ndarray

    def keys(self, count: int, *, known: int) -> pa.ChunkedArray:
        """That many canonical keys in random order, `known` of them in the file."""
        random = np.random.default_rng(count)
        chosen = [random.choice(self.known, known, replace=False), self.unknown[: count - known]]
        return encode_keys(trips(random.permutation(np.concatenate(chosen)), ts=1), KEY)


def by_bucket(first: int, rows: int, count: int) -> list[np.ndarray]:
    """The numbers of trips from `first`, by the bucket that their keys hash to."""
    parts: list[list[np.ndarray]] = [[] for _ in range(count)]
    for start in range(first, first + rows, _STEP_ROWS):
        numbers = np.arange(start, min(start + _STEP_ROWS, first + rows))
        buckets = bucket_numbers(trips(numbers, ts=0), KEY, count)
        for bucket, part in enumerate(parts):
            part.append(numbers[buckets == bucket])
    return [np.concatenate(part) for part in parts]


def build(
    storage: LocalStorage, lookup: KeyLookup, rows: int, count: int
) -> Iterator[tuple[Bucket, dict[str, np.ndarray]]]:
    """The table bucket by bucket, with what it took to make indexes and copies."""
    unknown = by_bucket(rows, rows // 10, count)
    for bucket, numbers in enumerate(by_bucket(0, rows, count)):
        table = trips(numbers, ts=0).sort_by("uuid").combine_chunks().cast(SCHEMA)
        path = f"data/{bucket:05d}"
        with create_parquet(
            storage,
            path,
            SCHEMA,
            row_group_rows=BASE_ROW_GROUP_ROWS,
        ) as sink:
            sink.write(table)
            sink.finish()
        plain = DataFile(
            **msgspec.structs.asdict(sink.stored(1)),
            file_group=path,
            slot=Slot(partition_path="", bucket=bucket),
        )
        took = {}
        took["hash the keys"], hashes = timed(lambda table=table: hash_keys(encode_keys(table, KEY)))
        took["sort a record index"], index = timed(lambda hashes=hashes: KeyIndex.of_hashes(hashes))
        took["fill a bloom filter"], bloom = timed(lambda hashes=hashes: BloomFilter.of_hashes(hashes))
        took["store the record index"], stored_index = timed(
            lambda index=index, bucket=bucket: write_index(storage, f"index/{bucket}-r", index)
        )
        took["store the bloom filter"], stored_bloom = timed(
            lambda bloom=bloom, bucket=bucket: write_index(storage, f"index/{bucket}-b", bloom)
        )
        took["write a copy"], _ = timed(lambda path=path, table=table: copy(lookup, path, table))
        yield (
            Bucket(
                plain=plain,
                record=msgspec.structs.replace(plain, index_file=stored_index),
                bloom=msgspec.structs.replace(plain, index_file=stored_bloom),
                known=numbers,
                unknown=unknown[bucket],
            ),
            took,
        )


def copy(lookup: KeyLookup, path: str, table: pa.Table) -> None:
    """Hands a copy over, as the writer of a file does."""
    with lookup.copies.creating(path) as written:
        written.write(table)


def hashing(rows: int) -> Iterator[dict[str, Any]]:
    """`hash_keys`, beside one call of the library for each key."""
    random = np.random.default_rng(0)
    text = pa.array(["x" * length for length in range(61)], pa.large_string())
    columns = {
        "uuid, 36 characters": trips(np.arange(rows), ts=0).column("uuid"),
        "int64 below 1e9": pa.chunked_array([pa.array(random.integers(0, 10**9, rows))]),
        "text, 1 to 60 characters": pa.chunked_array([text.take(pa.array(random.integers(1, 61, rows)))]),
    }
    for name, column in columns.items():
        keys = encode_keys(pa.table({"key": column}), ["key"])
        for way, work in {"at once": hash_keys, "one by one": one_by_one}.items():
            yield figure(
                f"hash {rows} keys, {name}: {way}",
                [timed(lambda work=work, keys=keys: work(keys))[0] for _ in range(5)],
            )


def one_by_one(keys: pa.ChunkedArray) -> np.ndarray:
    """What `hash_keys` replaces."""
    return np.fromiter(map(xxhash.xxh64_intdigest, keys.to_pylist()), dtype=np.uint64, count=len(keys))


def lookup_times(
    storage: LocalStorage, hot: KeyLookup, cold: KeyLookup, buckets: list[Bucket], count: int
) -> Iterator[dict[str, Any]]:
    """What `count` keys, half of them in the bucket, take to find in one bucket."""
    cases: dict[str, list[np.ndarray]] = {}

    def note(name: str, work: Callable[[], Any]) -> Any:
        took, result = timed(work)
        cases.setdefault(name, []).append(took)
        return result

    for bucket in buckets:
        keys = bucket.keys(count, known=count // 2)
        hashes = hash_keys(keys)
        index, bloom = (read_index(storage, file.index_file) for file in (bucket.record, bucket.bloom))
        note("probe a record index", lambda index=index, hashes=hashes: index.probe(hashes))
        note("probe a bloom filter", lambda bloom=bloom, hashes=hashes: bloom.may_contain(hashes))
        random = np.random.default_rng(count)
        at = np.sort(random.choice(bucket.plain.row_count, count, replace=False))
        for name, lookup in (("a copy", hot), ("Parquet", cold)):
            take = lookup.copies.take
            note(f"take rows from {name}", lambda take=take, at=at, file=bucket.plain: take(file, at, SCHEMA))
        for name, lookup, file in (
            ("find rows: record index, copy", hot, bucket.record),
            ("find rows: bloom filter, copy", hot, bucket.bloom),
            ("find rows: record index, no copy", cold, bucket.record),
            ("find rows: neither", cold, bucket.plain),
        ):
            found = note(
                name,
                lambda lookup=lookup, file=file, keys=keys: list(lookup.find_rows([file], keys, KEY, SCHEMA)),
            )
            if sum(len(part.positions) for part in found) != count // 2:
                raise SystemExit(f"{name}: a row was not found")
    for name, took in cases.items():
        yield figure(f"{count} keys, one bucket: {name}", took)


def single_keys(hot: KeyLookup, cold: KeyLookup, buckets: list[Bucket]) -> Iterator[dict[str, Any]]:
    """Finding the row of one key, as a lookup of a reader does: the median, and what one in a hundred exceeds."""
    random = np.random.default_rng(1)
    for name, lookup in (("copy", hot), ("no copy", cold)):
        times = []
        for _ in range(_SINGLE_KEYS):
            bucket = buckets[random.integers(len(buckets))]
            key = encode_keys(trips(random.choice(bucket.known, 1), ts=1), KEY)
            took, found = timed(
                lambda lookup=lookup, bucket=bucket, key=key: list(
                    lookup.find_rows([bucket.record], key, KEY, SCHEMA)
                )
            )
            if sum(part.rows.num_rows for part in found) != 1:
                raise SystemExit(f"one key, {name}: its row was not found")
            times.append(took)
        clock, _ = np.percentile(times, 99, axis=0)
        yield {**figure(f"one key: record index, {name}", times), "p99 ms": round(float(clock), 2)}


def upserts(hot: KeyLookup, buckets: list[Bucket], rows: int) -> dict[str, Any]:
    """Finding the old rows of an upsert of `rows` rows, half of them new, in the whole table."""
    share = rows // len(buckets)
    keys = [bucket.keys(share, known=share // 2) for bucket in buckets]

    def work() -> int:
        found = 0
        for bucket, requested in zip(buckets, keys, strict=True):
            for part in hot.find_rows([bucket.record], requested, KEY, SCHEMA):
                found += part.rows.num_rows
        return found

    return figure(f"{rows} keys, whole table: record index, copy", [timed(work)[0] for _ in range(3)])


def measure(scratch: Path, rows: int, count: int) -> list[dict[str, Any]]:
    """All figures."""
    (scratch / "storage").mkdir()
    storage = LocalStorage(scratch / "storage")
    folder = HotFolder(scratch / "hot", _HOT_BYTES)
    hot, cold = (
        KeyLookup(storage, ParquetReader(storage), VectorReader(storage), place) for place in (folder, None)
    )
    figures = list(hashing(min(rows, 1_000_000)))
    built = list(build(storage, hot, rows, count))
    buckets = [bucket for bucket, _ in built]
    figures += [figure(f"one bucket: {name}", [times[name] for _, times in built]) for name in built[0][1]]
    sizes = {"data": "data files", "index": "record indexes and bloom filters"}
    for directory, name in sizes.items():
        size = sum(path.stat().st_size for path in (scratch / "storage" / directory).rglob("*"))
        figures.append({"what": f"all {name}", "MB": round(size / 1e6)})
    size = sum(path.stat().st_size for path in (scratch / "hot").rglob("*") if path.is_file())
    figures.append({"what": "all copies", "MB": round(size / 1e6)})
    for bucket in buckets:
        # The first reading of a file checks it; no figure here is about that.
        for file in (bucket.record, bucket.bloom):
            list(cold.find_rows([file], bucket.keys(2, known=1), KEY, SCHEMA))
            list(hot.find_rows([file], bucket.keys(2, known=1), KEY, SCHEMA))
    for per_bucket in (rows // count // 1_000, rows // count // 10):
        figures += lookup_times(storage, hot, cold, buckets, per_bucket)
    figures += single_keys(hot, cold, buckets)
    figures += [upserts(hot, buckets, rows // 1_000), upserts(hot, buckets, rows // 10)]
    return figures


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=10_000_000, help="rows of the table")
    options.add_argument("--buckets", type=int, default=16, help="buckets of the table")
    chosen = options.parse_args()
    # As in Spark's Python tasks.
    pa.set_cpu_count(1)
    with TemporaryDirectory(prefix="headwater-lookups-", dir=chosen.scratch) as scratch:
        figures = measure(Path(scratch), chosen.rows, chosen.buckets)
    publish("lookups", {"rows": chosen.rows, "buckets": chosen.buckets}, figures)


if __name__ == "__main__":
    main()

"""Rows of the Hudi quickstart's trips: a random 36-character uuid as key, ten columns, as fast as numpy makes them.

The key of row `i` is a function of `i`, so that any write can name rows that are in the table, or are not, without
anybody keeping ten million keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_HEX: Final = (
    np.array([f"{number:02x}".encode() for number in range(256)], dtype="S2").view(np.uint8).reshape(256, 2)
)
# Where the 32 hexadecimal digits stand among the 36 characters of a uuid.
_DIGITS: Final = [at for at in range(36) if at not in {8, 13, 18, 23}]
_CITIES: Final = [
    "san_francisco",
    "sao_paulo",
    "chennai",
    "singapore",
    "tokyo",
    "nairobi",
    "oslo",
    "lima",
    "porto",
    "riga",
]
_PEOPLE: Final = 10_000
_CHUNK_ROWS: Final = 250_000

SCHEMA: Final = pa.schema(
    [
        pa.field("uuid", pa.string(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("rider", pa.string()),
        pa.field("driver", pa.string()),
        pa.field("begin_lat", pa.float64()),
        pa.field("begin_lon", pa.float64()),
        pa.field("end_lat", pa.float64()),
        pa.field("end_lon", pa.float64()),
        pa.field("fare", pa.float64()),
        pa.field("city", pa.string()),
    ]
)


def plain_definition(name: str) -> dict[str, Any]:
    """The registration of a trips dataset without a key."""
    keyed = definition(name, buckets=None)
    return {member: keyed[member] for member in ("name", "schema")}


def definition(name: str, *, buckets: int | None) -> dict[str, Any]:
    """The registration of a trips dataset, keyed by uuid and ordered by ts. Without `buckets` they grow."""
    types = {pa.string(): "string", pa.int64(): "int64", pa.float64(): "double"}
    fields = [{"name": field.name, "type": types[field.type], "nullable": field.nullable} for field in SCHEMA]
    bucket = {"mode": "fixed", **({} if buckets is None else {"count": buckets})}
    return {
        "name": name,
        "schema": {"fields": fields},
        "record_key": ["uuid"],
        "ordering_field": "ts",
        "bucket": bucket,
    }


def trips(numbers: np.ndarray, *, ts: int, seed: int = 0) -> pa.Table:
    """The rows with these numbers, whose values differ by `ts` and `seed`."""
    count = len(numbers)
    random = np.random.default_rng([seed, ts, count])
    places = random.random((5, count))
    columns = [
        _uuids(numbers),
        pa.array(np.full(count, ts, dtype=np.int64)),
        _names("rider", random.integers(0, _PEOPLE, count, dtype=np.int32)),
        _names("driver", random.integers(0, _PEOPLE, count, dtype=np.int32)),
        *(
            pa.array(values)
            for values in (places[0], places[1], places[2], places[3], np.round(places[4] * 100, 2))
        ),
        pa.DictionaryArray.from_arrays(
            random.integers(0, len(_CITIES), count, dtype=np.int32), pa.array(_CITIES)
        ).cast(pa.string()),
    ]
    return pa.table(columns, schema=SCHEMA)


def _uuids(numbers: np.ndarray) -> pa.Array:
    seeds = numbers.astype(np.uint64)
    halves = np.stack([_mixed(seeds * np.uint64(2)), _mixed(seeds * np.uint64(2) + np.uint64(1))], axis=1)
    text = np.full((len(numbers), 36), ord("-"), dtype=np.uint8)
    text[:, _DIGITS] = _HEX[halves.view(np.uint8)].reshape(len(numbers), 32)
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * 36
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(text))


def _mixed(values: np.ndarray) -> np.ndarray:
    """SplitMix64: a bijection of 64-bit numbers that looks random."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _names(kind: str, numbers: np.ndarray) -> pa.Array:
    known = pa.array([f"{kind}-{number:05d}" for number in range(_PEOPLE)])
    return pa.DictionaryArray.from_arrays(numbers, known).cast(pa.string())


def chunks(numbers: np.ndarray, *, ts: int) -> Iterator[pa.Table]:
    """The rows piece by piece, for tables larger than memory should hold."""
    for start in range(0, len(numbers), _CHUNK_ROWS):
        yield trips(numbers[start : start + _CHUNK_ROWS], ts=ts, seed=start)


def write_parquet(path: Path, numbers: np.ndarray, *, ts: int) -> None:
    """The rows as one Parquet file, as a client would send it."""
    with pq.ParquetWriter(
        path, SCHEMA, compression="lz4", use_dictionary=["rider", "driver", "city"]
    ) as writer:
        for table in chunks(numbers, ts=ts):
            writer.write_table(table)


def upsert_body(table: pa.Table) -> bytes:
    """The rows as the JSON body of an upsert."""
    return write_body(table, "upsert")


def write_body(table: pa.Table, operation: str) -> bytes:
    """The rows as the JSON body of a write."""
    source = {"kind": "rows", "rows": table.to_pylist()}
    return json.dumps({"operation": operation, "source": source}).encode()

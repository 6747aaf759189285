"""Puffin files of deletion vectors, read by the rules of the specification."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest
from pyroaring import BitMap64

from app.kernel.format.index.deletion_vector import positions_set, to_bytes
from app.kernel.iceberg.puffin import CONTENT_OFFSET, content_size, puffin_file, puffin_size

LOCATION = 's3://hw-tables/ds/v3/data/0/country=Öster%2Freich/a "b".parquet'


@pytest.mark.parametrize("positions", [[0], [5, 7], range(70_000), [2**32 - 1], range(0, 10**6, 3)], ids=len)
def test_file_follows_the_specification(positions):
    vector = positions_set(np.array(positions, dtype=np.int64))
    bitmap = to_bytes(vector)
    data = puffin_file(bitmap, len(vector), LOCATION)
    assert len(data) == puffin_size(len(bitmap), len(vector), LOCATION)
    payload_bytes = int.from_bytes(data[-12:-8], "little")
    assert data[:4] == data[-4:] == data[-16 - payload_bytes : -12 - payload_bytes] == b"PFA1"
    assert data[-8:-4] == bytes(4)
    (blob,) = json.loads(data[-12 - payload_bytes : -12])["blobs"]
    assert (blob["offset"], blob["length"]) == (CONTENT_OFFSET, content_size(len(bitmap)))
    assert len(data) == CONTENT_OFFSET + blob["length"] + payload_bytes + 16
    assert blob["type"] == "deletion-vector-v1"
    assert (blob["snapshot-id"], blob["sequence-number"]) == (-1, -1)
    assert "compression-codec" not in blob
    assert blob["properties"] == {"referenced-data-file": LOCATION, "cardinality": str(len(vector))}
    content = data[blob["offset"] : blob["offset"] + blob["length"]]
    assert int.from_bytes(content[:4], "big") == len(content) - 8
    assert content[4:8] == bytes([0xD1, 0xD3, 0x39, 0x64])
    assert int.from_bytes(content[-4:], "big") == zlib.crc32(content[4:-4])
    assert list(BitMap64.deserialize(content[8:-4])) == list(vector)

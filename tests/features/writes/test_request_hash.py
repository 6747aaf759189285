"""The digests by which a repeated request is recognised: those of earlier releases stay valid."""

from __future__ import annotations

from app.features.writes.schemas import request_hash
from app.kernel.commit.write_options import WriteOptions
from app.kernel.format.dataset import MergeMode
from app.kernel.format.definition.new_dataset import CreateWithRows
from app.kernel.format.operation import Operation


def hash_of(create: CreateWithRows) -> str:
    return request_hash(Operation.UPSERT, WriteOptions(), "application/json", ["rows", 1], create)


def test_write_that_registers_its_dataset_has_the_digest_of_releases_without_its_merge_mode() -> None:
    before = "dc15595c867f1398e8531440514ec83699428422dccaebc3e5bb3bb25d100edd"
    assert hash_of(CreateWithRows(record_key=["id"])) == before
    assert hash_of(CreateWithRows(record_key=["id"], merge_mode=MergeMode.COMMIT_TIME)) != before

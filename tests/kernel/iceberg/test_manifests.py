"""Manifests and manifest lists, read again by fastavro."""

from __future__ import annotations

import json

import pytest

from app.kernel.format.file_group import ColumnStatistics
from app.kernel.iceberg.manifests import (
    DELETE_PATH_ID,
    ListedManifest,
    by_spec,
    data_manifest,
    delete_manifest,
    manifest_list,
)
from tests.kernel.iceberg.tables import avro_records, data_entry, dataset, delete_entry, form_of


def as_dict(pairs):
    """A map of Iceberg, which Avro has as a list of records."""
    return None if pairs is None else {pair["key"]: pair["value"] for pair in pairs}


@pytest.mark.parametrize("format_version", [2, 3])
def test_data_manifest_states_files_and_their_versions(format_version):
    form = form_of(dataset({"id": "int64", "name": "string"}, record_key=["id"]), format_version)
    statistics = {
        "1": ColumnStatistics(minimum=-1, maximum=300, null_count=0),
        "2": ColumnStatistics(minimum="a", maximum="ü", null_count=2),
    }
    entries = [data_entry(0, version=4), data_entry(1, version=7, statistics=statistics)]
    manifest = data_manifest(form, entries, 7, 0)
    metadata, records = avro_records(manifest.content)
    assert [
        [record[name] for name in ("status", "snapshot_id", "sequence_number", "file_sequence_number")]
        for record in records
    ] == [[0, 4, 4, 4], [1, 7, 7, 7]]
    plain, measured = (record["data_file"] for record in records)
    assert (plain["content"], plain["file_format"], plain["partition"]) == (0, "PARQUET", {})
    assert (plain["file_path"], plain["record_count"]) == (entries[0].path, 10)
    assert plain["file_size_in_bytes"] == 1_000
    assert plain["lower_bounds"] is None
    assert as_dict(measured["value_counts"]) == {1: 10, 2: 10}
    assert as_dict(measured["null_value_counts"]) == {1: 0, 2: 2}
    assert as_dict(measured["lower_bounds"]) == {1: b"\xff" * 8, 2: b"a"}
    assert as_dict(measured["upper_bounds"]) == {1: b"\x2c\x01" + bytes(6), 2: "ü".encode()}
    assert ("content_offset" in plain) == (format_version == 3)
    assert metadata["format-version"] == str(format_version)
    assert (metadata["content"], metadata["partition-spec"]) == ("data", "[]")
    assert [field["name"] for field in json.loads(metadata["schema"])["fields"]] == ["id", "name"]


def test_facts_of_a_manifest_are_counts_of_its_entries():
    form = form_of(dataset({"id": "int64"}))
    entries = [data_entry(0, version=4), data_entry(1, version=7, rows=5), data_entry(2, version=3)]
    manifest = data_manifest(form, entries, 7, 0)
    facts = manifest.facts
    assert (facts.added_files, facts.added_rows, facts.existing_files, facts.existing_rows) == (1, 5, 2, 20)
    assert (facts.version, facts.least_version, facts.size_bytes) == (7, 3, len(manifest.content))


def test_manifest_has_the_same_bytes_each_time():
    form = form_of(dataset({"id": "int64"}))
    first, second = (data_manifest(form, [data_entry(0)], 1, 0).content for _ in range(2))
    assert first == second


def test_deletion_vector_names_its_data_file_and_its_blob():
    form = form_of(dataset({"id": "int64"}))
    entry = delete_entry(data_entry(0), version=6, vector_bytes=60)
    metadata, [record] = avro_records(delete_manifest(form, [entry], 6, 0).content)
    file = record["data_file"]
    assert metadata["content"] == "deletes"
    assert (record["status"], record["sequence_number"]) == (1, 6)
    assert (file["content"], file["file_format"], file["record_count"]) == (1, "PUFFIN", 3)
    assert (file["referenced_data_file"], file["content_offset"]) == (entry.data_path, 4)
    assert (file["content_size_in_bytes"], file["first_row_id"]) == (60, None)
    assert (file["lower_bounds"], file["value_counts"]) == (None, None)


def test_file_of_positions_has_bounds_of_its_data_file():
    form = form_of(dataset({"id": "int64"}), format_version=2)
    entry = delete_entry(data_entry(0), version=6, vector_bytes=None)
    _, [record] = avro_records(delete_manifest(form, [entry], 9, 0).content)
    file = record["data_file"]
    path = {DELETE_PATH_ID: entry.data_path.encode()}
    assert (record["status"], file["content"], file["file_format"]) == (0, 1, "PARQUET")
    assert as_dict(file["lower_bounds"]) == as_dict(file["upper_bounds"]) == path
    assert file["referenced_data_file"] == entry.data_path
    assert "content_offset" not in file


def test_partitions_of_entries_are_summed_up_for_the_list():
    form = form_of(dataset({"id": "int64", "country": "string"}, ["country"]))
    countries = ["country=b", "country=a%2Fz", "country=__HIVE_DEFAULT_PARTITION__", "country="]
    entries = [data_entry(number, partition=path) for number, path in enumerate(countries)]
    manifest = data_manifest(form, entries, 1, 1)
    _, records = avro_records(manifest.content)
    assert [record["data_file"]["partition"]["country"] for record in records] == ["b", "a/z", None, ""]
    content = manifest_list([ListedManifest(path="s3://t/m.avro", facts=manifest.facts)], 1, None, 3)
    _, [listed] = avro_records(content)
    [summary] = listed["partitions"]
    assert (summary["contains_null"], summary["lower_bound"], summary["upper_bound"]) == (True, b"", b"b")


def test_files_without_partition_values_are_in_a_manifest_without_partition():
    form = form_of(dataset({"id": "int64", "country": "string"}, ["country"]))
    entries = [data_entry(0, partition="country=a"), data_entry(1), data_entry(2, partition="country=b")]
    assert by_spec(form, entries) == {1: [entries[0], entries[2]], 0: [entries[1]]}
    with pytest.raises(ValueError, match="no values under the spec"):
        data_manifest(form, entries, 1, 1)


def test_manifest_list_numbers_the_rows_of_a_snapshot_once():
    form = form_of(dataset({"id": "int64"}))
    data = data_entry(0, rows=10)
    rendered = [
        data_manifest(form, [data], 1, 0),
        delete_manifest(form, [delete_entry(data, version=2, vector_bytes=60)], 2, 0),
        data_manifest(form, [data_entry(1, rows=5)], 1, 0),
    ]
    manifests = [ListedManifest(path=f"s3://t/{n}.avro", facts=each.facts) for n, each in enumerate(rendered)]
    metadata, records = avro_records(manifest_list(manifests, 2, 1, 3))
    assert [record["first_row_id"] for record in records] == [0, None, 10]
    assert [record["content"] for record in records] == [0, 1, 0]
    assert (metadata["snapshot-id"], metadata["parent-snapshot-id"]) == ("2", "1")
    _, records = avro_records(manifest_list(manifests, 2, 1, 2))
    assert "first_row_id" not in records[0]


def test_manifest_list_of_an_empty_table_has_no_entries():
    metadata, records = avro_records(manifest_list([], 5, 4, 3))
    assert (records, metadata["sequence-number"]) == ([], "5")

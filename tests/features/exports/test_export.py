"""The tasks of an export cover its range, each part of it once."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.features.exports import tasks as export
from app.features.exports.tasks import ExportFormat, ExportQuery, ExportSpec, export_parts
from app.kernel.changelog.delivery_forms import ChangeForm
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateBucket, CreateDataset, CreateField, CreateSchema
from app.kernel.format.file_group import (
    ChangelogFile,
    ChangelogSegment,
    Slot,
    bucket_file_group,
    bucket_slot,
    is_shared,
    partition_of,
    shared_changes,
)
from app.kernel.format.halving import overlap
from tests.support.examples import a_third_of

FIELDS = [CreateField(name="id", type="int64")]
HALVED = define_dataset(CreateDataset(name="t", schema=CreateSchema(fields=FIELDS), record_key=["id"]))
KEYED = define_dataset(
    CreateDataset(
        name="t", schema=CreateSchema(fields=FIELDS), record_key=["id"], bucket=CreateBucket(count=4)
    )
)
KEYLESS = define_dataset(CreateDataset(name="t", schema=CreateSchema(fields=FIELDS)))
FILES = st.lists(st.tuples(st.integers(1, 40), st.sampled_from("abc"), st.integers(1, 400)), max_size=12)


def spec(dataset, query):
    return ExportSpec(
        dataset=dataset,
        query=query,
        format=ExportFormat.NDJSON,
        form=ChangeForm.TWO_EVENT,
        columns=None,
        where=None,
        partitions=None,
        target_bytes=1,
    )


def segments_of(files):
    found, first = [], 0
    for version, (count, group, size) in enumerate(files, 1):
        file = ChangelogFile(
            path=f"{version}",
            size_bytes=size,
            checksum="",
            row_count=count,
            schema_id=1,
            file_group=group,
            corrects_min=max(first - 5, 0) if group == "c" else None,
            corrects_max=first + count if group == "c" else None,
        )
        found.append(
            ChangelogSegment(
                file=file,
                row_count=count,
                first_offset=first,
                version=version,
                committed_at=datetime.now(UTC),
            )
        )
        first += count
    return found, first


def parts_of(dataset, query, files, since, until):
    segments, _ = files
    selected = [each for each in segments if each.end_offset > since and each.first_offset < until]
    return export_parts(spec(dataset, query), selected, since=since, until=until, earliest=0, prefix="part")


@pytest.fixture(autouse=True, scope="module")
def small_parts():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "_PART_ROWS", 25)
        patch.setattr(export, "_PART_BYTES", 600)
        yield


@settings(max_examples=a_third_of(60))
@given(files=FILES.map(segments_of), data=st.data())
@pytest.mark.parametrize(
    ("dataset", "query"), [(KEYED, ExportQuery.CHANGES), (KEYLESS, ExportQuery.INCREMENTAL)]
)
def test_parts_by_offset_cover_the_range(dataset, query, files, data):
    segments, head = files
    since = data.draw(st.integers(0, head))
    until = data.draw(st.integers(since, head))
    parts = parts_of(dataset, query, files, since, until)
    positions = [since, *(part.last for part in parts)]
    assert [part.first for part in parts] == positions[:-1]
    assert positions[-1] == until
    assert [part.prefix for part in parts] == [f"part-{number:05d}" for number in range(len(parts))]
    for part in parts:
        assert 0 < part.last - part.first <= 25
        selected = [offset for each in part.segments for offset in range(each.first_offset, each.end_offset)]
        assert set(range(part.first, part.last)) <= set(selected)
        takes_back = {each.version for each in segments if each.file.corrects_max is not None} & {
            each.version for each in segments if each.end_offset > since and each.first_offset < until
        }
        may = {
            each.version
            for each in segments
            if each.version in takes_back
            and each.file.corrects_min < part.last
            and each.file.corrects_max >= part.first
        }
        assert {each.version for each in part.retracting} == (may if dataset is KEYLESS else set())


@settings(max_examples=a_third_of(60))
@given(files=FILES.map(segments_of))
def test_file_group_is_in_one_part(files):
    segments, head = files
    parts = parts_of(KEYED, ExportQuery.INCREMENTAL, files, 0, head)
    assert sorted(each.version for part in parts for each in part.segments) == [
        each.version for each in segments
    ]
    groups = [{each.file.file_group for each in part.segments} for part in parts]
    assert sum(map(len, groups)) == len(set().union(*groups))
    for part in parts:
        versions = [(each.file.file_group, each.version) for each in part.segments]
        assert versions == sorted(versions)
        assert (part.first, part.last) == (0, head)


SHARED = st.lists(
    st.tuples(
        st.integers(1, 40),
        st.sampled_from(
            ["bucket-00000", "bucket-00001", "bucket-00005", "shared", "p=1/shared", "p=2/bucket-00001"]
        ),
        st.integers(1, 400),
    ),
    max_size=12,
)


@settings(max_examples=a_third_of(60))
@given(files=SHARED.map(segments_of))
def test_keys_of_a_bucket_are_in_one_part_where_file_groups_share_files(files):
    """Each bucket of a partition has exactly one part that takes its changes, with all files that may have some."""
    segments, head = files
    parts = parts_of(KEYED, ExportQuery.INCREMENTAL, files, 0, head)
    assert len({part.prefix for part in parts}) == len(parts)
    for partition in ("", "p=1", "p=2"):
        of_partition = [each for each in segments if partition_of(each.file.file_group) == partition]
        for bucket in range(4):
            group = bucket_file_group(Slot(partition_path=partition, bucket=bucket))
            holding = [
                each for each in of_partition if each.file.file_group in (group, shared_changes(partition))
            ]
            taking = [
                part
                for part in parts
                if bucket % part.shares == part.share and any(each in part.segments for each in holding)
            ]
            assert len(taking) == bool(holding)
            for part in taking:
                assert [each for each in part.segments if each in holding] == holding


HALVES = st.lists(
    st.tuples(
        st.integers(1, 40),
        st.sampled_from(
            [*(f"bucket-{number:05d}-of-{of}" for of in (1, 2, 8) for number in range(of)), "shared"]
        ),
        st.integers(1, 400),
    ),
    max_size=12,
)


@settings(max_examples=a_third_of(100))
@given(files=HALVES.map(segments_of))
def test_keys_are_in_one_part_where_buckets_were_halved(files):
    """The changes of a key may be in several file groups: one part has all of them."""
    segments, head = files
    parts = parts_of(HALVED, ExportQuery.INCREMENTAL, files, 0, head)
    assert len({part.prefix for part in parts}) == len(parts)
    for number in range(64):
        key = Slot(partition_path="", bucket=number, of=64)
        holding = [
            each
            for each in segments
            if is_shared(each.file.file_group) or overlap(bucket_slot(each.file.file_group), key)
        ]
        taking = [
            part
            for part in parts
            if number % part.shares == part.share and any(each in part.segments for each in holding)
        ]
        assert len(taking) == bool(holding)
        for part in taking:
            assert [each for each in part.segments if each in holding] == holding

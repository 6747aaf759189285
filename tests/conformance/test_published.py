"""What is published is what the service answers, and it leaves nothing out."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from app.kernel.format.dataset import DatasetDefinition
from tests.conformance.histories import TRIED, eighth, is_tried, share
from tests.conformance.kinds import AXES, Kind, defined, distinct_kinds, every_kind, legal_kinds
from tests.conformance.operations import LIVE_KEYS, MOVES, WAYS, Way
from tests.conformance.published import explained, explained_way, published, values_of

DOCUMENT = Path(__file__).parents[2] / "docs" / "conformance.md"


def test_conformance_document_equals_the_published_results() -> None:
    again = "write it again: python -m tests.conformance.published > docs/conformance.md"
    assert DOCUMENT.read_text(encoding="utf-8") == published(), again


def test_every_refusal_has_a_pointer_and_a_reason() -> None:
    refusals = [definition for kind in every_kind() if isinstance(definition := defined(kind), tuple)]
    refusals += [refusal for kind in legal_kinds() for way in WAYS if (refusal := way.refusal(_made(kind)))]
    assert len(refusals) > 10_000
    for refusal in refusals:
        for pointer, detail in refusal:
            assert pointer.startswith("/")
            assert len(detail) > 20


def _made(kind: Kind) -> DatasetDefinition:
    definition = defined(kind)
    assert isinstance(definition, DatasetDefinition)
    return definition


def test_table_explains_every_kind_that_cannot_be_registered() -> None:
    unexplained = [
        kind.name for kind in every_kind() if isinstance(defined(kind), tuple) and not explained(kind)
    ]
    assert unexplained == []
    assert not [kind.name for kind in legal_kinds() if explained(kind)]


def test_table_explains_every_refused_way_to_write() -> None:
    for kind, way in product(legal_kinds(), WAYS):
        assert bool(way.refusal(_made(kind))) == explained_way(kind, way), (kind.name, way.name)


@pytest.mark.parametrize(
    "axes",
    [
        {"way", "record_key", "table_type", "merge_mode", "bucket.mode"},
        {"way", "record_key", "table_type", "changelog.producer"},
        {"way", "record_key", "bucket.mode", "changelog.producer"},
        {"way", "record_key", "merge_mode", "changelog.producer"},
        {"way", "record_key", "table_type", "index.type"},
        {"way", "record_key", "bucket.mode", "index.type"},
        {"record_key", "table_type", "bucket.mode", "index.type"},
    ],
    ids=lambda axes: " × ".join(sorted(axes)),
)
def test_covering_share_contains_every_combination_of_axes(axes: set[str]) -> None:
    def seen(tried: Iterable[tuple[Kind, Way]]) -> set[tuple[str, ...]]:
        named = [axis for axis in AXES if axis in axes]
        return {
            (way.name if "way" in axes else "", *(_shown(kind)[axis] for axis in named))
            for kind, way in tried
        }

    assert seen(_legal()) - seen((each.kind, each.way) for each in share()) == set()


@cache
def _legal() -> list[tuple[Kind, Way]]:
    """All combinations with partitions, but for kinds whose defaults only are other names for a value."""
    kinds = [
        kind
        for kind in distinct_kinds()
        if kind.on("partition_by") == "partitions"
        and kind.on("bucket.mode") != "(default)"
        and not (kind.keyed and kind.on("merge_mode") == "(default)")
    ]
    return [(kind, way) for kind in kinds for way in TRIED if is_tried(kind, way)]


@cache
def _shown(kind: Kind) -> dict[str, str]:
    """Its values, where they stand for what they come to."""
    index = _made(kind).index
    shown = dict(values_of(kind)) | {"index.type": "" if index is None else index.value}
    return shown if kind.keyed else shown | {"bucket.mode": f"{_made(kind).bucket.shuffle_by_partition}"}


def test_every_way_and_every_axis_is_covered() -> None:
    assert set(TRIED) == {*WAYS, LIVE_KEYS, MOVES}
    assert set(AXES) == {axis for axis, _ in values_of(every_kind()[0])}


def test_eighth_of_the_share_depends_on_the_seed_only() -> None:
    covering = list(share())
    first, other = eighth(covering, "a"), eighth(covering, "b")
    assert first == eighth(covering, "a") != other
    assert len(first) == len(covering) // 8
    assert set(first) < set(covering)

"""How a round is shared among partitions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.infra.kafka.messages import OffsetRange
from app.infra.kafka.ranges import share, split

COUNTS = st.dictionaries(st.integers(0, 50), st.integers(0, 10_000), max_size=20)


@given(COUNTS, st.integers(1, 20_000))
def test_a_round_is_as_full_as_it_can_be_and_even(available: dict[int, int], rows_max: int) -> None:
    shares = share(available, rows_max)
    assert sum(shares.values()) == min(rows_max, sum(available.values()))
    assert all(0 < count <= available[partition] for partition, count in shares.items())
    # A partition that has a message left got at least as many as any other, but for the rest of the division.
    for partition, count in available.items():
        if shares.get(partition, 0) < count:
            assert shares.get(partition, 0) >= max(shares.values(), default=0) - 1


@given(COUNTS, st.integers(1, 10), st.integers(1, 5_000))
def test_ranges_are_in_one_group_each(available: dict[int, int], groups_max: int, rows_min: int) -> None:
    ranges = [OffsetRange(partition, 5, 5 + count) for partition, count in available.items() if count]
    groups = split(ranges, groups_max, rows_min)
    assert sorted(part for group in groups for part in group) == sorted(ranges)
    assert len(groups) <= groups_max
    if len(groups) > 1:
        assert len(groups) * rows_min <= sum(available.values())

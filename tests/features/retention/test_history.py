"""Where histories begin, and which ones can be requested."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.features.retention.values import beginning_of
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.policy_rules import service_faults
from app.kernel.format.policies import HistoryPolicy, TableServices, TimelinePolicy
from tests.support.lakehouse import definition

_AGES = st.lists(st.integers(0, 50), min_size=1, max_size=12).map(lambda ages: sorted(ages, reverse=True))
_BOUND = st.none() | st.integers(1, 15)


@given(ages=_AGES, versions=_BOUND, seconds=_BOUND)
def test_version_stays_while_either_bound_keeps_it(
    ages: list[int], versions: int | None, seconds: int | None
) -> None:
    """`ages`: how many seconds ago the versions from 1 on were committed."""
    head = len(ages)
    policy = HistoryPolicy(versions=versions, seconds=seconds)
    latest_then = sum(age >= (seconds or 0) for age in ages)
    beginning = beginning_of(policy, head=head, latest_then=latest_then)

    def is_kept(version: int) -> bool:
        among_the_last = versions is not None and version > head - versions
        # It was the latest until the next one came.
        until = ages[version] if version < head else -1
        was_the_latest = seconds is not None and until < seconds
        return among_the_last or was_the_latest or policy == HistoryPolicy()

    assert [version for version in range(head + 1) if is_kept(version)] == list(range(beginning, head + 1))


@pytest.mark.parametrize(
    ("services", "pointers"),
    [
        (TableServices(), []),
        (TableServices(history=HistoryPolicy(versions=1), timeline=None), []),
        (TableServices(history=HistoryPolicy(seconds=0)), []),
        (TableServices(history=HistoryPolicy()), ["/services/history"]),
        (TableServices(history=HistoryPolicy(versions=0)), ["/services/history/versions"]),
        (
            TableServices(history=HistoryPolicy(versions=2**63, seconds=-1)),
            ["/services/history/versions", "/services/history/seconds"],
        ),
        (TableServices(history=HistoryPolicy(seconds=2**31)), ["/services/history/seconds"]),
        (TableServices(timeline=TimelinePolicy(instants=99)), ["/services/timeline/instants"]),
        (TableServices(timeline=TimelinePolicy(instants=100)), []),
        (TableServices(timeline=TimelinePolicy(instants=1_000_001)), ["/services/timeline/instants"]),
    ],
)
def test_invalid_history_policies_are_refused(services: TableServices, pointers: list[str]) -> None:
    assert [pointer for pointer, _ in service_faults(services, definition())] == pointers


def test_new_datasets_keep_a_week_and_stored_definitions_what_they_had() -> None:
    assert definition().services.history == HistoryPolicy(seconds=7 * 86_400)
    stored = msgspec.to_builtins(definition())
    before_services = {name: value for name, value in stored.items() if name != "services"}
    for kept in (before_services, stored | {"services": stored["services"] | {"history": None}}):
        assert msgspec.convert(kept, DatasetDefinition).services.history is None

"""Patterns of grants mean the same in Python and in SQL."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import literal, select

from app.access.tenants.values import Grant, KeyScope, Principal
from app.infra.db.any_of import matches_any
from app.infra.db.session import Database
from tests.support.examples import a_third_of


@given(st.text("ab_.*-", min_size=1, max_size=8), st.text("ab_.-", min_size=1, max_size=8))
@example("a_b", "aab")
@example("a*a", "a")
@example("*a*b*", "xaxbx")
@settings(deadline=None, max_examples=a_third_of(150), suppress_health_check=list(HealthCheck))
def test_pattern_matches_like_its_regular_expression(database: Database, pattern: str, name: str) -> None:
    expected = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name) is not None
    assert Grant(datasets=pattern).matches(name) == expected
    with database.credential(bytes(32)) as connection:
        found = connection.execute(select(matches_any(literal(name), ["zz", pattern]))).scalar_one()
    assert found == expected


@pytest.mark.parametrize(
    ("name", "scopes"),
    [("orders_1", {"read"}), ("orders_2", {"read", "write"}), ("other", set())],
)
def test_scopes_on_a_dataset_are_those_of_all_matching_grants(name: str, scopes: set[str]) -> None:
    principal = Principal(
        tenant_id="t",
        actor="k",
        scopes=frozenset({KeyScope.READ, KeyScope.WRITE}),
        grants=(
            Grant(datasets="orders_*", scopes=(KeyScope.READ, KeyScope.MANAGE)),
            Grant(datasets="orders_2"),
        ),
    )
    assert {scope.value for scope in principal.scopes_on(name)} == scopes
    assert principal.reaches(name) == bool(scopes)
    assert principal.patterns(KeyScope.WRITE) == ("orders_2",)

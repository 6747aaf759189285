"""Filters of Spark as conditions of the service, without Spark."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from headwater_client.spark.conditions import condition, conjunction, split

A = ("a",)


@pytest.mark.parametrize(
    ("each", "text"),
    [
        (EqualTo(A, 5), '"a" = 5'),
        (GreaterThan(A, -1.5), '"a" > -1.5'),
        (GreaterThanOrEqual(A, Decimal("1E+2")), '"a" >= 100'),
        (LessThan(A, date(2026, 11, 21)), "\"a\" < DATE '2026-11-21'"),
        (
            LessThanOrEqual(A, datetime(2026, 11, 21, 10, tzinfo=UTC)),
            "\"a\" <= TIMESTAMP '2026-11-21T10:00:00Z'",
        ),
        (
            EqualTo(A, datetime.fromisoformat("2026-11-21T10:00:00")),
            "\"a\" = TIMESTAMP '2026-11-21T10:00:00'",
        ),
        (EqualTo(A, "it's"), "\"a\" = 'it''s'"),
        (EqualTo(A, True), '"a" = TRUE'),
        (EqualTo(A, b"\x00\xff"), "\"a\" = X'00ff'"),
        (EqualTo(("place", 'ci"ty'), 1), '"place"."ci""ty" = 1'),
        (EqualNullSafe(A, 1), '"a" = 1'),
        (Not(EqualNullSafe(A, 1)), '"a" IS NULL OR NOT ("a" = 1)'),
        (Not(In(A, (1, 2))), 'NOT ("a" IN (1, 2))'),
        (IsNull(A), '"a" IS NULL'),
        (Not(IsNotNull(A)), 'NOT ("a" IS NOT NULL)'),
        (StringStartsWith(A, "50%_!"), "\"a\" LIKE '50!%!_!!%' ESCAPE '!'"),
        (StringEndsWith(A, "x"), "\"a\" LIKE '%x' ESCAPE '!'"),
        (StringContains(A, "x"), "\"a\" LIKE '%x%' ESCAPE '!'"),
        (EqualTo(A, float("nan")), None),
        (EqualTo(A, None), None),
        (EqualTo(A, "\0"), None),
        (In(A, (1, None)), None),
        (In(A, ()), None),
        (Not(EqualTo(A, None)), None),
        (StringStartsWith(A, "x" * 1_000), None),
    ],
)
def test_filters_are_conditions_or_stay_with_spark(each, text):
    assert condition(each) == text


def test_conditions_fit_into_one_filter():
    wide = [In(A, tuple(range(n, n + 900))) for n in range(3)]
    conditions, others = split([*wide, EqualTo(A, None), EqualTo(A, 1)])
    assert others == [wide[2], EqualTo(A, None)]
    assert conditions[-1] == '"a" = 1'
    assert len(conjunction(["b > 0", *conditions])) < 10_000
    assert conjunction([]) is None

"""Names that were probably meant."""

from __future__ import annotations

import pytest

from app.kernel.format.similar_names import mistyped, similar_names

KNOWN = ["id", "at", "parcel", "weight", "Place"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("parcl", "parcel"),
        ("pacrel", "parcel"),
        ("parcels", "parcel"),
        ("att", "at"),
        ("AT", "at"),
        ("place", "Place"),
        ("iq", "id"),
        ("prcl", None),
        ("x", None),
        ("", None),
        ("something", None),
    ],
)
def test_one_slip_is_recognised(name: str, meant: str | None) -> None:
    assert mistyped(name, KNOWN) == meant


def test_case_goes_before_a_slip_and_only_the_first_names_are_compared() -> None:
    assert mistyped("ID", ["IDs", "id"]) == "id"
    many = [f"column{number}" for number in range(200)]
    assert mistyped("parcl", [*many, "parcel"]) is None
    assert mistyped("PARCEL", [*many, "parcel"]) == "parcel"


def test_similar_names_are_the_closest_first() -> None:
    assert similar_names("prcl", KNOWN) == ["parcel"]
    assert similar_names("PLACE", ["place", "Place", "palace"]) == ["place", "Place"]
    assert similar_names("parcel" * 50, ["parcel" * 49]) == []

"""Slots of rounds that read from elsewhere."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from app.features.sources.errors import SourcesBusy
from app.features.sources.service.fetch import fetch_slots, fetching


def test_a_tenant_holds_half_and_all_hold_no_more_than_there_are() -> None:
    slots = fetch_slots(4)
    with ExitStack() as held:
        for tenant in ("a", "a", "b"):
            held.enter_context(fetching(slots, tenant))
        with pytest.raises(SourcesBusy), fetching(slots, "a"):
            pass
        held.enter_context(fetching(slots, "c"))
        with pytest.raises(SourcesBusy), fetching(slots, "d"):
            pass
    with fetching(slots, "a"), fetching(slots, "a"):
        pass


def test_one_slot_is_of_use_to_each_tenant_and_free_after_an_error() -> None:
    slots = fetch_slots(1)
    with pytest.raises(ZeroDivisionError), fetching(slots, "a"):
        _ = 1 / 0
    with fetching(slots, "b"):
        pass

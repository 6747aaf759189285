"""Slots of rounds that read from elsewhere."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from app.features.sources.service.fetch_slots import FetchSlots
from app.kernel.format.errors import SourcesBusy


def test_a_tenant_holds_half_and_all_hold_no_more_than_there_are() -> None:
    slots = FetchSlots(4)
    with ExitStack() as held:
        for tenant in ("a", "a", "b"):
            held.enter_context(slots.slot(tenant))
        with pytest.raises(SourcesBusy), slots.slot("a"):
            pass
        held.enter_context(slots.slot("c"))
        with pytest.raises(SourcesBusy), slots.slot("d"):
            pass
    with slots.slot("a"), slots.slot("a"):
        pass


def test_one_slot_is_of_use_to_each_tenant_and_free_after_an_error() -> None:
    slots = FetchSlots(1)
    with pytest.raises(ZeroDivisionError), slots.slot("a"):
        _ = 1 / 0
    with slots.slot("b"):
        pass

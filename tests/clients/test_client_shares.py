"""The client makes shares and recipients, and looks after them."""

from __future__ import annotations

import msgspec
import pytest

from headwater_client import Dataset, Headwater, Problem
from headwater_client.models import CreateRecipientGrant, CreateSharedDataset


def test_shares_and_recipients_are_made_changed_and_deleted(headwater: Headwater, orders: Dataset) -> None:
    share = headwater.create_share(
        "sales", [CreateSharedDataset(name="orders", as_="Orders")], idempotency_key="s"
    )
    assert (
        headwater.create_share(
            "sales", [CreateSharedDataset(name="orders", as_="Orders")], idempotency_key="s"
        ).id
        == share.id
    )
    assert [each.table for each in share.datasets] == ["sales.default.Orders"]
    assert headwater.get_share("SALES") == share
    share = headwater.change_share(share, deleted_rows="vector")
    assert [each.deleted_rows for each in headwater.shares()] == ["vector"]
    grants = [CreateRecipientGrant(dataset="orders", mask=("note",))]
    recipient = headwater.create_recipient(share, "acme", grants=grants)
    assert set(msgspec.to_builtins(recipient.profile)) >= {
        "shareCredentialsVersion",
        "endpoint",
        "bearerToken",
    }
    assert [each.id for each in headwater.recipients(share)] == [recipient.id]
    changed_recipient = headwater.change_recipient(share, "acme", grants=None)
    assert changed_recipient.grants is None
    again = headwater.rotate_recipient_token(share, recipient, overlap_seconds=0)
    assert again.profile.bearerToken != recipient.profile.bearerToken
    headwater.delete_recipient(share, recipient)
    with pytest.raises(Problem, match="recipient"):
        headwater.get_recipient(share, "acme")
    headwater.delete_share(share)
    assert list(headwater.shares()) == []

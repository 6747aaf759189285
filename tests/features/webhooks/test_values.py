"""The values of webhooks."""

from __future__ import annotations

import pytest

from app.features.webhooks.values import WebhookDefinition


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://hooks.example.com:8443/in?token=x", "hooks.example.com:8443"),
        ("https://user:secret@example.com/in", "example.com"),
        (
            "kafka://a.example.com:9092,b.example.com:9092/changes",
            "a.example.com:9092,b.example.com:9092/changes",
        ),
    ],
)
def test_the_name_is_the_description_or_where_messages_go(url: str, name: str) -> None:
    assert WebhookDefinition(url=url).name == name
    assert WebhookDefinition(url=url, description="pager").name == "pager"

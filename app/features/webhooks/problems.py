"""The HTTP statuses of the errors of webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.features.webhooks.errors import InvalidWebhook, WebhookGivenUp
from app.kernel.format.errors import HeadwaterError

PROBLEMS: Final[Mapping[type[HeadwaterError], int]] = {
    InvalidWebhook: 422,
    WebhookGivenUp: 502,
}

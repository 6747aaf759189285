"""The JSON forms of webhooks: what is sent to register and change them, and what is told of them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from app.changelog.forms import ChangeForm
from app.changes.positions import StartingPosition
from app.consumers.values import MaxLag
from app.http.problems import fault_document
from app.http.query_parameters import INT64_MAX
from app.webhooks.service.webhooks import Registration, WebhookChange
from app.webhooks.values import (
    Delivery,
    DeliveryFormat,
    DeliveryState,
    Reply,
    Webhook,
    WebhookDefinition,
    WebhookEvents,
    WebhookState,
)

BATCH_CHANGES_MAX = 1_000

_Batch = Annotated[int, msgspec.Meta(ge=1, le=BATCH_CHANGES_MAX)]
_Description = Annotated[str, msgspec.Meta(max_length=1_000)]
_Offset = Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)]
_PROBLEM = msgspec.Meta(extra_json_schema={"$ref": "#/components/schemas/Problem"})


class NewWebhook(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A webhook to register. `since`: the position to start at. `secret`: one is made unless it is given.

    `events`: `changes` of rows, or which `partitions` are done; then positions count events of partitions, and the
    members that say how changes are told stay out.
    """

    dataset: str
    url: str
    events: WebhookEvents = WebhookEvents.CHANGES
    form: ChangeForm = ChangeForm.TWO_EVENT
    columns: list[str] | None = None
    where: str | None = None
    partitions: list[str] | None = None
    since: _Offset | Literal["earliest", "now"] = "now"
    batch_changes_max: _Batch = 100
    secret: str | None = None
    description: _Description | None = None
    max_lag: MaxLag | None = None


class WebhookPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to change of a webhook; what is left out stays. `since`: the position to go on from, forward or back."""

    url: str | msgspec.UnsetType = msgspec.UNSET
    form: ChangeForm | msgspec.UnsetType = msgspec.UNSET
    columns: list[str] | msgspec.UnsetType | None = msgspec.UNSET
    where: str | msgspec.UnsetType | None = msgspec.UNSET
    partitions: list[str] | msgspec.UnsetType | None = msgspec.UNSET
    since: _Offset | Literal["earliest", "now"] | msgspec.UnsetType = msgspec.UNSET
    batch_changes_max: _Batch | msgspec.UnsetType = msgspec.UNSET
    description: _Description | msgspec.UnsetType | None = msgspec.UNSET
    max_lag: MaxLag | msgspec.UnsetType | None = msgspec.UNSET
    state: WebhookState | msgspec.UnsetType = msgspec.UNSET


class WebhookLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """Where a webhook's resources are."""

    self_: str
    deliveries: str
    dataset: str


class WebhookResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook. The changes before `position` are done with, `pending` more are there. `error` says why it was paused
    by the service, and `failures` how many messages in a row were given up.
    """

    id: str
    dataset_id: str
    dataset: str
    url: str
    state: WebhookState
    events: WebhookEvents
    form: ChangeForm
    columns: list[str] | None
    where: str | None
    partitions: list[str] | None
    batch_changes_max: int
    description: str | None
    max_lag: MaxLag
    position: int
    pending: int
    failures: int
    error: Annotated[dict[str, Any], _PROBLEM] | None
    revision: int
    created_at: datetime
    links: WebhookLinks


class WebhookWithSecretResponse(WebhookResponse, frozen=True, kw_only=True):
    """A webhook with its secret, which is told only now."""

    secret: str


class WebhookPage(msgspec.Struct, frozen=True, kw_only=True):
    """Webhooks, the newest first."""

    items: list[WebhookResponse]
    next_page_token: str | None


class WebhookSecret(msgspec.Struct, frozen=True, kw_only=True):
    """A new secret, which is told only now. The one before signs along for `overlap_seconds`."""

    secret: str
    overlap_seconds: int


class DeliveryResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A message: the changes from `since` to before `next_since`. Its `id` is the header `webhook-id`.

    `status` and `error` are of the last attempt.
    """

    id: str
    webhook_id: str
    since: int
    next_since: int
    state: DeliveryState
    attempts: int
    next_attempt_at: datetime | None
    status: int | None
    error: str | None
    created_at: datetime
    ended_at: datetime | None


class DeliveryPage(msgspec.Struct, frozen=True, kw_only=True):
    """Messages, the newest first."""

    items: list[DeliveryResponse]
    next_page_token: str | None


class Redelivered(msgspec.Struct, frozen=True, kw_only=True):
    """How many messages are sent again."""

    deliveries: int


class WebhookTest(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a test: whether the receiver took the message, its status and, if it did not, what was wrong."""

    delivered: bool
    status: int | None
    error: str | None
    seconds: float


def registration(request: NewWebhook) -> Registration:
    """The webhook that a request asks for."""
    return Registration(
        definition=WebhookDefinition(
            url=request.url,
            events=request.events,
            telling=DeliveryFormat(
                form=request.form,
                columns=_tuple(request.columns),
                where=request.where,
                partitions=_tuple(request.partitions),
            ),
            batch_changes_max=request.batch_changes_max,
            description=request.description,
        ),
        since=_position(request.since),
        secret=request.secret,
        max_lag=request.max_lag or MaxLag(),
    )


def changed_webhook(webhook: Webhook, patch: WebhookPatch) -> WebhookChange:
    """What a webhook becomes."""
    before = webhook.definition
    telling = DeliveryFormat(
        form=_chosen(patch.form, before.telling.form),
        columns=_chosen(_tuple(patch.columns), before.telling.columns),
        where=_chosen(patch.where, before.telling.where),
        partitions=_chosen(_tuple(patch.partitions), before.telling.partitions),
    )
    definition = WebhookDefinition(
        url=_chosen(patch.url, before.url),
        events=before.events,
        telling=telling,
        batch_changes_max=_chosen(patch.batch_changes_max, before.batch_changes_max),
        description=_chosen(patch.description, before.description),
    )
    return WebhookChange(
        definition=definition,
        state=_chosen(patch.state, webhook.state),
        max_lag=_chosen(patch.max_lag, webhook.max_lag) or MaxLag(),
        since=None if patch.since is msgspec.UNSET else _position(patch.since),
    )


def webhook_response(webhook: Webhook) -> WebhookResponse:
    """The JSON form of a webhook."""
    return WebhookResponse(**_members(webhook))


def webhook_with_secret_response(webhook: Webhook, secret: str) -> WebhookWithSecretResponse:
    """The JSON form of a webhook with its secret."""
    return WebhookWithSecretResponse(**_members(webhook), secret=secret)


def delivery_response(delivery: Delivery) -> DeliveryResponse:
    """The JSON form of a message."""
    return msgspec.convert(delivery, DeliveryResponse, from_attributes=True)


def webhook_test_response(reply: Reply) -> WebhookTest:
    """The JSON form of what came of a test."""
    return WebhookTest(
        delivered=reply.delivered, status=reply.status, error=reply.error, seconds=round(reply.seconds, 3)
    )


def webhook_path(webhook_id: str) -> str:
    """The path of a webhook's resource."""
    return f"/webhooks/{webhook_id}"


def _members(webhook: Webhook) -> dict[str, Any]:
    definition, path = webhook.definition, webhook_path(webhook.id)
    telling = definition.telling
    return {
        "id": webhook.id,
        "dataset_id": webhook.dataset_id,
        "dataset": webhook.dataset,
        "url": definition.url,
        "state": webhook.state,
        "events": definition.events,
        "form": telling.form,
        "columns": _list(telling.columns),
        "where": telling.where,
        "partitions": _list(telling.partitions),
        "batch_changes_max": definition.batch_changes_max,
        "description": definition.description,
        "max_lag": webhook.max_lag,
        "position": webhook.position,
        "pending": webhook.pending,
        "failures": webhook.failures,
        "error": None if webhook.error is None else fault_document(webhook.error),
        "revision": webhook.revision,
        "created_at": webhook.created_at,
        "links": WebhookLinks(
            self_=path, deliveries=f"{path}/deliveries", dataset=f"/datasets/{webhook.dataset_id}"
        ),
    }


def _position(since: int | str) -> int | StartingPosition:
    return since if isinstance(since, int) else StartingPosition(since)


def _chosen(value: Any, otherwise: Any) -> Any:
    return otherwise if value is msgspec.UNSET else value


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _list(value: tuple[str, ...] | None) -> list[str] | None:
    return None if value is None else list(value)

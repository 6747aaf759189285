"""Webhooks: their definitions, and the states of their messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
import pyarrow as pa

from app.core.changes.positions import ReaderStart, StartingPosition
from app.core.changes.values import DeliveryFormat
from app.core.consumers.values import ConsumerPlace, MaxLag
from app.features.webhooks.errors import WebhookGivenUp
from app.infra.kafka.connection import Mechanism, Protocol, servers_of
from app.kernel.format.errors import Fault
from app.kernel.sql.conditions.row_access import RowAccess

# The status by which a receiver refuses all further messages.
GONE: Final = 410
ATTEMPTS_MAX: Final = 10
"""The most attempts of a webhook that are stored, with what was answered: its latest."""
TOPIC_SCHEME: Final = "kafka://"
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


class RefusedUrl(Exception):
    """Nothing may be sent to a URL, or its host is not known; the message says why."""


class ReceiverKind(str, Enum):
    """Where messages go: they are posted to a URL, or written to a topic of Kafka."""

    URL = "url"
    TOPIC = "topic"


class WebhookState(str, Enum):
    """Whether changes are sent. Whatever is paused waits where it is."""

    ACTIVE = "active"
    PAUSED = "paused"


class WebhookEvents(str, Enum):
    """What a webhook delivers: changes of rows, events of partitions that were done or reopened, or alerts."""

    CHANGES = "changes"
    PARTITIONS = "partitions"
    ALERTS = "alerts"


class AlertEventState(str, Enum):
    """What has happened to an alert: it became active, or is active no longer."""

    FIRING = "firing"
    RESOLVED = "resolved"


class AlertEvent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An alert of a tenant that was fired or resolved, as its messages have it.

    `labels`: what it is about: `tenant`, `dataset` by name, `dataset_id`; only the first for what is of the whole
    tenant. `detail`: the value for which its condition holds; once it is resolved, for how long it was active, and
    that value. `action`: what to do; empty once it is resolved. `runbook`: the document with what to do.
    """

    id: str
    alert: str
    severity: str
    state: AlertEventState
    labels: dict[str, str]
    summary: str
    detail: str
    action: str
    runbook: str
    fired_at: datetime
    resolved_at: datetime | None = None


def alert_members(webhook_id: str, since: int, next_since: int, alert: AlertEvent) -> dict[str, Any]:
    """The members of an alert in messages and in responses, in their order."""
    places = {"webhook_id": webhook_id, "since": since, "next_since": next_since}
    return {**places, **msgspec.structs.asdict(alert)}


class HeldAlert(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An alert of a tenant whose condition holds, or held lately. `since`: when it began to hold.

    `fired_at`: None until it has held for its time. `event`: the number of its event then. `right_since`: since when it
    does not hold; None while it does. `dataset_id`, `dataset`: what it is about; None for the whole tenant.
    """

    since: datetime
    dataset_id: str | None
    dataset: str | None
    detail: str = ""
    fired_at: datetime | None = None
    event: int | None = None
    right_since: datetime | None = None


HeldAlerts = Mapping[str, HeldAlert]
"""The states of a tenant's alerts, by alert and dataset."""
DecideAlerts = Callable[[str, int, HeldAlerts], tuple[HeldAlerts, Sequence[AlertEvent]]]
"""Takes the name of the tenant, the number of its next event, and the states; returns those after them, and events
about the difference."""


class NumberedAlert(NamedTuple):
    """An event with its number, which is the position before it."""

    number: int
    event: AlertEvent


class AlertPage(NamedTuple):
    """Events from a position on, and the position after them."""

    items: Sequence[NumberedAlert]
    next_since: int


class AlertStart(NamedTuple):
    """Where a webhook begins: with all events from `first_event` on, and before these with `active_events`.

    All are numbers of events.
    """

    first_event: int
    active_events: tuple[int, ...] = ()

    @property
    def position(self) -> int:
        """The first position."""
        return min(self.active_events, default=self.first_event)


class DeliveryState(str, Enum):
    """The state of a message: it waits for its next attempt, was delivered, or was given up."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"


class TopicValue(str, Enum):
    """What a message of a topic holds: the change as the feed has it, or the row alone, and nothing for a deletion."""

    CHANGE = "change"
    ROW = "row"


class TopicFormat(str, Enum):
    """The format of the keys and the values of messages: JSON, or Avro with a schema registry."""

    JSON = "json"
    AVRO = "avro"


class ChangeMessage(NamedTuple):
    """A message of a topic. Without a `value` it is a tombstone. `version`, `offset`: of the change, as text."""

    key: bytes | None
    value: bytes | None
    version: bytes | None
    offset: bytes | None


Register = Callable[[str, str], int]
"""Takes a subject and an Avro schema, and returns the id of the schema."""


class ReceiverCredentials(NamedTuple):
    """What identifies the service to the receiver of a webhook.

    `secrets` sign, all of them, the newest first; of a topic, the password for its brokers. `registry_password`: for
    the schema registry of a topic.
    """

    secrets: tuple[str, ...]
    registry_password: str | None


class TopicOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to write to a topic."""

    format: TopicFormat = TopicFormat.JSON
    """The format of keys and values: `json`, the default, or `avro` with a schema registry."""
    registry_url: Annotated[str, msgspec.Meta(max_length=2_000)] | None = None
    """The schema registry, which has Confluent's REST API. Required by `avro`."""
    registry_username: Annotated[str, msgspec.Meta(max_length=1_000)] | None = None
    """The name by which the service identifies itself to the registry."""
    value: TopicValue = TopicValue.CHANGE
    """`change`, the default: the change as JSON, as the feed has it in the `form` of the webhook. `row`: the row alone,
    and for a deletion a tombstone, which compaction of the topic understands; needs the form `upsert` and a record key.
    """
    security_protocol: Protocol = Protocol.PLAINTEXT
    """How connections are encrypted, and whether the service identifies itself; by default `plaintext`."""
    sasl_mechanism: Mechanism = Mechanism.PLAIN
    """How the password, which is the `secret` of the webhook, is sent; by default `PLAIN`."""
    username: Annotated[str, msgspec.Meta(max_length=1_000)] | None = None
    """The name by which the service identifies itself."""
    certificate_authority: Annotated[str, msgspec.Meta(max_length=100_000)] | None = None
    """The PEM text of the authorities to trust; null for the public ones."""


class TopicAddress(NamedTuple):
    """Some brokers as `host:port`, and a topic."""

    servers: tuple[str, ...]
    topic: str

    @classmethod
    def of(cls, url: str) -> TopicAddress:
        """The address in a URL. Raises ValueError with the reason."""
        servers, _, topic = url.removeprefix(TOPIC_SCHEME).partition("/")
        if _TOPIC.fullmatch(topic) is None:
            raise ValueError(
                f"it names the topic {topic[:300]!r}; expected {TOPIC_SCHEME}host:port,host:port/topic"
            )
        return cls(servers_of(servers), topic)


class WebhookDefinition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a user has specified. `delivery_format` has no schema: each message has the latest one.

    `events`: what positions count, and messages hold up to `batch_changes_max` of; a message holds one alert. Only
    changes have a `delivery_format`. `kafka`: for the URL of a topic only.
    """

    url: str
    events: WebhookEvents = WebhookEvents.CHANGES
    delivery_format: DeliveryFormat = msgspec.field(name="telling", default=DeliveryFormat())
    batch_changes_max: int = 100
    description: str | None = None
    kafka: TopicOptions | None = None

    @property
    def receiver_kind(self) -> ReceiverKind:
        """Where its messages go."""
        return ReceiverKind.TOPIC if self.url.startswith(TOPIC_SCHEME) else ReceiverKind.URL

    @property
    def name(self) -> str:
        """What people call it: its description; without one the host of its URL, or the brokers and the topic."""
        if self.description:
            return self.description
        if self.receiver_kind is ReceiverKind.TOPIC:
            return self.url.removeprefix(TOPIC_SCHEME)
        return urlsplit(self.url).netloc.rpartition("@")[2]

    @property
    def registry_user(self) -> tuple[str, str] | None:
        """The schema registry and the user there, who has a password; None without a user."""
        options = self.kafka
        if options is None or options.registry_username is None:
            return None
        return options.registry_url or "", options.registry_username


class WebhookRetry(msgspec.Struct, frozen=True, kw_only=True):
    """The message that a webhook waits with, since its last attempt has failed."""

    delivery: str
    """The id of the message."""
    attempts: int
    """How often it was sent."""
    status: int | None
    """The HTTP status of the last answer; null if there was none."""
    error: str | None
    """What was wrong with the last attempt."""
    next_attempt_at: datetime | None
    """When it is sent again; null while the webhook is paused."""


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook as its users see it. `place`: what is before it is done with. `pending`: the number of changes from
    its offset on.

    `error`: why the service paused it, or gave up the last message. `paused_at`: None while it is active, and if that
    was not recorded. `failures`: messages given up in a row. `revision`
    counts its changes. `retry`: the next message, if it has failed. `dataset_id`, `dataset`: None for the alerts of all
    datasets.
    """

    id: str
    dataset_id: str | None
    dataset: str | None
    definition: WebhookDefinition
    state: WebhookState
    error: Fault | None
    paused_at: datetime | None
    failures: int
    retry: WebhookRetry | None
    revision: int
    place: ConsumerPlace
    pending: int
    max_lag: MaxLag
    created_at: datetime

    @property
    def behind(self) -> bool:
        """Whether changes, or rows of the version that it is within, wait."""
        return self.pending > 0 or self.place.snapshot is not None

    @property
    def access(self) -> RowAccess:
        """What its messages may show: what the key that registered it may see."""
        return self.definition.delivery_format.access


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One message: the changes from `since` up to `until`, in the same form whenever it is sent. Or rows of a version.

    `next_attempt_at`: when it is sent again, if it is, and its webhook is active. `status`, `error`: the HTTP status of
    the last attempt, and what was wrong with it.
    """

    id: str
    webhook_id: str
    since: ConsumerPlace
    until: ConsumerPlace
    state: DeliveryState
    attempts: int
    next_attempt_at: datetime | None
    status: int | None
    error: str | None
    created_at: datetime
    ended_at: datetime | None


class FormattedDelivery(Delivery, frozen=True, kw_only=True):
    """A message with the way in which its changes are delivered, the same whenever it is sent."""

    delivery_format: DeliveryFormat


class MessageContent(NamedTuple):
    """The changes, or events, of a message as a JSON array; changes also as the columns of their form."""

    json: bytes
    changes: pa.Table | None = None


class WebhookMessage(NamedTuple):
    """A message with what it holds. `record_key`: that of the dataset; empty without one."""

    delivery: FormattedDelivery
    content: MessageContent
    record_key: Sequence[str]


class DeliveryWork(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to do for a webhook.

    `next`: the message at its position, if one was begun. `redelivery`: of the earlier ones that are to be sent once
    more, the one that is due first. `next_seconds`, `redelivery_seconds`: how long until they are due, if there is one.
    """

    webhook: Webhook
    credentials: ReceiverCredentials
    next: FormattedDelivery | None
    next_seconds: float | None
    redelivery: FormattedDelivery | None
    redelivery_seconds: float | None


class WebhookAttempt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One attempt at a message, or a test."""

    delivery: str | None
    """The id of the message; None for a test message."""
    at: datetime
    """When the attempt had ended."""
    status: int | None
    """The HTTP status of the answer; None if there was none."""
    error: str | None
    """What was wrong; None if the receiver took the message."""
    seconds: float
    """From the begin of the attempt until the answer had arrived, or was given up."""
    answer: str
    """The first bytes of the answer's body, 1,024 at most, as text; empty if there was none."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one attempt. Without a `status` there was no response, and `error` is the reason.

    `retry_after_seconds`: the Retry-After of the receiver in seconds. `permanent`: a topic does not accept messages,
    and no outage is the reason. `answer`: the begin of the answer's body, as text.
    """

    status: int | None
    error: str | None
    seconds: float
    retry_after_seconds: float | None = None
    permanent: bool = False
    answer: str = ""

    @property
    def delivered(self) -> bool:
        """Whether the receiver took the message."""
        return self.error is None


def given_up(failures: int, reply: Reply) -> WebhookGivenUp:
    """The error of a webhook after this number of messages in a row that were given up; `reply`: to the last one."""
    reason = f"it answered {reply.status}" if reply.status else reply.error
    messages = "1 message was" if failures == 1 else f"{failures} messages in a row were"
    detail = f"{messages} given up; of the last one, {reason}"
    if reply.permanent:
        detail = f"the topic does not accept messages: {reply.error}"
    if reply.status == GONE:
        detail = "the receiver answered 410 Gone, which asks for no more messages"
    return WebhookGivenUp(detail, status=reply.status, failures=failures)


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook to register; see `WebhookStore.add`. Without a `secret` one is made.

    `registry_password`: for the schema registry of a topic.
    """

    definition: WebhookDefinition
    since: ReaderStart = StartingPosition.NOW
    secret: str | None = None
    registry_password: str | None = None
    max_lag: MaxLag = MaxLag()


class WebhookChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a webhook is to be from now on. `since`: where it goes on, if not where it is."""

    definition: WebhookDefinition
    state: WebhookState
    max_lag: MaxLag
    since: ReaderStart | None = None

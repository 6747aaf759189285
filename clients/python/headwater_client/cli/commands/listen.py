"""`headwater listen`: changes and alerts as webhook messages to a program of one's own machine."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import httpx2
import msgspec

from headwater_client.cli.arguments.moments import now
from headwater_client.cli.arguments.names import Names
from headwater_client.cli.arguments.positions import position
from headwater_client.cli.failure import CommandError, ExitCode
from headwater_client.cli.feed import resumed
from headwater_client.cli.printing.text import visible
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.cli.webhook_messages import Message, alert_message, message
from headwater_client.client import Headwater
from headwater_client.models import ChangeForm, Dataset, Webhook
from headwater_client.transport.connection import dataset_path
from headwater_client.webhook_signature import key_of, new_secret

_LOCAL: Final = "listen"
_ALERTS_SECONDS: Final = 5
_POLL_SECONDS: Final = 25
_PAUSES_SECONDS: Final = (1, 2, 5, 10, 30, 30, 30, 30, 30)
_TIMEOUT: Final = httpx2.Timeout(15, connect=5)
_ANSWER_MAX: Final = 200


class _AlertPage(msgspec.Struct, frozen=True, kw_only=True):
    items: list[msgspec.Raw]
    next_since: int


class _Page(msgspec.Struct, frozen=True, kw_only=True):
    changes: msgspec.Raw
    next_since: int | str
    pending: int
    schema_id: int


def listen(
    dataset: str | None = None,
    /,
    *,
    forward_to: str,
    webhook: str | None = None,
    alerts: bool = False,
    secret: str | None = None,
    since: str = "now",
    form: ChangeForm = "two_event",
    where: str | None = None,
    columns: Names = None,
    batch: int = 100,
    service: ServiceChoice = SERVICE,
) -> None:
    """Send changes or alerts to a program on this machine while it is developed, as a webhook of the service would.

    Messages have the form and the signatures of webhooks. A message that is not accepted is sent again, up to ten
    times. Nothing is registered at the service: Ctrl-C ends it.

    Example: `headwater listen orders --forward-to http://127.0.0.1:3000/hooks`

    Example: `headwater listen --alerts --forward-to http://127.0.0.1:3000/pager`

    Parameters
    ----------
    dataset
        The name or the id of the dataset.
    forward_to
        Where messages are posted.
    webhook
        Send what this webhook sends, by its id: its dataset, form, columns and filters; or its alerts.
    alerts
        Send alerts: those of a webhook of the dataset, or of all datasets, which may be paused.
    secret
        The secret of the signatures, such as whsec_…; by default a new one, which is printed.
    since
        An offset, earliest, now, snapshot, a time such as 2026-11-29, a length such as 10m, or a version such as v12.
        Of alerts a number, earliest, or now, which is where the webhook is.
    form
        The form of changes.
    where
        Only changes whose row, before or after, matches this filter.
    columns
        Only these columns, such as id,state.
    batch
        How many changes a message has, at most.
    """
    if (webhook is not None and (dataset is not None or alerts)) or not (dataset or webhook or alerts):
        raise CommandError("expected the name of a dataset, or --webhook, or --alerts", ExitCode.USAGE)
    target = _Target.of(forward_to, secret)
    with service.client() as client:
        followed = None if webhook is None else client.get_webhook(webhook)
        if alerts:
            followed = _webhook_of_alerts(client, dataset)
        if followed is None:
            what = _Selection(str(dataset), form, where, columns, None, batch)
            _send_changes(client, what, _LOCAL, since, target)
        elif followed.events == "alerts":
            _Alerts(client, followed, target).run(_alerts_start(since))
        else:
            _send_changes(client, _Selection.of(followed), followed.id, since, target)


def _send_changes(client: Headwater, what: _Selection, webhook_id: str, since: str, target: _Target) -> None:
    source = client.get_dataset(what.dataset)
    target.announce(f"Changes of {visible(source.name)}")
    facts = {
        "webhook_id": webhook_id,
        "dataset_id": source.id,
        "dataset": source.name,
        "form": what.form,
    }
    _Forwarding(client, source, what.params(), facts, target).run(position("--since", since))


def _webhook_of_alerts(client: Headwater, dataset: str | None) -> Webhook:
    """The latest webhook that sends alerts: of the dataset, or of all datasets. Raises CommandError without one."""
    for each in client.webhooks(dataset):
        if each.events == "alerts" and (each.dataset is None) == (dataset is None):
            return each
    what = "all datasets" if dataset is None else f"dataset {dataset}"
    words = " ".join(["headwater webhooks create", *([dataset] if dataset else []), "URL --events alerts"])
    raise CommandError(
        f"no webhook sends alerts of {what}, and the service evaluates them only for webhooks. "
        f"Register one, which may be paused: {words}"
    )


def _alerts_start(since: str) -> dict[str, Any]:
    if since == "now":
        return {}
    if since == "earliest" or since.isdecimal():
        return {"since": 0 if since == "earliest" else int(since)}
    raise CommandError(f"--since {since}: expected a number, earliest or now", ExitCode.USAGE)


class _Target(NamedTuple):
    """A program that gets messages, signed with a key. `new`: the secret, if it was generated."""

    url: str
    key: bytes
    new: str | None

    @classmethod
    def of(cls, url: str, secret: str | None) -> _Target:
        """Raises CommandError for another form of secret."""
        new = None if secret else new_secret()
        try:
            return cls(url, key_of(new or str(secret)), new)
        except ValueError as error:
            raise CommandError(f"--secret: {error}", ExitCode.USAGE) from None

    def announce(self, what: str) -> None:
        """Prints what is sent, and the secret that its receiver needs."""
        print(f"{what} go to {self.url}.", flush=True)
        if self.new is not None:
            print(f"The secret of their signatures: {self.new}", flush=True)

    def deliver(self, poster: httpx2.Client, sent: Message, what: str) -> None:
        """Posts a message until it is accepted, or until it is given up."""
        for pause in (*_PAUSES_SECONDS, None):
            start = time.monotonic()
            try:
                answer = poster.post(self.url, content=sent.body, headers=sent.headers(self.key))
                result, accepted = f"{answer.status_code} {answer.text[:_ANSWER_MAX]}", answer.is_success
            except httpx2.HTTPError as error:
                result, accepted = str(error), False
            milliseconds = 1_000 * (time.monotonic() - start)
            print(f"{what}: {visible(result.strip())} ({milliseconds:.0f} ms)", flush=True)
            if accepted:
                return
            if pause is None:
                sys.stderr.write(f"headwater: given up: {what}\n")
                return
            time.sleep(pause)


class _Alerts(NamedTuple):
    """The alerts of a webhook, which are sent to a program."""

    client: Headwater
    webhook: Webhook
    target: _Target

    def run(self, start: dict[str, Any]) -> None:
        """Sends alerts from a position on, until the process is interrupted."""
        self.target.announce(f"Alerts of webhook {self.webhook.id}")
        with httpx2.Client(timeout=_TIMEOUT, trust_env=False) as poster:
            for page in resumed(self._pages, start, follow=True):
                for item in page.items:
                    sent = alert_message(bytes(item))
                    self.target.deliver(poster, sent, f"alert {sent.id}")

    def _pages(self, start: dict[str, Any]) -> Iterator[_AlertPage]:
        while True:
            answer = self.client.request("GET", f"/webhooks/{self.webhook.id}/alerts", params=start)
            page = msgspec.json.decode(answer.content, type=_AlertPage)
            yield page
            start = {"since": page.next_since}
            if not page.items:
                time.sleep(_ALERTS_SECONDS)


class _Selection(NamedTuple):
    """Which changes are sent, and how."""

    dataset: str
    form: str
    where: str | None
    columns: Sequence[str] | None
    partitions: Sequence[str] | None
    batch: int

    @classmethod
    def of(cls, webhook: Webhook) -> _Selection:
        """What a webhook of changes sends. Raises CommandError for one of partitions."""
        if webhook.dataset is None or webhook.delivery_format is None or webhook.events != "changes":
            detail = (
                f"webhook {webhook.id} sends {webhook.events}, and only changes and alerts can be read here; "
            )
            raise CommandError(f"{detail}let it post to this machine, or send a message by `webhooks test`")
        return cls(
            webhook.dataset.id,
            webhook.delivery_format,
            webhook.where,
            webhook.columns,
            webhook.partitions,
            webhook.batch_changes_max,
        )

    def params(self) -> dict[str, Any]:
        """The parameters of the feed."""
        lists = {"columns": self.columns, "partitions": self.partitions}
        found: dict[str, Any] = {"form": self.form, "limit": self.batch}
        found |= {name: list(value) for name, value in lists.items() if value is not None}
        return found if self.where is None else {**found, "where": self.where}


class _Forwarding(NamedTuple):
    client: Headwater
    dataset: Dataset
    params: dict[str, Any]
    facts: dict[str, Any]
    target: _Target

    def run(self, start: dict[str, Any]) -> None:
        """Sends the changes from a position on, until the process is interrupted."""
        since = self._first(start)
        # None of the environment's proxies: the receiver is on this machine.
        with httpx2.Client(timeout=_TIMEOUT, trust_env=False) as poster:
            for page in resumed(self._pages, {"since": since}, follow=True):
                count = len(msgspec.json.decode(page.changes, type=list[msgspec.Raw]))
                if count:
                    place = {"since": since, "next_since": page.next_since, "schema_id": page.schema_id}
                    sent = message(now(), {**self.facts, **place, "changes": page.changes})
                    self.target.deliver(poster, sent, f"{count} changes, {since} to {page.next_since}")
                since = page.next_since

    def _first(self, start: dict[str, Any]) -> int | str:
        """The position, which the first message states."""
        match start.get("since"):
            case int() | "snapshot":
                return start["since"]
            case "earliest":
                return self.dataset.earliest_offset
        page = next(self.client.change_pages(self.dataset, **start, limit=1))
        return page.changes[0].offset if page.changes else page.next_since

    def _pages(self, start: dict[str, Any]) -> Iterator[_Page]:
        path = f"{dataset_path(self.dataset)}/changes"
        while True:
            params = {**self.params, **start, "feed": "longpoll", "timeout": _POLL_SECONDS}
            answer = self.client.request("GET", path, params=params, patience_seconds=_POLL_SECONDS)
            page = msgspec.json.decode(answer.content, type=_Page)
            yield page
            start = {"since": page.next_since}

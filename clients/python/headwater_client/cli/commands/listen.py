"""`headwater listen`: changes as webhook messages to a program of one's own machine."""

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
from headwater_client.cli.webhook_messages import Message, message
from headwater_client.client import Headwater
from headwater_client.models import ChangeForm, Dataset, Webhook
from headwater_client.transport.connection import dataset_path
from headwater_client.webhook_signature import key_of, new_secret

_LOCAL: Final = "listen"
_POLL_SECONDS: Final = 25
_PAUSES_SECONDS: Final = (1, 2, 5, 10, 30, 30, 30, 30, 30)
_TIMEOUT: Final = httpx2.Timeout(15, connect=5)
_ANSWER_MAX: Final = 200


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
    secret: str | None = None,
    since: str = "now",
    form: ChangeForm = "two_event",
    where: str | None = None,
    columns: Names = None,
    batch: int = 100,
    service: ServiceChoice = SERVICE,
) -> None:
    """Send changes to a program on this machine while it is developed, as a webhook of the service would.

    Messages have the form and the signatures of webhooks. A message that is not accepted is sent again, up to ten
    times. Nothing is registered at the service: Ctrl-C ends it.

    Example: `headwater listen orders --forward-to http://127.0.0.1:3000/hooks`

    Parameters
    ----------
    dataset
        The name or the id of the dataset.
    forward_to
        Where messages are posted.
    webhook
        Send what this webhook sends, by its id: its dataset, form, columns and filters.
    secret
        The secret of the signatures, such as whsec_…; by default a new one, which is printed.
    since
        An offset, earliest, now, snapshot, a time such as 2026-11-29, a length such as 10m, or a version such as v12.
    form
        The form of changes.
    where
        Only changes whose row, before or after, matches this filter.
    columns
        Only these columns, such as id,state.
    batch
        How many changes a message has, at most.
    """
    if (dataset is None) == (webhook is None):
        raise CommandError("expected the name of a dataset, or --webhook", ExitCode.USAGE)
    chosen = secret or new_secret()
    try:
        key = key_of(chosen)
    except ValueError as error:
        raise CommandError(f"--secret: {error}", ExitCode.USAGE) from None
    with service.client() as client:
        if webhook is not None:
            what = _Selection.of(client.get_webhook(webhook))
        else:
            what = _Selection(str(dataset), form, where, columns, None, batch)
        source = client.get_dataset(what.dataset)
        print(f"Changes of {visible(source.name)} go to {forward_to}.", flush=True)
        if secret is None:
            print(f"The secret of their signatures: {chosen}", flush=True)
        facts = {
            "webhook_id": webhook or _LOCAL,
            "dataset_id": source.id,
            "dataset": source.name,
            "form": what.form,
        }
        _Forwarding(client, source, what.params(), facts, forward_to, key).run(position("--since", since))


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
        """What a webhook sends. Raises CommandError for one that sends no changes."""
        if webhook.dataset is None or webhook.delivery_format is None or webhook.events != "changes":
            detail = f"webhook {webhook.id} sends {webhook.events}, and only changes can be read here; "
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
    url: str
    key: bytes

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
                    self._deliver(poster, sent, f"{count} changes, {since} to {page.next_since}")
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

    def _deliver(self, poster: httpx2.Client, sent: Message, what: str) -> None:
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

"""The port of kinds of sources: what a kind can read, and how it is read, as plain values.

A kind has no state: every call gets the `Place` of a source. `plan`, `lag` and `committed` run in a thread of a worker.
`fetch` runs in a task of Spark if `in_task` is set, otherwise in a thread of a worker. It reads bytes, and writes them
unchanged to an `Output` wherever they are in a format that the service decodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, Protocol, runtime_checkable

import msgspec

from app.core.catalog.values import Dataset
from app.core.timeline.values import SourceItem
from app.kernel.commit.write_options import ChangeOrder
from app.kernel.format.definition.new_dataset import CreateSchema
from app.kernel.format.operation import Operation
from app.kernel.format.quarantine import QuarantineFile
from app.kernel.format.rows.formats import Format
from app.kernel.format.rows.staged import RawInput, RowRun
from app.kernel.format.schema.shapes import Shape

Position = dict[str, Any]
"""How far a source has been read, as JSON whose members its kind defines; empty before the first round."""


class SourceEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator admits. `roots`: the URIs of folders below which files may be read. `allow`: networks and hosts
    outside the public internet that may be connected to. `plain_http`: whether connections may be unencrypted.
    """

    roots: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    plain_http: bool = False


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A source as its kind sees it. `config`: as `SourceKind.checked` returned it, with the secrets."""

    tenant_id: str
    source_id: str
    config: dict[str, Any]
    environment: SourceEnvironment


class RoundLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bounds of a round. A round that would be empty otherwise exceeds them by one row or item.

    `items`: files, or pages. `seconds`: the time for one call of a kind.
    """

    rows: int = 1_000_000
    bytes: int = 256 * 1024 * 1024
    items: int = 1_000
    seconds: float = 60.0


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What one call of `fetch` reads. `content`: JSON whose members the kind defines. `size_bytes`: an estimate."""

    content: dict[str, Any]
    size_bytes: int = 0


class RoundPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a round reads. `position`: that of the source after the round, as far as it is known before the parts are
    fetched. `operation`: that of the write, if it is not the one of the source. `order`: that of changes, unless the
    source has one; None for arrival. `more`: whether another round has something to read at once.
    """

    parts: tuple[Part, ...]
    position: Position
    operation: Operation | None = None
    order: ChangeOrder | None = None
    more: bool = False


class FetchedBody(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes on the storage of the dataset, to be decoded. `item`: the item that they are the content of, if any."""

    raw: RawInput
    item: SourceItem | None = None


class PartRead(msgspec.Struct, frozen=True, kw_only=True):
    """What a kind reports of a part beside the bodies. `position`: members that replace those of the plan's position.
    `items`: what was read beside the items of the bodies.
    """

    position: Position = {}
    items: tuple[SourceItem, ...] = ()


class Fetched(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The result of a part: that of the kind, its bodies, and the records that it could not decode.

    `columns`: those of bodies without a row, as far as the kind knows them. `rejection`: why the first record or item
    was left out, if one was.
    """

    bodies: tuple[FetchedBody, ...] = ()
    position: Position = {}
    items: tuple[SourceItem, ...] = ()
    quarantine_files: tuple[QuarantineFile, ...] = ()
    columns: dict[str, Shape] = {}
    rejection: str | None = None


class SourceLag(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a source has that was not read yet, as far as its kind knows: None for what it does not."""

    rows: int | None = None
    """Rows or messages."""
    items: int | None = None
    """Files."""
    bytes: int | None = None
    """Bytes."""
    seconds: float | None = None
    """The age of the oldest of it."""


class Ledger(Protocol):
    """The items that a source has read."""

    def unread(self, items: Sequence[tuple[str, str]]) -> Collection[tuple[str, str]]:
        """Those of these names and fingerprints that were not read."""
        ...

    def checksums(self, names: Sequence[str]) -> dict[str, set[str]]:
        """The checksums under which items of these names were read."""
        ...


class EndsPartitions(Protocol):
    """Marks partitions as done."""

    def end_changed(self, tenant_id: str, dataset_id: str, since: int) -> None:
        """Ends the partitions that changed after this version. Those that are done already do not change."""
        ...


class Output(Protocol):
    """Where `fetch` writes to."""

    def body(
        self,
        form: Format,
        origin: str,
        *,
        gzip: bool = False,
        item: SourceItem | None = None,
        columns: Mapping[str, str | Shape] | None = None,
        runs: list[RowRun] | None = None,
    ) -> AbstractContextManager[BinaryIO]:
        """A writer for a new body; on an exception, or without a byte, there is none. The columns of one without a byte
        are kept.

        `item`: what the body is the content of; it gets the checksum and the size of the bytes. `columns`: the types
        of the columns of its rows, or what is known of their values, filled in by the time the writer is left; without
        them, they are inferred from the rows where they matter. `runs`: where its rows were read, filled in likewise.
        Raises StorageFull.
        """
        ...

    def check(self) -> None:
        """Called by a kind while it waits, each second or so. Raises EngineStopped once the round was cancelled."""
        ...

    def reject(self, payload: bytes, detail: str, position: int) -> None:
        """Quarantines a record that the kind cannot decode, if the source quarantines bad records.

        `position`: its number in the part. Raises MalformedBody with `detail` if the source does not.
        """
        ...

    def reject_item(self, item: SourceItem, detail: str) -> SourceItem:
        """The item as one that was left out, if the source quarantines bad records.

        Raises MalformedBody with `detail` if it does not.
        """
        ...


class SourceKind(Protocol):
    """A kind of source."""

    @property
    def needs(self) -> str:
        """What the columns of a dataset are known from, such as `a record`."""
        ...

    @property
    def secrets(self) -> frozenset[str]:
        """The members of its config that are never shown."""
        ...

    @property
    def in_task(self) -> bool:
        """Whether `fetch` runs in a task of Spark. Then it must not wait for long: tasks of others wait for it."""
        ...

    def checked(self, config: dict[str, Any], environment: SourceEnvironment) -> dict[str, Any]:
        """The config with its defaults. Connects to nothing. Raises InvalidRequest, whose pointers begin with
        `/config`.
        """
        ...

    def plan(self, place: Place, position: Position, limits: RoundLimits, ledger: Ledger) -> RoundPlan | None:
        """What to read next; None if there is nothing. Raises SourceUnavailable, SourceFailed."""
        ...

    def fetch(self, place: Place, part: Part, limits: RoundLimits, output: Output) -> PartRead:
        """Reads a part. Repeatable: a round may be tried again. Raises SourceUnavailable, SourceFailed, MalformedBody,
        StorageFull.
        """
        ...

    def lag(self, place: Place, position: Position, ledger: Ledger) -> SourceLag:
        """What is unread after the position. Raises SourceUnavailable, SourceFailed."""
        ...

    def committed(self, place: Place, position: Position) -> None:
        """Called after the commit of a round, at least once if no process ends: for what others monitor. Its errors are
        logged only.
        """
        ...


@runtime_checkable
class ReadsDatasets(Protocol):
    """A kind that reads datasets of the tenant."""

    def resolved(self, config: dict[str, Any], find: Callable[[str], Dataset]) -> dict[str, Any]:
        """The config with the ids of its datasets. `find`: finds those that the principal may read whole.

        Raises NotFound, Forbidden, RestrictedGrant, InvalidRequest.
        """
        ...


@runtime_checkable
class KnowsColumns(Protocol):
    """A kind that knows the columns of what it reads, whatever the rows."""

    def columns(self, place: Place) -> CreateSchema:
        """The columns of a dataset with these rows. Raises SourceFailed."""
        ...


@runtime_checkable
class Connects(Protocol):
    """A kind that connects to hosts that its config names."""

    def check_addresses(self, config: dict[str, Any], environment: SourceEnvironment) -> None:
        """Looks the hosts up, as things are now. Connects to nothing. Raises InvalidSource for one that must not be
        connected to, whose pointer begins with `/config`.
        """
        ...

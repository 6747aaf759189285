"""What the use cases need of a dataset's past: versions with names, and holds on versions that are being read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from app.lake.commit_message import CommitMessage
from app.lake.conflict import Conflicted
from app.lake.file_group import DataFile
from app.lake.write_plan import MergeTask
from app.services.model import Claim, Fenced, NewCommit, Page, Published, Waits
from app.services.ports import Timeline
from app.services.task_model import NamedVersion, SavepointTask, TagTask, VersionKind


class NamedVersions(Protocol):
    """Savepoints and tags: versions of a dataset that are kept under a name."""

    def name(self, tenant_id: str, dataset_id: str, claim: Claim, task: SavepointTask | TagTask) -> bool:
        """One transaction: names the version (None: the head), and ends the held job, its instant with the version.

        False if the claim is void. Raises NameTaken, VersionExpired, NotFound (dataset gone).
        """
        ...

    def get(self, tenant_id: str, dataset_id: str, name: str) -> NamedVersion:
        """Raises NotFound."""
        ...

    def list(
        self,
        tenant_id: str,
        dataset_id: str,
        kind: VersionKind | None = None,
        *,
        page_size: int,
        page_token: str | None,
    ) -> Page:
        """NamedVersion items by name, of one kind or all. Raises InvalidRequest for a token that is none."""
        ...

    def forget(self, tenant_id: str, dataset_id: str, names: Sequence[str]) -> int:
        """Removes names; what they kept may be cleaned. Returns how many there were."""
        ...


class TimelineInTurn(Timeline, Protocol):
    """The timeline with turns: table services publish between two groups of writes."""

    def publish_in_turn(
        self, tenant_id: str, commit: NewCommit, turn_seconds: float
    ) -> Published | Conflicted | Fenced | Waits:
        """`publish` unless writes run: then it waits, and no others are claimed for `turn_seconds`.

        Raises OutcomeUnknown if the connection breaks once COMMIT was sent.
        """
        ...

    def end_turn(self, tenant_id: str, dataset_id: str) -> None:
        """Lets writes be claimed again that a table service has kept waiting."""
        ...


class Rebase(Protocol):
    """Brings what a table service wrote up to rows that were deleted meanwhile."""

    def rebase(
        self, task: MergeTask, message: CommitMessage, live: Mapping[str, DataFile], attempt: str
    ) -> CommitMessage | None:
        """What the task, which keeps all rows, would have answered over its files as they are `live`, by path.

        None if the rows that are gone by now cannot be told in what it wrote. Raises CorruptFile, StorageFull.
        """
        ...


class ReadLeases(Protocol):
    """Holds of readers on versions. Files of a version that is held are not removed."""

    def hold(self, tenant_id: str, dataset_id: str, version: int, reader: str, seconds: float) -> None:
        """Holds a version for so long, or longer if `reader` holds it already; a reader may hold several.

        Raises VersionExpired if the version is not kept any more, NotFound (dataset gone).
        """
        ...

    def release(self, tenant_id: str, dataset_id: str, reader: str) -> None:
        """Ends all holds of a reader on versions of the dataset; one that is not there is no error."""
        ...

    def check(self, tenant_id: str, dataset_id: str, version: int) -> None:
        """Raises VersionExpired if the version is not kept any more, NotFound (dataset gone)."""
        ...

    def first_kept(self, tenant_id: str, dataset_id: str, since: int) -> int:
        """The least version from `since` on that is kept; it need not have been reached. Raises NotFound."""
        ...

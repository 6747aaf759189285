"""Carries out `services.changelog`: merges runs of small changelog files, a bounded number of files at a time.

It runs in the worker itself and starts no job: a merge takes a second or so, changes no version and needs no slot
between writes. The files are written first, under the epoch of the claim, and listed in one transaction that checks
the claim and the files.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Protocol

import msgspec

from app.core.feature.reconcilers import Observation, ReconcileResult
from app.infra.files.changelog_merge import MergedChangelog
from app.infra.files.errors import CorruptFile
from app.infra.identifiers import random_hex
from app.kernel.changelog.merge_plan import SmallFile, run_to_merge, settled_before
from app.kernel.format.file_format import FileCompression
from app.kernel.format.file_group import StoredFile
from app.kernel.format.paths import dataset_prefix, merged_changelog_path

_log = logging.getLogger(__name__)
# Listed by one query.
_FILES_MAX: Final = 4_096
# The feed was cut, or another worker has claimed the dataset, while the files were merged.
_AFTER_A_LOST_RACE_SECONDS: Final = 15.0


class ChangelogFiles(Protocol):
    """The small changelog files of datasets."""

    def small_files(self, tenant_id: str, dataset_id: str, since: int, limit: int) -> list[SmallFile]:
        """Up to `limit` small files that begin at offset `since` or later, by offset."""
        ...

    def replace(
        self, tenant_id: str, dataset_id: str, epoch: int, replaced: Sequence[SmallFile], merged: StoredFile
    ) -> bool:
        """Lists `merged` in place of the files. False, and nothing is changed, if they are not all there any more, or
        the claim `epoch` was lost.
        """
        ...


class MergesFiles(Protocol):
    """Writes merged files."""

    def merge(
        self, files: Sequence[StoredFile], path: str, compression: FileCompression
    ) -> MergedChangelog | None:
        """A new file with the rows of the first of the files; None if fewer than two of them can be merged."""
        ...


class _State(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`since`: the offset before which nothing is left to merge. `merges`, `files`: how many there were so far."""

    policy: Any = None
    since: int = 0
    merges: int = 0
    files: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class MergeChangelog:
    """The reconciler of `services.changelog`."""

    files: ChangelogFiles
    merger: MergesFiles

    def reconcile(self, observation: Observation) -> ReconcileResult:
        """One merge at most. It is due again at once after one, and when files are old enough for the next one."""
        dataset = observation.dataset
        policy = dataset.definition.services.changelog
        if policy is None:
            return ReconcileResult()
        state = msgspec.convert(observation.memory, _State)
        stored_policy = msgspec.to_builtins(policy)
        if state.policy != stored_policy:
            # What was left under the earlier policy may be merged under this one.
            state = msgspec.structs.replace(state, policy=stored_policy, since=0)
        since = max(state.since, dataset.earliest_offset)
        small = self.files.small_files(dataset.tenant_id, dataset.id, since, _FILES_MAX)
        settled = [
            each for each in small if each.committed_at <= observation.now - timedelta(seconds=policy.seconds)
        ]
        run = run_to_merge(settled, policy.small_files)
        if run:
            merged = self._merge(observation, state, run)
            return _result(merged, 0.0 if merged != state else _AFTER_A_LOST_RACE_SECONDS)
        if run_to_merge(small, policy.small_files):
            # It will be old enough.
            return _result(state, max(float(policy.seconds), 1.0))
        if small:
            since = settled_before(small)
        full = len(small) == _FILES_MAX
        if full and since == small[0].first_offset:
            since = small[-1].first_offset
        return _result(msgspec.structs.replace(state, since=since), 0.0 if full else None)

    def _merge(self, observation: Observation, state: _State, run: Sequence[SmallFile]) -> _State:
        dataset = observation.dataset
        path = merged_changelog_path(
            dataset_prefix(dataset.tenant_id, dataset.id), observation.epoch, random_hex(8)
        )
        try:
            merged = self.merger.merge([each.file for each in run], path, dataset.definition.compression)
        except CorruptFile as error:
            # Readers find it too. The files behind it are merged.
            _log.warning("changelog files of dataset %s are not merged: %s", dataset.id, error)
            damaged = [each for each in run if each.file.path == error.facts.get("path")]
            return msgspec.structs.replace(state, since=(damaged or run)[0].end_offset)
        if merged is None:
            return msgspec.structs.replace(state, since=run[0].end_offset)
        taken = run[: merged.inputs]
        if not self.files.replace(dataset.tenant_id, dataset.id, observation.epoch, taken, merged.file):
            return state
        _log.info(
            "merged %d changelog files of dataset %s, offsets %d to %d, into one of %d bytes",
            len(taken),
            dataset.id,
            taken[0].first_offset,
            taken[-1].end_offset - 1,
            merged.file.size_bytes,
        )
        return msgspec.structs.replace(state, merges=state.merges + 1, files=state.files + len(taken))


def _result(state: _State, wake_after_seconds: float | None) -> ReconcileResult:
    return ReconcileResult(memory=msgspec.to_builtins(state), wake_after_seconds=wake_after_seconds)

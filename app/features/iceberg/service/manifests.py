"""Manifests and manifest lists of snapshots, rendered on request and cached by path.

The files of a snapshot are cut into blocks by the commits that wrote them (`app/kernel/iceberg/file_cuts.py`). A
manifest lists a block, or its deletion vectors. Its path has what its rows are found by, as
`app/core/timeline/repository/file_blocks.py` says, their checksum, and the digest of the table's form. So it is found
again without a list as long as its rows are known, and a commit changes the paths of few.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import reduce
from operator import xor
from time import monotonic
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.timeline.errors import VersionExpired
from app.core.timeline.repository.file_blocks import FileBlockStore
from app.core.timeline.values import FileBlock, FileCounts, ValidFile
from app.features.iceberg.service.blocks import BLOCK_FILES, BlockCounts
from app.features.iceberg.service.delete_files import DeleteFiles
from app.features.iceberg.service.part_manifests import PartManifests, part_manifest
from app.features.iceberg.service.table_form import CACHE_SECONDS, TableForm, TableForms, has_vector
from app.features.objects.ports import ServedTable
from app.infra.sharing.byte_cache import ByteCache
from app.infra.sharing.single_flight import SingleFlight, run_flight
from app.kernel.iceberg.manifests import (
    ListedManifest,
    RenderedManifest,
    by_spec,
    data_manifest,
    delete_manifest,
    manifest_list,
)

METADATA_SEGMENT: Final = "metadata"
"""The first segment of the paths of metadata below the location of a table."""
# More than any block: names are read, not only made, so they may state any number.
_FILES_MAX: Final = 16 * BLOCK_FILES
_CACHE_BYTES: Final = 64 * 1024 * 1024
_FACTS_BYTES: Final = 8 * 1024 * 1024
_LISTED_BYTES: Final = 1_024
# Of files that are read from the catalogue at once.
_BLOCKS_AT_ONCE: Final = 8
_CHECKSUM_MAX: Final = 2**64 - 1
_WAIT_SECONDS: Final = 60.0
_DATA: Final = "m"
_DELETES: Final = "d"
_MANIFEST: Final = re.compile(
    r"([md])(\d{1,19})x(\d{1,19})(?:p(\d{1,9})of(\d{1,9}))?-(\d{1,19})n(\d{1,19})c([0-9a-f]{16})([ae])s([01])"
    r"-([0-9a-f]{16})\.avro",
    re.ASCII,
)
_LIST: Final = re.compile(r"snap-(\d{1,18})-([0-9a-f]{16})\.avro", re.ASCII)


class _Rows(NamedTuple):
    """The rows of a manifest. `kind`: of files or of deletion vectors. `latest`, `number`: what the rows are found by.

    `checksum`: of the rows, in 64 bits without a sign. `adds`: whether those since `latest` were added by the snapshot
    that is listed; else all of them exist.
    """

    kind: str
    block: FileBlock
    latest: int
    number: int
    checksum: int
    adds: bool

    @property
    def name(self) -> str:
        """The beginning of the name of a manifest."""
        block = self.block
        part = "" if block.parts == 1 else f"p{block.part}of{block.parts}"
        state = "a" if self.adds else "e"
        found_by = f"{self.latest}n{self.number}c{self.checksum:016x}"
        return f"{self.kind}{block.first}x{block.end - block.first}{part}-{found_by}{state}"


class _Cached(NamedTuple):
    """A rendered object. `until`: when it is rendered again, by the clock of the process."""

    content: bytes
    until: float


def list_name(form: TableForm, version: int) -> str:
    """The name of the manifest list of a snapshot."""
    return f"snap-{version}-{form.digest}.avro"


def parent_of(version: int) -> int | None:
    """The version before a version, whether it is kept or not. None for the first."""
    return version - 1 if version > 1 else None


@dataclass(frozen=True, kw_only=True, slots=True)
class SnapshotManifests:
    """Renders manifests and manifest lists. All of it may be called by many threads at once."""

    blocks: FileBlockStore
    forms: TableForms
    deletes: DeleteFiles
    parts: PartManifests
    clock: Callable[[], float] = monotonic
    _contents: ByteCache[str, _Cached] = field(default_factory=lambda: ByteCache(_CACHE_BYTES))
    _lists: ByteCache[str, tuple[ListedManifest, ...]] = field(
        default_factory=lambda: ByteCache(_FACTS_BYTES)
    )
    _counts: BlockCounts = field(init=False)
    _flights: SingleFlight[str, Future[Any]] = field(default_factory=SingleFlight)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_counts", BlockCounts(store=self.blocks))

    def find(self, table: ServedTable, name: str) -> bytes:
        """The bytes of a manifest or manifest list.

        Raises NotFound for one that is not rendered at this time, GrantNotApplicable, RenderingUnderWay.
        """
        form, latest = self.forms.of(table), table.dataset.version
        if match := _LIST.fullmatch(name):
            if match[2] == form.digest and 0 < int(match[1]) <= latest:
                return self._once(form, name, lambda: self._list(form, int(match[1])))
        elif form.in_part:
            stated = part_manifest(name)
            if stated is not None and stated.form == form.digest and 0 < stated.version <= latest:
                return self._once(form, name, lambda: self._part(form, stated.version, name))
        elif (match := _MANIFEST.fullmatch(name)) and match[11] == form.digest:
            return self._once(form, name, lambda: self._manifest(form, _rows_of(match), int(match[10])))
        raise _no_such(name)

    def prepare(self, table: ServedTable) -> None:
        """Renders the manifests of the head if they are of a part, so that no request for a file waits for them.

        Raises RenderingUnderWay, GrantNotApplicable, NotFound.
        """
        form, latest = self.forms.of(table), table.dataset.version
        if form.in_part and latest:
            name = list_name(form, latest)
            self._once(form, name, lambda: self._list(form, latest))

    def _once(self, form: TableForm, name: str, render: Any) -> bytes:
        """The bytes of a name: cached, or rendered once for all who request them."""
        key = f"{form.location}/{name}"
        cached = self._contents.get(key)
        if cached is not None and self.clock() < cached.until:
            return cached.content
        content: bytes = _shared(self._flights, key, render)
        self._put_content(key, content)
        return content

    def _put_content(self, key: str, content: bytes) -> None:
        self._contents.put(key, _Cached(content, self.clock() + CACHE_SECONDS), len(content))

    def _list(self, form: TableForm, version: int) -> bytes:
        try:
            manifests = self.manifests_of(form, version)
        except VersionExpired as error:
            raise NotFound(str(error)) from None
        return manifest_list(manifests, version, parent_of(version), form.manifests.format_version)

    def manifests_of(self, form: TableForm, version: int) -> Sequence[ListedManifest]:
        """The manifests of a snapshot: those of files, then those of deletion vectors.

        Raises VersionExpired if the version has expired and some of its files are not known any more, and in part
        RenderingUnderWay, GrantNotApplicable.
        """
        if form.in_part:
            folder = f"{form.location}/{METADATA_SEGMENT}"
            parts = self._parts(form, version).items()
            return [ListedManifest(path=f"{folder}/{name}", facts=each.facts) for name, each in parts]
        states = self._states(form.dataset, version)
        missing = [state for state in states if self._lists.get(_key(form, state)) is None]
        fresh: dict[str, tuple[ListedManifest, ...]] = {}
        for at in range(0, len(missing), _BLOCKS_AT_ONCE):
            fresh |= self._render(form, version, missing[at : at + _BLOCKS_AT_ONCE])
        return [
            manifest
            for state in states
            for manifest in fresh.get(_key(form, state)) or self._lists.get(_key(form, state)) or ()
        ]

    def _parts(self, form: TableForm, version: int) -> dict[str, RenderedManifest]:
        """The manifests of a snapshot that is seen in part, which are rendered together, by name."""
        manifests = self.parts.of(form, version)
        for name, each in manifests.items():
            self._put_content(f"{form.location}/{name}", each.content)
        return manifests

    def _part(self, form: TableForm, version: int, name: str) -> bytes:
        """A manifest that is seen in part, whose bytes are not cached any more."""
        try:
            manifest = self._parts(form, version).get(name)
        except VersionExpired as error:
            raise NotFound(str(error)) from None
        if manifest is None:
            raise _no_such(name)
        return manifest.content

    def _states(self, dataset: Dataset, version: int) -> list[_Rows]:
        states = [
            state
            for block, each in self._counts.of(dataset, version)
            for state in _states_of(block, each, version)
        ]
        return sorted(states, key=lambda state: (state.kind == _DELETES, state.block))

    def _render(
        self, form: TableForm, version: int, states: Sequence[_Rows]
    ) -> dict[str, tuple[ListedManifest, ...]]:
        """Renders the manifests of some rows of a version, and caches them."""
        dataset = form.dataset
        blocks = list({state.block: None for state in states})
        valid = self.blocks.files(dataset.tenant_id, dataset.id, version, blocks)
        by_key = {}
        for state in states:
            mine = [
                each
                for each in valid
                if each.is_in(state.block) and (state.kind == _DATA or has_vector(each))
            ]
            if _checksum(each.checksum for each in mine) != state.checksum:
                raise VersionExpired(
                    f"version {version} expired while its manifests were made",
                    version=version,
                    earliest=dataset.earliest_version,
                )
            by_key[_key(form, state)] = self._put(form, state, mine)
        return by_key

    def _put(self, form: TableForm, state: _Rows, valid: Iterable[ValidFile]) -> tuple[ListedManifest, ...]:
        manifests = []
        for spec_id, manifest in self._by_spec(form, state, valid).items():
            name = f"{state.name}s{spec_id}-{form.digest}.avro"
            path = f"{form.location}/{METADATA_SEGMENT}/{name}"
            self._put_content(f"{form.location}/{name}", manifest.content)
            manifests.append(ListedManifest(path=path, facts=manifest.facts))
        self._lists.put(_key(form, state), tuple(manifests), _LISTED_BYTES * len(manifests))
        return tuple(manifests)

    def _by_spec(
        self, form: TableForm, state: _Rows, valid: Iterable[ValidFile]
    ) -> dict[int, RenderedManifest]:
        """The manifests of some rows, by the id of their partition spec."""
        # Of no version: then all entries exist.
        version = state.latest if state.adds else 0
        manifests: dict[int, RenderedManifest] = {}
        if state.kind == _DATA:
            data = [form.data_entry(each.file) for each in valid]
            for spec_id, entries in sorted(by_spec(form.manifests, data).items()):
                manifests[spec_id] = data_manifest(form.manifests, entries, version, spec_id)
        else:
            vectors = [self.deletes.entry(form, each.file) for each in valid]
            for spec_id, deletes in sorted(by_spec(form.manifests, vectors).items()):
                manifests[spec_id] = delete_manifest(form.manifests, deletes, version, spec_id)
        return {
            spec_id: replace(each, facts=replace(each.facts, version=state.latest))
            for spec_id, each in manifests.items()
        }

    def _manifest(self, form: TableForm, rows: _Rows, spec_id: int) -> bytes:
        """A manifest whose list was rendered elsewhere, or whose bytes are not cached any more."""
        dataset = form.dataset
        at = dataset.tenant_id, dataset.id, rows.latest
        valid = self.blocks.last_files(*at, rows.block, rows.number, vectors=rows.kind == _DELETES)
        manifest = self._by_spec(form, rows, _identified(rows, valid)).get(spec_id)
        if manifest is None:
            raise _no_such(rows.name)
        return manifest.content


def _states_of(block: FileBlock, counts: Sequence[FileCounts], version: int) -> Iterable[_Rows]:
    latest = max(each.latest for each in counts)
    commit = max(each.commit for each in counts)
    number, checksum = sum(each.files for each in counts), _checksum(each.checksum for each in counts)
    yield _Rows(_DATA, block, latest, number, checksum, commit == version)
    if vectors := sum(each.vectors for each in counts):
        latest = max(each.latest_vector for each in counts)
        checksum = _checksum(each.vectors_checksum for each in counts)
        yield _Rows(_DELETES, block, latest, vectors, checksum, latest == version)


def _checksum(checksums: Iterable[int]) -> int:
    """The checksum of all, without a sign."""
    return reduce(xor, checksums, 0) & _CHECKSUM_MAX


def _rows_of(match: re.Match[str]) -> _Rows:
    first, size, part, parts = (int(match[place] or 0) for place in (2, 3, 4, 5))
    latest, number = int(match[6]), int(match[7])
    if parts & (parts - 1) or max(first + size, latest) >= 2**63 or not 0 < number <= _FILES_MAX:
        raise _no_such(match[0])
    block = FileBlock(first, first + size, part, parts or 1)
    return _Rows(match[1], block, latest, number, int(match[8], 16), match[9] == "a")


def _identified(rows: _Rows, valid: Sequence[ValidFile]) -> list[ValidFile]:
    """The rows in the order of their paths. Raises NotFound if they are not the ones that are stated."""
    latest = max((each.file.added_version or 0 for each in valid), default=0)
    stated = rows.number, rows.latest, rows.checksum
    if (len(valid), latest, _checksum(each.checksum for each in valid)) != stated:
        raise _no_such(rows.name)
    return sorted(valid, key=lambda each: each.file.path)


def _key(form: TableForm, state: _Rows) -> str:
    return f"{form.location}/{state.name}-{form.digest}"


def _shared(flights: SingleFlight[str, Future[Any]], key: str, call: Any) -> Any:
    """The result of a call that is made once for all who request it at the same time, in the first one's thread."""
    mine: Future[Any] = Future()
    flight = flights.join(key, lambda: mine)
    if flight is mine:
        run_flight(call, mine)
    return flight.result(_WAIT_SECONDS)


def _no_such(name: str) -> NotFound:
    return NotFound(f"there is no manifest {name[:200]!r}: load the table again")

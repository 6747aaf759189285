"""All of a tenant: its definitions, its datasets and views, and the manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from clients.export.dataset import DatasetExport
from clients.export.folder import described, folder_name, read_record, write_json, write_list
from clients.export.values import DatasetRecord, ExportError, FailedDataset, TenantManifest
from headwater_client import DamagedDownload, Dataset, Headwater, JobUnfinished, Problem
from headwater_client.models import Export, Identity, NamedResource

MANIFEST_NAME: Final = "manifest.json"
_TENANT_NAME: Final = "tenant.json"
_DOCUMENTS: Final = (_TENANT_NAME, "webhooks.json", "views.json", "sources.json", "exports.json")
_DATASET_DOCUMENTS: Final = ("dataset.json", "consumers.json", "quarantine.json")


@dataclass(frozen=True, kw_only=True, slots=True)
class TenantExport:
    """Exports the tenant of a client's key to a folder. `progress` is called with lines for the user."""

    client: Headwater
    folder: Path
    progress: Callable[[str], None]

    def run(self, pattern: str = "*") -> TenantManifest:
        """Exports the datasets and views whose name matches a pattern; `*` stands for any characters.

        Returns the manifest, which is written last. Raises ExportError, Problem; OSError if the folder cannot be
        written.
        """
        tenant = self._tenant()
        datasets = list(self.client.datasets())
        chosen = [each for each in datasets if fnmatchcase(each.name, pattern)]
        if not chosen and datasets:
            raise ExportError(f"no dataset or view has a name that matches {pattern!r}")
        (self.folder / MANIFEST_NAME).unlink(missing_ok=True)
        write_list(self.folder / "webhooks.json", self.client.webhooks())
        write_list(self.folder / "views.json", self.client.views())
        write_list(self.folder / "sources.json", self.client.sources())
        write_list(self.folder / "exports.json", self._exports(datasets))
        failed: list[FailedDataset] = []
        for number, dataset in enumerate(chosen, 1):
            self.progress(f"[{number}/{len(chosen)}] {dataset.name}")
            try:
                self._export(dataset)
            except (Problem, JobUnfinished, DamagedDownload) as error:
                self.progress(f"  failed: {error}")
                failed.append(FailedDataset(name=dataset.name, reason=str(error)))
        manifest = TenantManifest(
            tenant_id=tenant.id,
            tenant_name=tenant.name,
            finished_at=datetime.now(UTC),
            datasets=tuple(self._records()),
            failed=tuple(failed),
            files=tuple(described(self.folder, name) for name in _DOCUMENTS),
        )
        with suppress(OSError):  # what is interrupted or failed is still there
            (self.folder / "partial").rmdir()
        write_json(self.folder / MANIFEST_NAME, manifest)
        return manifest

    def _tenant(self) -> NamedResource:
        """The tenant of the key, whose folder this is from now on. Raises ExportError."""
        me = self.client.me()
        if "read" not in me.scopes:
            raise ExportError("the key lacks the scope read")
        if me.grants is not None:
            raise ExportError(
                "the key has grants, so it may see a part of the tenant only; use one without grants"
            )
        path = self.folder / _TENANT_NAME
        if path.exists():
            before = msgspec.json.decode(path.read_bytes(), type=Identity).tenant
            if before.id != me.tenant.id:
                raise ExportError(f"{self.folder} has the export of another tenant, {before.name}")
        elif any(self.folder.iterdir()):
            raise ExportError(f"{self.folder} is not empty, and is not an export; name another folder")
        write_json(path, me)
        return me.tenant

    def _exports(self, datasets: Sequence[Dataset]) -> Iterator[Export]:
        for dataset in datasets:
            try:
                yield from self.client.exports(dataset)
            except Problem as problem:
                # The dataset has been deleted since it was listed.
                if problem.code != "not-found":
                    raise

    def _export(self, listed: Dataset) -> None:
        name = folder_name(listed.name)
        folder = self.folder / "datasets" / name
        partial = self.folder / "partial" / name
        dataset, skipped = DatasetExport(client=self.client, progress=self.progress).run(
            listed.id, folder, partial
        )
        definition = {
            # How engines read it names the service, and is no part of the definition.
            "dataset": replace(dataset, read_with=None),
            "schemas": list(self.client.schemas(dataset)),
            "savepoints": list(self.client.savepoints(dataset)),
            "tags": list(self.client.tags(dataset)),
        }
        write_json(folder / "dataset.json", definition)
        write_list(folder / "consumers.json", self.client.consumers(dataset))
        write_list(folder / "quarantine.json", self.client.quarantine(dataset))
        self.progress(f"  version {dataset.version} is {'here already' if skipped else 'complete'}")

    def _records(self) -> Iterator[DatasetRecord]:
        """The records of all datasets that are complete in the folder, with paths from there."""
        for folder in sorted((self.folder / "datasets").glob("*")):
            record = read_record(folder)
            if record is None:
                continue
            own = [described(folder, name) for name in _DATASET_DOCUMENTS if (folder / name).exists()]
            files = [
                replace(each, path=f"datasets/{folder.name}/{each.path}") for each in (*own, *record.files)
            ]
            yield replace(record, files=tuple(files))

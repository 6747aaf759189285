"""Compares the storage with the database: whether every file that rows refer to exists, and has its bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.features.retention.repository.references import ReferencedFileStore
from app.features.retention.values import FileReport, ReferencedFile
from app.infra.files.checksums import verify
from app.infra.files.errors import CorruptFile
from app.infra.files.storage import Storage
from app.kernel.format.paths import dataset_prefix


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckFiles:
    """Reads the list of each dataset's files, or all their bytes. Deleted datasets and tenants are left out."""

    files: ReferencedFileStore
    storage: Storage

    def run(self, fault: Callable[[str], None], *, contents: bool = False) -> FileReport:
        """Reports each missing or damaged file to `fault`. `contents`: sizes and checksums are compared, too.

        Raises StorageUnavailable, Unavailable.
        """
        datasets = files = faults = 0
        for tenant_id in self.files.tenants():
            for dataset_id in self.files.datasets(tenant_id):
                referenced_files = self.files.files(tenant_id, dataset_id)
                datasets += 1
                files += len(referenced_files)
                for text in self._faults(tenant_id, dataset_id, referenced_files, contents):
                    faults += 1
                    fault(text)
        return FileReport(datasets=datasets, files=files, faults=faults)

    def _faults(
        self,
        tenant_id: str,
        dataset_id: str,
        referenced_files: dict[str, ReferencedFile | None],
        contents: bool,
    ) -> list[str]:
        there = {path for path, _ in self.storage.list(dataset_prefix(tenant_id, dataset_id))}
        faults = {path: f"the file {path} is missing" for path in referenced_files.keys() - there}
        if contents:
            for path in sorted(referenced_files.keys() & there):
                if text := self._damage(referenced_files[path]):
                    faults[path] = text
        # While the service runs, files expire that were referenced a moment ago.
        still = self.files.files(tenant_id, dataset_id) if faults else {}
        return [faults[path] for path in sorted(faults) if path in still]

    def _damage(self, file: ReferencedFile | None) -> str | None:
        if file is not None:
            try:
                with self.storage.open(file.path) as stream:
                    verify(file, stream)
            except CorruptFile as error:
                return error.detail
        return None

"""Manifests of tables that are seen in part: one for each version and partition spec.

Their names have the version and a digest of their bytes, and nothing that depends on hidden rows. One that is not
cached is found again by rendering those of its version.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple

from app.features.iceberg.service.table_form import TableForm
from app.features.iceberg.service.visible_files import VisibleFiles
from app.kernel.iceberg.manifests import RenderedManifest, by_spec, data_manifest

_NAME: Final = re.compile(r"v(\d{1,18})s([01])-([0-9a-f]{16})-([0-9a-f]{16})\.avro", re.ASCII)


class PartManifest(NamedTuple):
    """What the name of a manifest states. `form`: the digest of the form of the table."""

    version: int
    form: str


def part_manifest(name: str) -> PartManifest | None:
    """What a name states; None for another name."""
    match = _NAME.fullmatch(name)
    return None if match is None else PartManifest(int(match[1]), match[3])


@dataclass(frozen=True, kw_only=True, slots=True)
class PartManifests:
    """Renders manifests."""

    files: VisibleFiles

    def of(self, form: TableForm, version: int) -> dict[str, RenderedManifest]:
        """The manifests of a version by name. Raises what `VisibleFiles.of` does."""
        entries = [form.data_entry(file) for file in self.files.of(form, version)]
        manifests = {}
        for spec_id, group in sorted(by_spec(form.manifests, entries).items()):
            manifest = data_manifest(form.manifests, group, version, spec_id)
            content = blake2b(manifest.content, digest_size=8).hexdigest()
            manifests[f"v{version}s{spec_id}-{form.digest}-{content}.avro"] = manifest
        return manifests

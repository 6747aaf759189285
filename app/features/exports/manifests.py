"""Files that list the other files of a folder."""

from __future__ import annotations

import msgspec
import xxhash

from app.features.exports.values import MANIFEST_NAME
from app.infra.files.ports import ObjectStorage
from app.kernel.format.result_file import RunFile


def write_manifest(storage: ObjectStorage, path: str, manifest: msgspec.Struct) -> RunFile:
    """Writes a manifest as JSON. Raises StorageFull."""
    content = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    with storage.create(path) as file:
        file.write(content)
    return RunFile(
        path=path,
        name=MANIFEST_NAME,
        row_count=0,
        size_bytes=len(content),
        checksum=xxhash.xxh3_128(content).hexdigest(),
    )

"""What the files of tables serve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from app.core.feature.api import ApiProcess, FeatureApi
from app.features.objects.compose import process_keys, table_files
from app.features.objects.handlers.credentials import TableKeyScheme
from app.features.objects.handlers.errors import s3_error
from app.features.objects.handlers.lookups import ObjectLookups
from app.features.objects.handlers.objects import TABLE_KEYS, read_object, write_object
from app.features.objects.handlers.streams import (
    OBJECT_THREADS_MAX,
    OBJECT_THREADS_TENANT_MAX,
    OBJECT_UNREAD_BYTES_MAX,
    PIECE_BYTES,
    ObjectStreams,
)
from app.features.objects.ports import ObjectTree
from app.features.objects.problems import PROBLEMS
from app.features.objects.values import BUCKET
from app.http.auth import Scheme
from app.http.limits.threads import Threads
from app.http.limits.unread_bytes import UnreadBytes


def _dependencies(_: ApiProcess) -> dict[str, object]:
    threads = Threads(OBJECT_THREADS_MAX, party_max=OBJECT_THREADS_TENANT_MAX)
    unread = UnreadBytes(OBJECT_UNREAD_BYTES_MAX, page_bytes=PIECE_BYTES)
    return {
        "object_lookups": ObjectLookups(threads=threads),
        "object_streams": ObjectStreams(threads=threads, unread=unread),
    }


def _schemes(process: ApiProcess) -> Mapping[str, Scheme]:
    host = urlsplit(process.platform.settings.public_url).netloc
    scheme = TableKeyScheme(
        secrets=process.once(process_keys).secrets, threads=process.threads, hosts=(host,) if host else ()
    )
    return {TABLE_KEYS: scheme}


def _trees(process: ApiProcess) -> Mapping[str, ObjectTree]:
    files = table_files(process)
    return {files.segment: files}


API: Final = FeatureApi(
    name="objects",
    routes=(),
    protocol_routes=(read_object, write_object),
    error_forms={BUCKET: s3_error},
    dependencies=_dependencies,
    schemes=_schemes,
    object_trees=_trees,
    problems=(PROBLEMS,),
)

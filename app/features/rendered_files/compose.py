"""Composes the use cases of rendered files."""

from __future__ import annotations

from app.core.feature.api import ApiProcess
from app.features.objects.compose import renderings
from app.features.rendered_files.repository.renderings import RenderingStore
from app.features.rendered_files.service.files import RenderedFiles
from app.features.rendered_files.service.objects import RenderedObjects
from app.features.rendered_files.service.threads import RenderingThreads
from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.slices.file_slice import SliceReader


def rendered_objects(process: ApiProcess) -> RenderedObjects:
    """What renders files in the process, for `ApiProcess.once`."""
    platform = process.platform
    return RenderedObjects(
        store=RenderingStore(platform.database), storage=platform.storage, threads=RenderingThreads()
    )


def rendered_files(process: ApiProcess) -> RenderedFiles:
    """The data files of tables as readers see them, for `ApiProcess.once`."""
    platform = process.platform
    return RenderedFiles(
        objects=process.once(rendered_objects),
        renderings=process.once(renderings),
        slices=SliceReader(platform.reader, VectorReader(platform.storage)),
    )

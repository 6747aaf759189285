"""What quarantined records serve."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import ApiProcess, FeatureApi
from app.features.quarantine.handlers import create_redrive, discard_quarantine, read_quarantine
from app.features.quarantine.problems import PROBLEMS
from app.features.quarantine.repository import QuarantineStore
from app.features.quarantine.service import Quarantine
from app.infra.files.quarantine_file import QuarantineFileStore


def _dependencies(process: ApiProcess) -> dict[str, object]:
    platform = process.platform
    quarantine = Quarantine(
        index=QuarantineStore(platform.database),
        files=QuarantineFileStore(platform.storage),
        jobs=platform.stores.jobs,
        storage=platform.storage,
        wake=platform.wake,
    )
    return {"quarantine": quarantine}


API: Final = FeatureApi(
    name="quarantine",
    routes=(
        read_quarantine,
        create_redrive,
        discard_quarantine,
    ),
    dependencies=_dependencies,
    problems=(PROBLEMS,),
)

"""What versions serve."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import ApiProcess, FeatureApi
from app.core.timeline.service.name_winner import NameWinner
from app.features.versions.compose import version_of
from app.features.versions.handlers.comparisons import create_comparison
from app.features.versions.handlers.named_versions import SAVEPOINT_HANDLERS, TAG_HANDLERS
from app.features.versions.handlers.restores import create_restore, create_rollback
from app.features.versions.problems import PROBLEMS
from app.features.versions.repository import NamedVersionStore
from app.features.versions.service.comparisons import Comparisons
from app.features.versions.service.name_versions import NameVersions
from app.features.versions.service.restores import Restores


def _dependencies(process: ApiProcess) -> dict[str, object]:
    platform = process.platform
    names, versions, jobs = NamedVersionStore(platform.database), version_of(platform), platform.request_job
    winners = NameWinner(timeline=platform.stores.timeline)
    return {
        "name_versions": NameVersions(names=names, versions=versions, jobs=jobs),
        "restores": Restores(names=names, versions=versions, winners=winners, jobs=jobs),
        "comparisons": Comparisons(versions=versions, jobs=jobs),
    }


API: Final = FeatureApi(
    name="versions",
    routes=(
        *SAVEPOINT_HANDLERS,
        *TAG_HANDLERS,
        create_restore,
        create_rollback,
        create_comparison,
    ),
    dependencies=_dependencies,
    problems=(PROBLEMS,),
)

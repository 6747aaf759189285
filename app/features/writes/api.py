"""What writes serve."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import ApiProcess, FeatureApi
from app.core.platform import row_limits
from app.core.timeline.service.name_winner import NameWinner
from app.features.writes.compose import accept_new_dataset, accept_write, uploads
from app.features.writes.handlers.explanations import explain_keys, explain_write
from app.features.writes.handlers.uploads import create_upload, create_upload_link
from app.features.writes.handlers.writes import create_write
from app.features.writes.problems import PROBLEMS
from app.features.writes.service.explain import ExplainWrite


def _dependencies(process: ApiProcess) -> dict[str, object]:
    platform, writes = process.platform, accept_write(process.platform)
    return {
        "accept_write": writes,
        "uploads": uploads(platform),
        "accept_new_dataset": accept_new_dataset(platform, writes),
        "explain_write": ExplainWrite(
            timeline=platform.stores.timeline,
            winners=NameWinner(timeline=platform.stores.timeline),
            search=process.key_search,
            limits=row_limits(platform.settings),
        ),
        "upload_bytes_max": platform.settings.upload_bytes_max,
    }


API: Final = FeatureApi(
    name="writes",
    routes=(
        create_upload,
        create_upload_link,
        create_write,
        explain_keys,
        explain_write,
    ),
    dependencies=_dependencies,
    problems=(PROBLEMS,),
)

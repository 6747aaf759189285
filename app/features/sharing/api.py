"""What sharing serves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.access.tenants.ports import ActorStore
from app.access.tenants.values import ActorKind
from app.core.feature.api import ApiProcess, CountOf, FeatureApi
from app.core.platform import Platform
from app.features.sharing.compose import shared_tables
from app.features.sharing.handlers.credentials import SHARE_TOKENS, ShareTokenScheme
from app.features.sharing.problems import PROBLEMS
from app.features.sharing.repository.credentials import RecipientStore
from app.features.sharing.repository.recipients import ShareRecipientStore
from app.features.sharing.repository.shares import ShareStore
from app.http.auth import Scheme


def _dependencies(process: ApiProcess) -> dict[str, object]:
    return {"shared_tables": shared_tables(process.platform)}


def _schemes(process: ApiProcess) -> Mapping[str, Scheme]:
    return {SHARE_TOKENS: ShareTokenScheme(credentials=process.credentials)}


def _actors(platform: Platform) -> Mapping[ActorKind, ActorStore]:
    return {ActorKind.RECIPIENT: RecipientStore(platform.database)}


def _quotas(platform: Platform) -> dict[str, CountOf]:
    return {
        "shares": ShareStore(platform.database).count,
        "recipients": ShareRecipientStore(platform.database).count,
    }


API: Final = FeatureApi(
    name="sharing",
    routes=(),
    dependencies=_dependencies,
    schemes=_schemes,
    actors=_actors,
    quotas=_quotas,
    problems=(PROBLEMS,),
)

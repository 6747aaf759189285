"""What the console serves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.access.oidc.issuers import issuers_of
from app.access.tenants.ports import ActorStore
from app.access.tenants.repository.credentials import CredentialStore
from app.access.tenants.values import ActorKind
from app.core.feature.api import ApiProcess, FeatureApi
from app.core.platform import Platform
from app.features.console.handlers.assets import get_asset
from app.features.console.handlers.credentials import CONSOLE_SESSIONS, ConsoleSessionScheme
from app.features.console.handlers.downloads import get_export_file
from app.features.console.handlers.oidc import begin_oidc, end_oidc
from app.features.console.handlers.pages import action_handler, page_handler
from app.features.console.handlers.responses import console_error
from app.features.console.handlers.session import (
    begin_session,
    create_sign_in_link,
    end_session,
    get_sign_in,
)
from app.features.console.handlers.sign_in_page import SignIns
from app.features.console.pages.all import ACTIONS, PAGES
from app.features.console.repository import SessionStore
from app.features.console.sealed_keys import SealedKeys
from app.features.console.service import Sessions
from app.features.objects.compose import table_keys
from app.http.auth import Scheme


def _sessions(platform: Platform) -> SessionStore:
    issuers = frozenset(issuers_of(platform.settings.oidc_issuers))
    sealed_keys = SealedKeys(secrets=table_keys(platform).secrets)
    return SessionStore(platform.database, CredentialStore(platform.database), sealed_keys, issuers)


def _dependencies(process: ApiProcess) -> dict[str, object]:
    return {
        "sessions": Sessions(store=_sessions(process.platform)),
        "sign_ins": SignIns.of(process.tokens),
    }


def _actors(platform: Platform) -> Mapping[ActorKind, ActorStore]:
    return {ActorKind.SESSION: _sessions(platform)}


def _schemes(process: ApiProcess) -> Mapping[str, Scheme]:
    return {CONSOLE_SESSIONS: ConsoleSessionScheme(public_url=process.platform.settings.public_url)}


API: Final = FeatureApi(
    name="console",
    routes=(create_sign_in_link,),
    protocol_routes=(
        get_asset,
        get_sign_in,
        begin_session,
        end_session,
        begin_oidc,
        end_oidc,
        get_export_file,
        *map(page_handler, PAGES),
        *map(action_handler, ACTIONS),
    ),
    error_forms={"console": console_error},
    dependencies=_dependencies,
    actors=_actors,
    schemes=_schemes,
)

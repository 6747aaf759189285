"""Composes the use cases of views."""

from __future__ import annotations

from typing import Final

from app.core.consumers.followers import ConsumerKind, Follower
from app.core.feature.feature import Feature, Participants, Worker
from app.core.feature.stagers import InputStager
from app.core.jobs.kinds.kind import JobKind
from app.core.platform import Platform
from app.features.views.repository.participant import ViewParticipant
from app.features.views.repository.readers import ViewReaders
from app.features.views.repository.views import ViewStore
from app.features.views.service.refresh import DeriveView, FollowInputs
from app.kernel.derivation.engine import Derivation


def view_store(platform: Platform) -> ViewStore:
    """Views in Postgres."""
    return ViewStore(platform.database)


def _stagers(worker: Worker[Derivation]) -> dict[JobKind, InputStager]:
    platform = worker.platform
    refresh = DeriveView(
        views=ViewStore(platform.database),
        timeline=platform.stores.timeline,
        index=platform.changelog,
        pins=platform.pins,
        engine=worker.engine,
    )
    return {JobKind.REFRESH: refresh}


def _followers(worker: Worker[object]) -> dict[ConsumerKind, Follower]:
    platform = worker.platform
    follow = FollowInputs(
        views=ViewStore(platform.database),
        wake=platform.wake,
        slice_seconds=platform.settings.derived_slice_seconds,
    )
    return {ConsumerKind.VIEW: follow}


_PARTICIPANT: Final = ViewParticipant()
FEATURE: Final = Feature(
    name="views",
    participants=Participants(
        commit=_PARTICIPANT,
        failure=lambda _: _PARTICIPANT,
        deletion=_PARTICIPANT,
        derivations=_PARTICIPANT,
        readers=ViewReaders(),
    ),
    stagers=_stagers,
    followers=_followers,
)

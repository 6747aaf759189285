"""Verifications: compare a table with its feed."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

import msgspec
from litestar import post
from litestar.params import JSONBody

from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.core.jobs.handlers.accepted import Acceptance, JobReply
from app.features.verifications.service import Verifications
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.parameters.query_parameters import INT64_MAX


class CreateVerification(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to verify."""

    version: Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)] | None = None
    """The version to verify; by default the latest when the job runs."""


_DEFAULTS: Final = CreateVerification()


@post(
    "/datasets/{dataset:str}/verifications",
    operation_id="create_verification",
    summary="Verify a table against its feed",
    tags=["verifications"],
    status_code=202,
    opt=needs(KeyScope.READ),
)
async def create_verification(
    path_dataset: Provided[Dataset],
    verifications: Provided[Verifications],
    acceptance: Provided[Acceptance],
    data: JSONBody[CreateVerification] = _DEFAULTS,
) -> JobReply:
    """Applies the changes of the feed up to a version, and compares the outcome with the table, row by row.

    The job's `result` says whether they are equal, and has the first difference if not.
    """
    return await acceptance.accept(path_dataset, partial(verifications.start, path_dataset, data.version))

"""Read jobs: any number of rows, in any format, in order."""

from __future__ import annotations

from functools import partial
from typing import Final

from litestar import post
from litestar.params import JSONBody

from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.core.jobs.handlers.accepted import Acceptance, JobReply
from app.features.reads.jobs import CreateRead
from app.features.reads.service.jobs import ReadJobs
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.openapi.operation_docs import documented
from app.kernel.sql.conditions.row_access import RowAccess

_TAGS: Final = ["reads"]
_BODY_BYTES_MAX: Final = 256 * 1024
_DEFAULTS: Final = CreateRead()


@post(
    "/datasets/{dataset:str}/reads",
    operation_id="create_read",
    summary="Read a table or its changed rows with a job",
    tags=_TAGS,
    status_code=202,
    request_max_body_size=_BODY_BYTES_MAX,
    # It changes nothing.
    opt=needs(KeyScope.READ, in_part=True) | documented(problems=[410]),
)
async def create_read(
    path_dataset: Provided[Dataset],
    access: Provided[RowAccess],
    read_jobs: Provided[ReadJobs],
    acceptance: Provided[Acceptance],
    data: JSONBody[CreateRead] = _DEFAULTS,
) -> JobReply:
    """Reads any number of rows. Without a body it reads the whole table.

    The version is determined now, and kept while it is read. `GET /jobs/{id}/result` returns the rows once the job has
    succeeded.
    """
    return await acceptance.accept(path_dataset, partial(read_jobs.start, path_dataset, data, access))

"""The last results of table services that make no version, in Postgres."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import BigInteger, bindparam, select
from sqlalchemy.dialects.postgresql import insert

from app.core.catalog.repository.live_datasets import dataset_not_found, share_datasets
from app.core.jobs.kinds.kind import JobKind
from app.features.maintenance.tables import service_results
from app.features.maintenance.values import ServiceResult
from app.infra.db.session import Database


class ServiceResultStore:
    """The last result of each service of a dataset."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def last(self, tenant_id: str, dataset_id: str, service: JobKind) -> ServiceResult | None:
        """The result with the latest version; None before the first one."""
        with self._database.tenant(tenant_id) as connection:
            row = connection.execute(_LAST, {"dataset": dataset_id, "service": service.value}).one_or_none()
        return None if row is None else ServiceResult(version=row.version, content=row.result)

    def put(
        self, tenant_id: str, dataset_id: str, service: JobKind, version: int, content: Mapping[str, Any]
    ) -> None:
        """Replaces the result of the service, unless that is of a later version. Raises NotFound (dataset gone)."""
        values = {"dataset": dataset_id, "service": service.value, "at": version, "content": dict(content)}
        with self._database.tenant(tenant_id) as connection:
            if not share_datasets(connection, [dataset_id]):
                raise dataset_not_found(dataset_id)
            connection.execute(_PUT, values)


_LAST: Final = select(service_results.c.version, service_results.c.result).where(
    service_results.c.dataset_id == bindparam("dataset"), service_results.c.service == bindparam("service")
)
_NEW: Final = insert(service_results).values(
    dataset_id=bindparam("dataset"),
    service=bindparam("service"),
    version=bindparam("at", type_=BigInteger),
    result=bindparam("content"),
)
_PUT: Final = _NEW.on_conflict_do_update(
    index_elements=["tenant_id", "dataset_id", "service"],
    set_={"version": _NEW.excluded.version, "result": _NEW.excluded.result},
    where=service_results.c.version <= _NEW.excluded.version,
)

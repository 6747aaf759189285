"""What handlers of the Iceberg catalogue get from a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.core.catalog.values import Dataset
from app.features.iceberg.values import PATH
from app.features.objects.ports import ServedTable
from app.http.dependencies import Provided, Provider
from app.http.request import ApiRequest
from app.kernel.sql.conditions.row_access import RowAccess

_VARIANT: Final = PATH.count("/") + 1


async def variant(request: ApiRequest) -> str:
    """The variant in the path, which only the paths of variants have a route with."""
    return str(request.scope["path"].split("/")[_VARIANT])


async def served_table(
    path_dataset: Provided[Dataset], variant: Provided[str], access: Provided[RowAccess]
) -> ServedTable:
    """The table of the path, as the principal sees it."""
    return ServedTable(dataset=path_dataset, variant=variant, access=access)


PROVIDERS: Final[Mapping[str, Provider]] = {"variant": variant, "served_table": served_table}

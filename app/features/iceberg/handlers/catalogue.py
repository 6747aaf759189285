"""Configuration, namespaces, and lists of tables and views."""

from __future__ import annotations

from typing import Annotated, Any, Final

from litestar import Response, get
from litestar.params import FromQuery, QueryParameter

from app.access.errors import NotFound
from app.access.tenants.values import KeyScope, Principal
from app.core.catalog.service import Datasets
from app.core.catalog.values import DatasetFilter
from app.features.iceberg.schemas import (
    CatalogConfig,
    Identifier,
    IdentifierPage,
    Namespace,
    NamespaceList,
)
from app.features.iceberg.values import ENDPOINTS, NAMESPACE, PATH
from app.features.objects.service.keys import may_load
from app.features.objects.values import VARIANTS
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.parameters.query_parameters import ANY_PARAMETERS, PAGE_SIZE_MAX
from app.http.protocols import is_head
from app.http.request import ApiRequest
from app.http.response import ApiResponse
from app.kernel.format.errors import InvalidRequest

READS: Final[dict[str, Any]] = needs(KeyScope.READ, in_part=True) | {ANY_PARAMETERS: True}
"""The options of handlers of this catalogue. They ignore parameters that later releases of the protocol add."""
NAMESPACE_PATHS: Final = tuple(f"{PATH}/{variant}/namespaces/{NAMESPACE}" for variant in VARIANTS)


def below(*steps: str) -> list[str]:
    """The paths of a resource of the namespace, one for each variant."""
    return ["/".join([path, *steps]) for path in NAMESPACE_PATHS]


@get(f"{PATH}/config", operation_id="iceberg_config", opt=READS)
async def get_config(warehouse: FromQuery[str] = VARIANTS[0]) -> CatalogConfig:
    """Returns what a client of a warehouse has to know. Raises NotFound."""
    if warehouse not in VARIANTS:
        raise NotFound(f"there is no warehouse {warehouse!r}; there are {' and '.join(VARIANTS)}")
    return CatalogConfig(defaults={}, overrides={"prefix": warehouse}, endpoints=ENDPOINTS)


@get(
    [f"{PATH}/{variant}/namespaces" for variant in VARIANTS],
    operation_id="iceberg_namespaces",
    opt=READS,
)
async def list_namespaces(parent: FromQuery[str] = "") -> NamespaceList:
    """Lists the namespaces: there is one, and it has no others in it. Raises NotFound for another parent."""
    if parent and parent != NAMESPACE:
        raise NotFound(f"there is no namespace {parent!r}; there is {NAMESPACE!r}")
    return NamespaceList(namespaces=() if parent else ((NAMESPACE,),))


@get(list(NAMESPACE_PATHS), operation_id="iceberg_namespace", opt=READS)
async def get_namespace(request: ApiRequest) -> Response[Any]:
    """Returns the namespace; nothing for HEAD."""
    if is_head(request.scope):
        return ApiResponse(b"", status_code=204)
    properties = {"comment": "The datasets of the tenant, read only."}
    return ApiResponse(Namespace(namespace=(NAMESPACE,), properties=properties))


@get(below("tables"), operation_id="iceberg_tables", opt=READS)
async def list_tables(
    datasets: Provided[Datasets],
    principal: Provided[Principal],
    threads: Provided[Threads],
    page_token: Annotated[str, QueryParameter(name="pageToken")] = "",
    page_size: Annotated[int, QueryParameter(name="pageSize", ge=1)] = PAGE_SIZE_MAX,
) -> IdentifierPage:
    """Lists the datasets that the principal may read as tables, by name. Raises InvalidRequest."""
    try:
        page = await threads.run(
            datasets.summaries,
            principal,
            DatasetFilter(),
            page_size=min(page_size, PAGE_SIZE_MAX),
            # A client that reads pages sends an empty token for the first.
            page_token=page_token or None,
        )
    except InvalidRequest:
        raise InvalidRequest.of_member("pageToken", "expected next-page-token of the page before") from None
    names = (each.name for each in page.items)
    return IdentifierPage(
        identifiers=tuple(
            [Identifier(namespace=(NAMESPACE,), name=name) for name in names if may_load(principal, name)]
        ),
        next_page_token=page.next_token,
    )


@get(below("views"), operation_id="iceberg_views", opt=READS)
async def list_views() -> IdentifierPage:
    """Lists no view: what `/views` derives are tables."""
    return IdentifierPage(identifiers=())


HANDLERS: Final = (get_config, list_namespaces, get_namespace, list_tables, list_views)

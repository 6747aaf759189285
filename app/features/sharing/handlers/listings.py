"""Lists of Delta Sharing: the share of a recipient, its schema, and its tables."""

from __future__ import annotations

from typing import Annotated, Any, Final

from litestar import get
from litestar.params import PathParameter, QueryParameter

from app.access.errors import NotFound
from app.access.tenants.values import KeyScope, Principal
from app.features.sharing.handlers.credentials import SHARE_TOKENS
from app.features.sharing.protocol import ItemPage, SchemaItem, ShareDocument, ShareItem, TableItem
from app.features.sharing.service.shared_tables import SharedTables
from app.features.sharing.values import SCHEMA, SharedTable, folded
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.parameters.query_parameters import ANY_PARAMETERS, PAGE_SIZE_MAX
from app.http.protocols import RATE, SCHEME
from app.kernel.format.errors import InvalidRequest

PATH: Final = "/delta-sharing"
"""Where the protocol is served."""
READS: Final[dict[str, Any]] = needs(KeyScope.READ) | {
    SCHEME: SHARE_TOKENS,
    RATE: "sharing_requests_per_second",
    ANY_PARAMETERS: True,
}
"""The options of handlers of this protocol. They ignore parameters that later releases of it add."""
SHARE_PATH: Final = f"{PATH}/shares/{{share_name:str}}"
SCHEMA_PATH: Final = f"{SHARE_PATH}/schemas/{{schema_name:str}}"
ShareName = Annotated[str, PathParameter(description="The name of a share, in any capitals.")]
SchemaName = Annotated[str, PathParameter(description="The name of a schema: `default`.")]
_PageSize = Annotated[int | None, QueryParameter(name="maxResults", ge=0)]
_PageToken = Annotated[str, QueryParameter(name="pageToken")]


@get(f"{PATH}/shares", operation_id="sharing_shares", opt=READS)
async def list_shares(
    shared_tables: Provided[SharedTables],
    principal: Provided[Principal],
    threads: Provided[Threads],
    page_size: _PageSize = None,
    page_token: _PageToken = "",
) -> ItemPage:
    """Lists the share of the recipient. Raises InvalidRequest."""
    share = await threads.run(shared_tables.share, principal)
    _check_one_page(page_token)
    return ItemPage(items=() if page_size == 0 else (ShareItem(name=share.name, id=share.id),))


@get(SHARE_PATH, operation_id="sharing_share", opt=READS)
async def get_share(
    share_name: ShareName,
    shared_tables: Provided[SharedTables],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> ShareDocument:
    """Returns the share of the recipient. Raises NotFound for another one."""
    share = await threads.run(shared_tables.find_share, principal, share_name)
    return ShareDocument(share=ShareItem(name=share.name, id=share.id))


@get(f"{SHARE_PATH}/schemas", operation_id="sharing_schemas", opt=READS)
async def list_schemas(
    share_name: ShareName,
    shared_tables: Provided[SharedTables],
    principal: Provided[Principal],
    threads: Provided[Threads],
    page_size: _PageSize = None,
    page_token: _PageToken = "",
) -> ItemPage:
    """Lists the one schema of a share. Raises NotFound, InvalidRequest."""
    share = await threads.run(shared_tables.find_share, principal, share_name)
    _check_one_page(page_token)
    return ItemPage(items=() if page_size == 0 else (SchemaItem(name=SCHEMA, share=share.name),))


@get([f"{SCHEMA_PATH}/tables"], operation_id="sharing_tables", opt=READS)
async def list_tables(
    share_name: ShareName,
    schema_name: SchemaName,
    shared_tables: Provided[SharedTables],
    principal: Provided[Principal],
    threads: Provided[Threads],
    page_size: _PageSize = None,
    page_token: _PageToken = "",
) -> ItemPage:
    """Lists the tables of a schema. Raises NotFound, InvalidRequest."""
    check_schema(share_name, schema_name)
    return await threads.run(_tables, shared_tables, principal, share_name, page_size, page_token)


@get(f"{SHARE_PATH}/all-tables", operation_id="sharing_all_tables", opt=READS)
async def list_all_tables(
    share_name: ShareName,
    shared_tables: Provided[SharedTables],
    principal: Provided[Principal],
    threads: Provided[Threads],
    page_size: _PageSize = None,
    page_token: _PageToken = "",
) -> ItemPage:
    """Lists the tables of all schemas. Raises NotFound, InvalidRequest."""
    return await threads.run(_tables, shared_tables, principal, share_name, page_size, page_token)


def check_schema(share_name: str, schema_name: str) -> None:
    """Raises NotFound for a schema that no share has."""
    if folded(schema_name) != SCHEMA:
        raise NotFound(f"there is no schema {share_name}.{schema_name}: each share has the schema {SCHEMA}")


def _check_one_page(page_token: str) -> None:
    """Raises InvalidRequest for a token of a list that has one page."""
    if page_token:
        raise _unknown_token()


def _unknown_token() -> InvalidRequest:
    return InvalidRequest.of_member("pageToken", "expected nextPageToken of the page before")


def _tables(
    shared_tables: SharedTables,
    principal: Principal,
    share_name: str,
    page_size: int | None,
    page_token: str,
) -> ItemPage:
    shared_tables.find_share(principal, share_name)
    if page_size == 0:
        return ItemPage(items=(), next_page_token=page_token or None)
    size = PAGE_SIZE_MAX if page_size is None else min(page_size, PAGE_SIZE_MAX)
    try:
        page = shared_tables.list(principal, page_size=size, page_token=page_token or None)
    except InvalidRequest:
        raise _unknown_token() from None
    return ItemPage(items=tuple([_item(each) for each in page.items]), next_page_token=page.next_token)


def _item(table: SharedTable) -> TableItem:
    return TableItem(
        name=table.name,
        schema=table.schema,
        share=table.share,
        share_id=table.share_id,
        id=table.dataset.id,
    )


HANDLERS: Final = (list_shares, get_share, list_schemas, list_tables, list_all_tables)

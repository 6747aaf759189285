"""What handlers of Delta Sharing get from a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from litestar.params import HeaderParameter, PathParameter

from app.access.tenants.values import Principal
from app.features.sharing.handlers.listings import SchemaName, ShareName, check_schema
from app.features.sharing.service.shared_tables import SharedTables
from app.features.sharing.service.table_forms import CAPABILITIES, ReaderCapabilities, TableRead
from app.features.sharing.values import SharedTable
from app.http.dependencies import Provided, Provider
from app.http.limits.threads import Threads
from app.http.request import DATASET_NAME, ApiRequest


async def shared_table(
    request: ApiRequest,
    share_name: ShareName,
    schema_name: SchemaName,
    table_name: Annotated[str, PathParameter(description="The name of a table, in any capitals.")],
    shared_tables: Provided[SharedTables],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> SharedTable:
    """The table of the path, which the audit has as that of the request. Raises NotFound."""
    check_schema(share_name, schema_name)
    table = await threads.run(shared_tables.find, principal, share_name, table_name)
    request.scope["state"][DATASET_NAME] = table.dataset.definition.name
    return table


async def table_read(
    shared_table: Provided[SharedTable],
    principal: Provided[Principal],
    public_url: Provided[str],
    capabilities: Annotated[str, HeaderParameter(name=CAPABILITIES)] = "",
) -> TableRead:
    """Who reads the table of the path, and what it can read. Raises InvalidRequest."""
    reader = ReaderCapabilities.of(capabilities)
    return TableRead(principal=principal, table=shared_table, url=public_url, capabilities=reader)


PROVIDERS: Final[Mapping[str, Provider]] = {"shared_table": shared_table, "table_read": table_read}

"""Ids of the members of columns, and the layout of data files.

Revision ID: 0036
Revises: 0035
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from alembic import op
from sqlalchemy import Connection, text

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

_TABLES = ("datasets", "schema_versions")
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|[^\s<>(),:`]+|[<>(),:])")
_SCHEMAS = text(
    "SELECT schema_id, schema FROM schema_versions WHERE tenant_id = :tenant_id AND dataset_id = :id "
    "ORDER BY schema_id"
)
_STORE_SCHEMA = text(
    "UPDATE schema_versions SET schema = :schema, member_ids = :member_ids "
    "WHERE tenant_id = :tenant_id AND dataset_id = :id AND schema_id = :schema_id"
)
_DEFINITION = text("SELECT definition FROM datasets WHERE tenant_id = :tenant_id AND id = :id")
_STORE_DEFINITION = text(
    "UPDATE datasets SET definition = :definition, member_ids = :member_ids "
    "WHERE tenant_id = :tenant_id AND id = :id"
)


def upgrade() -> None:
    op.execute("ALTER TABLE files ADD COLUMN layout smallint")
    for table in _TABLES:
        op.execute(f"ALTER TABLE {table} ADD COLUMN member_ids json")
        # Row level security would hide the rows from their owner, too.
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    op.execute("GRANT UPDATE (member_ids) ON datasets TO headwater_app")
    connection = op.get_bind()
    nested = text("SELECT DISTINCT tenant_id, dataset_id FROM schema_versions WHERE schema::text LIKE '%<%'")
    for tenant_id, dataset_id in connection.execute(nested).all():
        _number(connection, {"tenant_id": tenant_id, "id": dataset_id})
    for table in _TABLES:
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")


def member_paths(type_text: str) -> list[str]:
    """The paths of the members of a type, the outer ones first."""
    return list(_paths(_TOKEN.findall(type_text)[::-1], ""))


def _paths(tokens: list[str], path: str) -> Iterator[str]:
    """The paths below `path`. Removes the tokens of one type, the last of the list first."""
    kind = tokens.pop()
    if tokens and tokens[-1] == "(":
        while tokens.pop() != ")":
            pass
    if not tokens or tokens[-1] != "<":
        return
    steps = iter({"list": ["element"], "map": ["key", "value"]}.get(kind, []))
    while tokens.pop() != ">":
        step = next(steps, None) or _name(tokens)
        below = f"{path}.{step}" if path else step
        yield below
        yield from _paths(tokens, below)


def _name(tokens: list[str]) -> str:
    """Removes the name of a member and the colon behind it."""
    name = tokens.pop()
    tokens.pop()
    plain = name[1:-1].replace("``", "`") if name.startswith("`") else name
    return "`" + plain.replace("`", "``") + "`" if "." in plain or "`" in plain else plain


def _number(connection: Connection, dataset: dict[str, Any]) -> None:
    """Gives each member of each schema of a dataset its id: a path below a column has the same in all of them."""
    schemas = [(number, _loaded(schema)) for number, schema in connection.execute(_SCHEMAS, dataset)]
    last = max(_highest(schema) for _, schema in schemas)
    ids: dict[tuple[int, str], int] = {}
    for schema_id, schema in schemas:
        member_ids: dict[int, dict[str, int]] = {}
        for field in schema["fields"]:
            for path in member_paths(field["type"]):
                if (field["id"], path) not in ids:
                    last += 1
                    ids[field["id"], path] = last
                member_ids.setdefault(field["id"], {})[path] = ids[field["id"], path]
        # The release before gives the next column the id that follows.
        schema["last_field_id"] = last
        stored = {"member_ids": json.dumps(member_ids) if member_ids else None}
        values = {"schema_id": schema_id, "schema": json.dumps(schema)}
        connection.execute(_STORE_SCHEMA, dataset | values | stored)
    definition = _loaded(connection.execute(_DEFINITION, dataset).scalar_one())
    definition["schema"]["last_field_id"] = last
    connection.execute(_STORE_DEFINITION, dataset | stored | {"definition": json.dumps(definition)})


def _highest(schema: dict[str, Any]) -> int:
    """The highest id of a field that the schema knows of."""
    return max([schema.get("last_field_id", 0), *(field["id"] for field in schema["fields"])])


def _loaded(document: Any) -> Any:
    """The value of a column of JSON, whose driver may have decoded it."""
    return json.loads(document) if isinstance(document, str | bytes) else document

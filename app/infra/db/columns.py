"""Columns and references that the tables share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    ForeignKeyConstraint,
    MetaData,
    Text,
    Uuid,
    func,
    text,
)

from app.infra.db.stored_json import Document

metadata: Final = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "fk": "%(table_name)s_%(referred_table_name)s_fkey",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)

CURRENT_TENANT: Final = text("(NULLIF(current_setting('headwater.tenant_id', true), ''))::uuid")


def tenant_column() -> Column[str]:
    return Column("tenant_id", Uuid(as_uuid=False), nullable=False, server_default=CURRENT_TENANT)


def id_column(name: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, Uuid(as_uuid=False), nullable=nullable)


def text_column(name: str, *, nullable: bool = False) -> Column[str]:
    # Bytewise order: the same on every server, and the order of paging tokens.
    return Column(name, Text(collation="C"), nullable=nullable)


def integer_column(name: str, *, nullable: bool = False, default: int | None = None) -> Column[int]:
    return Column(
        name, BigInteger, nullable=nullable, server_default=None if default is None else text(str(default))
    )


def timestamp_column(name: str, *, nullable: bool = False, default: bool = False) -> Column[Any]:
    return Column(
        name,
        DateTime(timezone=True),
        nullable=nullable,
        server_default=func.clock_timestamp() if default else None,
    )


def json_column(
    name: str, type_: Any, *, nullable: bool = False, stored: Callable[[Any], Any] | None = None
) -> Column[Any]:
    return Column(name, Document(type_, stored), nullable=nullable)


def of_dataset() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["tenant_id", "dataset_id"], ["datasets.tenant_id", "datasets.id"])


def of_transaction() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["tenant_id", "transaction_id"], ["transactions.tenant_id", "transactions.id"]
    )


def of_tenant() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"])

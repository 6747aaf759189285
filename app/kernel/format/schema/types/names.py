"""The list of the flat types without parameters. A new type is a module of this package and its line here."""

from __future__ import annotations

from typing import Final

from app.kernel.format.schema.types.binary import BINARY
from app.kernel.format.schema.types.boolean import BOOLEAN
from app.kernel.format.schema.types.dates import DATE
from app.kernel.format.schema.types.flat import FlatType
from app.kernel.format.schema.types.integer import SIGNED, UNSIGNED
from app.kernel.format.schema.types.real import DOUBLE, FLOAT
from app.kernel.format.schema.types.strings import STRING
from app.kernel.format.schema.types.uuids import UUID

PLAIN_TYPES: Final[tuple[FlatType, ...]] = (
    BOOLEAN,
    *SIGNED,
    *UNSIGNED,
    FLOAT,
    DOUBLE,
    STRING,
    BINARY,
    DATE,
    UUID,
)

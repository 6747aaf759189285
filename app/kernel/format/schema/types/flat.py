"""A flat type: a value that has all that the surfaces of the service need to know of a type.

Surfaces ask the type once for each column, never for each value. What most types share is written here, so that the
module of a type has what is special about it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

OrderNumbers = npt.NDArray[np.uint64] | npt.NDArray[np.int64]


class Undecodable(ValueError):
    """Some value of a column does not fit its type."""


class RefusedText(ValueError):
    """A text that denotes no value of a type. `got`: what it is instead; None for the text itself."""

    def __init__(self, reason: str, got: str | None = None) -> None:
        super().__init__(reason)
        self.got = got


Converted = tuple[pa.Array, dict[int, RefusedText]]


class JsonForm(Enum):
    """How JSON has the values of a type."""

    BOOLEAN = "boolean"
    INTEGER = "a number without fraction and exponent"
    NUMBER = "a number"
    NUMBER_OR_TEXT = "a number, or a string"
    TEXT = "a string"


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The values of a type with steps, as whole numbers."""

    low: int
    """The first."""
    high: int
    """The last."""
    per_unit: int = 1
    """The number of steps in one unit of a literal."""


class FlatType(ABC):
    """A type of single values. `str` is its text form, under which the catalogue stores it."""

    __slots__ = ()

    may_be_key: ClassVar[bool] = True
    """Whether values compare exactly, so that they can be record keys or partition values."""
    has_order: ClassVar[bool] = True
    """Whether values have a total order that a merge can use (floats have: NaN is never stored)."""
    is_number: ClassVar[bool] = False
    """Whether values can be added."""

    @abstractmethod
    def __str__(self) -> str: ...

    @property
    def synonyms(self) -> tuple[str, ...]:
        """Further names of the type that are accepted."""
        return ()

    # Arrow and Parquet

    @property
    @abstractmethod
    def arrow(self) -> pa.DataType:
        """The Arrow type of columns in data files and results."""

    @property
    def arrow_forms(self) -> tuple[pa.DataType, ...]:
        """Arrow types whose every value is of this type."""
        return (self.arrow,)

    def accepts(self, source: pa.DataType) -> bool:
        """Whether every value of the Arrow type is a value of this type."""
        return source in self.arrow_forms

    def converts(self, source: pa.DataType) -> bool:
        """Whether values of the Arrow type are converted, as far as each is exactly a value of this type."""
        return self.accepts(source)

    def converted(self, array: pa.Array) -> Converted:
        """The values of an array that `converts`, and the refusals of those that are not of this type, by their places.

        A refused value is null.
        """
        return self.from_arrow(array), {}

    reads_strings: ClassVar[bool] = False
    """Whether Arrow columns of strings are read as texts of the type: common where readers have no such type."""

    @property
    def extension(self) -> str | None:
        """The name of Arrow's extension type, which columns have where they leave the service; None without one."""
        return None

    def from_arrow(self, array: pa.Array) -> pa.Array:
        """An array of an accepted type in the type's own. Raises ArrowInvalid."""
        return pc.cast(array, self.arrow)

    def range_faults(self, array: pa.Array) -> Mapping[int, str]:
        """What is wrong with the values of an array of the type that are not allowed, by their places."""
        del array
        return {}

    # Text: CSV cells, map keys, JSON strings

    @abstractmethod
    def parse(self, texts: pa.StringArray) -> pa.Array:
        """The values that the texts denote; nulls stay null. Raises Undecodable or ArrowInvalid.

        It only reports that a text does not fit. `read` defines which texts do, and finds the reason.
        """

    @abstractmethod
    def read(self, text: str) -> Any:
        """The value that the text denotes, for Arrow. Raises RefusedText."""

    def texts(self, array: pa.Array) -> pa.Array:
        """The texts of the values, which must be in range: `string` or `large_string`, null for null."""
        return pc.cast(array, pa.large_string())

    def refusal(self, text: str) -> RefusedText:
        """Why a text denotes no value of the type: the same for a value in JSON as for one in columnar input."""
        try:
            value = self.read(text)
        except RefusedText as error:
            return RefusedText(str(error), got=error.got or text)
        raise AssertionError(f"{text} is {value}, of {self}")

    # JSON

    json_form: ClassVar[JsonForm] = JsonForm.TEXT

    @property
    def json_type(self) -> Any:
        """The msgspec type that JSON values are decoded as; Raw for those that need their original digits."""
        return str

    def json_values(self, array: pa.Array) -> list[Any]:
        """The values as JSON-ready objects. Values that are not allowed get a text that no decoder accepts."""
        values: list[Any] = self.texts(array).to_pylist()
        return values

    # CSV

    csv_as_text: ClassVar[bool] = False
    """Whether CSV is written from `texts`, in quotes; else Arrow's writer has the same form."""

    # Avro

    @property
    @abstractmethod
    def avro(self) -> str | dict[str, Any]:
        """The type of values in an Avro schema."""

    @property
    def to_avro(self) -> Callable[[Any], Any] | None:
        """What makes the value for Avro of a Python value; None if they are the same."""
        return None

    # Keys, partitions and order

    def key_bytes(self, column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        """The canonical bytes in a record key, as `large_binary`. They never change: buckets depend on them."""
        return pc.cast(pc.cast(column, pa.large_string()), pa.large_binary())

    def order_numbers(self, array: pa.Array) -> OrderNumbers | None:
        """Numbers in the order of the values, which are not null; those of different values may be equal.

        None for types whose values are sorted as they are.
        """
        del array
        return None

    def path_texts(self, values: pa.Array) -> list[str | None]:
        """The values in the paths of partitions, before characters are escaped."""
        texts: list[str | None] = pc.cast(values, pa.string()).to_pylist()
        return texts

    @abstractmethod
    def path_value(self, text: str) -> Any:
        """The value that `path_texts` has written."""

    # Bounds and filters

    def stored(self, value: Any) -> Any:
        """A bound for the catalogue: a number, a boolean, or a value whose text is stored."""
        return value

    @abstractmethod
    def comparable(self, bound: Any) -> Any:
        """A bound that the catalogue has stored, comparable with others; None if it is not of the type.

        Raises ValueError, ArithmeticError.
        """

    def filter_value(self, literal: Any) -> Any:
        """A literal of a stored filter, for Arrow, and comparable with bounds."""
        return literal

    @property
    def steps(self) -> Steps | None:
        """The ladder of the values, if there is a next one to each."""
        return None

    def literal(self, text: str) -> Any:  # noqa: ARG002
        """The literal of a filter that a string denotes; None if strings denote none. Raises RefusedText."""
        return None

    @abstractmethod
    def sql_literal(self, value: Any) -> str:
        """A Python value of the type as the literal of a filter that equals it."""

    @property
    @abstractmethod
    def literal_example(self) -> str:
        """What a literal of a filter looks like."""

    # Evolution

    @property
    def wider(self) -> tuple[FlatType, ...]:
        """The types that hold every value of this type exactly, the narrowest first."""
        return ()

    def widens_to(self, other: FlatType) -> bool:
        """Whether the other type holds every value of this type exactly."""
        return other in self.wider

    @property
    def widening(self) -> str:
        """What the type may become, for errors."""
        return f"it may become {', '.join(map(str, self.wider))}" if self.wider else "no type is wider"

    def holds_integers(self, low: int, high: int) -> bool:
        """Whether the type holds all whole numbers from `low` to `high` exactly."""
        del low, high
        return False

    # Casts on request

    @property
    def cast_kind(self) -> str:
        """The row and column of the type in the matrix of casts."""
        return str(self)

    # Hive, Delta, Iceberg and Spark

    @property
    def hive(self) -> str:
        """The type in a Hive metastore."""
        return str(self)

    @property
    def delta(self) -> str:
        """The type of columns of Delta, which data files have."""
        return str(self)

    @property
    def iceberg(self) -> str:
        """The type of columns of Iceberg, which data files have."""
        return str(self)

    @property
    def relation(self) -> FlatType:
        """The type inside a view: the narrowest that Spark has."""
        return self

    @property
    def spark(self) -> str:
        """The type in Spark's SQL, if it is the type inside a view."""
        return str(self).upper()


def quoted_text(text: str) -> str:
    """The literal of a text."""
    content = text.replace("'", "''")
    return f"'{content}'"


def require(condition: pa.BooleanArray) -> None:
    """Raises Undecodable unless the condition is true for every value that is not null."""
    if pc.all(condition, min_count=0).as_py() is False:
        raise Undecodable


def within(values: pa.Array, low: int, high: int) -> pa.Array:
    """`values` if all their ticks lie within the bounds, inclusive. Raises Undecodable."""
    bounds = pc.min_max(ticks(values))
    if bounds["min"].is_valid and (bounds["min"].as_py() < low or bounds["max"].as_py() > high):
        raise Undecodable
    return values


def outside(values: pa.Array, low: int, high: int) -> pa.BooleanArray:
    """Which values have ticks beyond the bounds; null for null."""
    numbers = ticks(values)
    return pc.or_(pc.less(numbers, low), pc.greater(numbers, high))


def faults_where(
    array: pa.Array, misfits: pa.BooleanArray, texts: Callable[[pa.Array], Iterable[str]]
) -> dict[int, str]:
    """What is wrong with the misfits, by place. `texts`: of the values that are misfits."""
    places = pc.indices_nonzero(pc.fill_null(misfits, False))
    return dict(zip(places.to_pylist(), texts(array.take(places)), strict=True)) if len(places) else {}


def ticks(values: pa.Array) -> pa.Array:
    """Dates and times as whole numbers."""
    return values.view(pa.int32() if pa.types.is_date32(values.type) else pa.int64())


def texts_within(flat: FlatType, array: pa.Array, low: int, high: int, unit: str) -> list[str | None]:
    """The texts of ticks within the bounds, and the numbers of the others."""
    far = outside(array, low, high)
    if not pc.any(far, min_count=0).as_py():
        texts: list[str | None] = flat.texts(array).to_pylist()
        return texts
    plain = flat.texts(pc.if_else(far, pa.scalar(None, array.type), array)).to_pylist()
    return [
        f"{tick} {unit} since 1970-01-01" if beyond else text
        for text, beyond, tick in zip(plain, far.to_pylist(), ticks(array).to_pylist(), strict=True)
    ]


def refused_where(
    array: pa.Array, misfits: pa.BooleanArray, refusal: Callable[[Any], RefusedText]
) -> tuple[pa.Array, dict[int, RefusedText]]:
    """The array with null instead of the misfits, and their refusals by place."""
    places = pc.indices_nonzero(pc.fill_null(misfits, False)).to_pylist()
    values = array.take(pa.array(places, pa.int64())).to_pylist()
    refusals = {place: refusal(value) for place, value in zip(places, values, strict=True)}
    return pc.if_else(misfits, pa.scalar(None, array.type), array), refusals

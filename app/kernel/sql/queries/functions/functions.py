"""The functions that views may call. A function that is not listed here does not exist for them.

Each function returns the same result for the same arguments, whenever and wherever it runs, in bounded time and memory.
Functions that do not, or that read anything outside of the query, are left out, some with a reason
(`REFUSED_FUNCTIONS`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from app.kernel.format.schema.types import BINARY, BOOLEAN, DATE, DOUBLE, INT32, INT64, STRING, TIMESTAMP
from app.kernel.sql.queries.coercion import SqlType
from app.kernel.sql.queries.functions.kinds import (
    ANY,
    BYTES,
    DAY,
    FLAT,
    INSTANT,
    LIST,
    LIST_OR_MAP,
    LONG,
    MAP,
    MOMENT,
    NUMBER,
    REAL,
    TEXT,
    TEXT_LITERAL,
    TRUTH,
    WHOLE,
    Parameter,
    fraction_literal,
    integer_literal,
    one_of,
)
from app.kernel.sql.queries.functions.result_types import (
    list_of_first,
    list_of_keys,
    list_of_values,
    type_of_average,
    type_of_computed,
    type_of_contained,
    type_of_element,
    type_of_first,
    type_of_last,
    type_of_rounded,
    type_of_sum,
    type_of_whole_part,
)
from app.kernel.sql.queries.values import Value


class Role(Enum):
    """The role of a function in a query."""

    SCALAR = "scalar"
    AGGREGATE = "aggregate"
    WINDOW = "window"


Typing = Callable[[Sequence[Value]], SqlType]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of views.

    `parameters`: the last `optional` of them may be omitted. The last may be repeated if the function `repeats`.
    `result`: its type, from the converted arguments. `nullable`: whether it may be null; None if it is null only for a
    null argument. `alike`: arguments from this number on are converted to their common type. `spelling`: its name in
    the engine, if different. `template`: a template around the call.
    """

    group: str
    parameters: tuple[Parameter, ...]
    result: SqlType | Typing
    role: Role = Role.SCALAR
    optional: int = 0
    repeats: bool = False
    nullable: bool | None = None
    alike: int | None = None
    spelling: str | None = None
    template: str = "{}"

    def takes(self, count: int) -> bool:
        least = len(self.parameters) - self.optional
        return least <= count and (self.repeats or count <= len(self.parameters))

    def parameter(self, number: int) -> Parameter:
        return self.parameters[min(number, len(self.parameters) - 1)]

    def type_of(self, arguments: Sequence[Value]) -> SqlType:
        """The type of the result. Raises Misfit."""
        return self.result(arguments) if callable(self.result) else self.result


def _scalars(
    group: str, parameters: tuple[Parameter, ...], result: SqlType | Typing, names: str, **more: object
) -> dict[str, Function]:
    return {name: Function(group, parameters, result, **more) for name in names.split()}  # type: ignore[arg-type]


def _aggregates(
    parameters: tuple[Parameter, ...], result: SqlType | Typing, names: str, **more: object
) -> dict[str, Function]:
    return _scalars(
        "Aggregates", parameters, result, names, role=Role.AGGREGATE, **{"nullable": True, **more}
    )


def _windows(
    parameters: tuple[Parameter, ...], result: SqlType | Typing, names: str, **more: object
) -> dict[str, Function]:
    return _scalars("Window functions", parameters, result, names, role=Role.WINDOW, **more)


_PADDING: Final = 10_000
_TEXT: Final = "Text and bytes"
_NUMBERS: Final = "Numbers"
_TIMES: Final = "Dates and times"
_CHOICE: Final = "Choice"
_NESTED: Final = "Lists, maps, JSON"
_TRUNCATED: Final = one_of(
    "year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond"
)
FUNCTIONS: Final[dict[str, Function]] = {
    **_scalars(_TEXT, (TEXT,), STRING, "upper lower initcap"),
    **_scalars(_TEXT, (TEXT,), STRING, "trim ltrim rtrim"),
    **_scalars(_TEXT, (BYTES,), INT32, "length char_length character_length"),
    **_scalars(_TEXT, (BYTES,), INT32, "octet_length"),
    **_scalars(_TEXT, (TEXT, WHOLE, WHOLE), STRING, "substring substr", optional=1),
    **_scalars(_TEXT, (TEXT, WHOLE), STRING, "left right"),
    **_scalars(_TEXT, (TEXT,), STRING, "concat", repeats=True),
    **_scalars(_TEXT, (TEXT_LITERAL, TEXT), STRING, "concat_ws", repeats=True, nullable=False),
    **_scalars(_TEXT, (TEXT, TEXT, TEXT), STRING, "replace translate"),
    **_scalars(_TEXT, (TEXT,), STRING, "reverse"),
    **_scalars(_TEXT, (TEXT, integer_literal(0, _PADDING), TEXT_LITERAL), STRING, "lpad rpad"),
    **_scalars(_TEXT, (TEXT, TEXT), INT32, "instr"),
    **_scalars(_TEXT, (TEXT, TEXT), BOOLEAN, "startswith endswith contains"),
    **_scalars(_TEXT, (TEXT, TEXT_LITERAL, integer_literal(1, 1_000)), STRING, "split_part"),
    **_scalars(_TEXT, (TEXT,), INT32, "ascii"),
    **_scalars(_TEXT, (BYTES,), STRING, "md5 sha1"),
    **_scalars(_TEXT, (BYTES, integer_literal(224, 512)), STRING, "sha2", nullable=True),
    **_scalars(_TEXT, (BYTES,), STRING, "hex"),
    **_scalars(_TEXT, (TEXT,), BINARY, "unhex", nullable=True),
    **_scalars(_TEXT, (BYTES,), STRING, "base64"),
    **_scalars(_TEXT, (TEXT,), BINARY, "unbase64"),
    **_scalars(_TEXT, (FLAT,), INT64, "xxhash64", repeats=True, nullable=False),
    **_scalars(_NUMBERS, (NUMBER,), type_of_first, "abs"),
    **_scalars(_NUMBERS, (NUMBER,), type_of_whole_part, "ceil ceiling floor", nullable=True),
    **_scalars(_NUMBERS, (NUMBER, integer_literal(-38, 38)), type_of_rounded, "round", optional=1),
    **_scalars(_NUMBERS, (REAL,), DOUBLE, "sqrt cbrt exp sign signum sin cos tan asin acos atan radians degrees"),
    **_scalars(_NUMBERS, (REAL,), DOUBLE, "ln log10 log2", nullable=True),
    **_scalars(_NUMBERS, (REAL, REAL), DOUBLE, "pow power atan2"),
    **_scalars(_NUMBERS, (), DOUBLE, "pi"),
    **_scalars(_NUMBERS, (NUMBER, NUMBER), type_of_computed("+"), "try_add", nullable=True),
    **_scalars(_NUMBERS, (NUMBER, NUMBER), type_of_computed("-"), "try_subtract", nullable=True),
    **_scalars(_NUMBERS, (NUMBER, NUMBER), type_of_computed("*"), "try_multiply", nullable=True),
    **_scalars(_NUMBERS, (NUMBER, NUMBER), type_of_computed("/"), "try_divide", nullable=True),
    **_scalars(_NUMBERS, (NUMBER, NUMBER), type_of_computed("%"), "mod"),
    **_scalars(_TIMES, (DAY,), INT32, "year quarter month day dayofmonth dayofweek dayofyear weekofyear weekday"),
    **_scalars(_TIMES, (MOMENT,), INT32, "hour minute second"),
    **_scalars(_TIMES, (DAY, WHOLE), DATE, "date_add date_sub add_months"),
    **_scalars(_TIMES, (DAY, DAY), INT32, "datediff date_diff"),
    **_scalars(_TIMES, (DAY,), DATE, "last_day"),
    **_scalars(_TIMES, (DAY,), DATE, "to_date", spelling=""),
    **_scalars(_TIMES, (WHOLE, WHOLE, WHOLE), DATE, "make_date"),
    **_scalars(_TIMES, (_TRUNCATED, INSTANT), TIMESTAMP, "date_trunc", nullable=True),
    **_scalars(_TIMES, (DAY, one_of("year", "quarter", "month", "week")), DATE, "trunc", nullable=True),
    **_scalars(_TIMES, (MOMENT, TEXT_LITERAL), STRING, "date_format"),
    **_scalars(_TIMES, (INSTANT,), INT64, "unix_seconds unix_millis unix_micros"),
    **_scalars(_TIMES, (INSTANT,), INT64, "unix_timestamp", spelling="unix_seconds"),
    **_scalars(_TIMES, (LONG,), TIMESTAMP, "timestamp_seconds timestamp_millis timestamp_micros"),
    **_scalars(_TIMES, (INSTANT, TEXT_LITERAL), TIMESTAMP, "from_utc_timestamp to_utc_timestamp"),
    **_scalars(_CHOICE, (ANY,), type_of_first, "coalesce ifnull nvl", repeats=True, alike=0, spelling="coalesce"),
    **_scalars(_CHOICE, (FLAT, FLAT), type_of_first, "nullif", alike=0, nullable=True),
    **_scalars(_CHOICE, (TRUTH, ANY, ANY), type_of_last, "if", alike=1),
    **_scalars(_CHOICE, (ANY, ANY, ANY), type_of_last, "nvl2", alike=1),
    **_scalars(_CHOICE, (FLAT, FLAT), type_of_first, "greatest least", alike=0, repeats=True),
    **_scalars(_NESTED, (LIST_OR_MAP,), INT32, "size cardinality"),
    **_scalars(_NESTED, (LIST, ANY), type_of_contained, "array_contains", nullable=True),
    **_scalars(_NESTED, (LIST, TEXT_LITERAL), STRING, "array_join"),
    **_scalars(_NESTED, (LIST_OR_MAP, FLAT), type_of_element, "element_at", nullable=True, spelling="try_element_at"),
    **_scalars(_NESTED, (LIST_OR_MAP, FLAT), type_of_element, "try_element_at", nullable=True),
    **_scalars(_NESTED, (MAP,), list_of_keys, "map_keys"),
    **_scalars(_NESTED, (MAP,), list_of_values, "map_values"),
    **_scalars(_NESTED, (TEXT, TEXT_LITERAL), STRING, "get_json_object", nullable=True),
    **_aggregates((ANY,), INT64, "count", repeats=True, nullable=False),
    **_aggregates((TRUTH,), INT64, "count_if", nullable=False),
    **_aggregates((NUMBER,), type_of_sum, "sum try_sum"),
    **_aggregates((NUMBER,), type_of_average, "avg mean try_avg"),
    **_aggregates((FLAT,), type_of_first, "min max"),
    **_aggregates((TRUTH,), BOOLEAN, "bool_and every bool_or any some"),
    **_aggregates((REAL,), DOUBLE, "stddev stddev_samp stddev_pop variance var_samp var_pop median"),
    **_aggregates((REAL, fraction_literal()), DOUBLE, "percentile"),
    **_aggregates((FLAT,), INT64, "approx_count_distinct", nullable=False),
    **_aggregates(
        (FLAT,), list_of_first, "collect_list collect_set array_agg", nullable=False, template="sort_array({})"
    ),
    **_windows((), INT32, "row_number rank dense_rank", nullable=False),
    **_windows((integer_literal(1, 1_000_000),), INT32, "ntile", nullable=False),
    **_windows((), DOUBLE, "percent_rank cume_dist", nullable=False),
    **_windows((ANY, integer_literal(0, 1_000_000)), type_of_first, "lag lead", optional=1, nullable=True),
    **_windows((ANY,), type_of_first, "first_value last_value", nullable=True),
}  # fmt: skip
_MOMENT: Final = "its result differs each time, and a view depends on its inputs only"
_ORDERED: Final = (
    "which value comes first is not certain: use min, max, or QUALIFY ROW_NUMBER() OVER (… ORDER BY …) = 1"
)
_PATTERNS: Final = "regular expressions may take unbounded time: use LIKE, instr, substring or split_part"
_OUTSIDE: Final = "it reads something outside of the query"
REFUSED_FUNCTIONS: Final[dict[str, str]] = {
    **dict.fromkeys(
        "now current_date current_timestamp current_time localtimestamp curdate getdate rand random randn uuid shuffle "
        "monotonically_increasing_id spark_partition_id randstr uniform".split(),
        _MOMENT,
    ),
    **dict.fromkeys(
        "first last any_value max_by min_by mode approx_percentile percentile_approx nth_value".split(),
        _ORDERED,
    ),
    **dict.fromkeys(
        "split rlike regexp regexp_like regexp_count regexp_extract regexp_extract_all regexp_instr regexp_replace "
        "regexp_substr".split(),
        _PATTERNS,
    ),
    **dict.fromkeys(
        "reflect java_method try_reflect input_file_name input_file_block_start input_file_block_length current_user "
        "user session_user current_catalog current_database current_schema version current_timezone".split(),
        _OUTSIDE,
    ),
    **dict.fromkeys(
        "explode explode_outer posexplode posexplode_outer inline inline_outer stack".split(),
        "functions that make several rows of one are not part of the SQL of views",
    ),
    **dict.fromkeys("repeat space sequence array_repeat".split(), "its result may be of any size"),
    **dict.fromkeys(
        "cube rollup grouping grouping_id".split(),
        "views group by columns: use UNION ALL for several groupings",
    ),
}

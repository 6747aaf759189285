"""Rows of a dataset, at any version: a filter, columns, an order, and pages that stay at their version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from app.features.console.commands import shell
from app.features.console.page import ConsolePage, Context
from app.features.console.pages.dataset_frame import dataset_frame
from app.features.console.pages.feed.lines import instants_of
from app.features.console.pages.feed.shared import (
    column_names,
    console_path,
    key_columns,
    key_text,
    number_columns,
    problem_fields,
    short,
    shown_columns,
    shown_lines,
    version_or_time,
)
from app.features.console.pages.feed.spreadsheet import without_formulas
from app.features.console.pages.field_values import FieldFault
from app.features.console.visit import TOO_LARGE, ApiProblem, Visit, path_of

_CSV_ROWS: Final = 1_000
_CSV_BYTES_MAX: Final = 1024 * 1024
_COLUMNS_MAX: Final = 100


class RowLine(NamedTuple):
    """A row of the page."""

    cells: Sequence[Any]
    """The values of the columns, the beginnings of long ones."""
    key: str | None
    """The key in the form of `/rows/{key}`; None without one."""


class HeadLink(NamedTuple):
    """The head of a column, by which the rows can be ordered."""

    column: str
    direction: str
    """`asc` or `desc`, if the rows are ordered by it first; else empty."""
    target: str


async def _read(visit: Visit) -> Context:
    frame = await dataset_frame(visit)
    dataset = frame["dataset"]
    chosen = shown_columns(visit, dataset)
    columns = chosen[:_COLUMNS_MAX]
    context: dict[str, Any] = {
        **frame,
        "tab": "Rows",
        "base": console_path(dataset),
        "columns": columns,
        "hidden": len(chosen) - len(columns),
        "names": column_names(dataset),
        "numbers": number_columns(dataset),
        "keys": frozenset(key_columns(dataset)),
        "faults": {},
        "fault": None,
        "lines": None,
        "at": "",
        "version": None,
    }
    try:
        options = _options(visit, dataset, columns, shown_lines(columns))
    except FieldFault as fault:
        return {**context, "faults": problem_fields(fault)}
    context["at"] = options["as_of"] or ""
    try:
        page = await visit.api.get(path_of("datasets", dataset["name"], "rows"), **options)
    except ApiProblem as problem:
        return {**context, "faults": _faults(problem), "fault": problem}
    instants = await instants_of(visit, dataset["name"], [page["version"]] if page["version"] else [])
    return {
        **context,
        "lines": [_line(dataset, row, columns) for row in page["rows"]],
        "heads": [_head(visit, column) for column in columns],
        "version": page["version"],
        "corrected": page.get("corrected"),
        "next_token": page["next_page_token"],
        "instants": instants.value.get(page["version"], ()),
    }


async def _read_csv(visit: Visit) -> Context:
    """The same rows as CSV for a spreadsheet, with all columns; `text` is None if it is too large."""
    frame = await dataset_frame(visit)
    dataset = frame["dataset"]
    columns = visit.query.get("columns", "")
    options = _options(visit, dataset, columns, _CSV_ROWS)
    context = {**frame, "tab": "Rows", "base": console_path(dataset)}
    try:
        response = await visit.api.response(
            "GET",
            path_of("datasets", dataset["name"], "rows"),
            headers={"Accept": "text/csv"},
            options=options,
            bytes_max=_CSV_BYTES_MAX,
        )
    except ApiProblem as problem:
        if problem.status != TOO_LARGE:
            raise
        command = _csv_command(dataset, options)
        return {
            **context,
            "text": None,
            "changed": False,
            "version": options["version"],
            "has_more": False,
            "command": command,
        }
    exact = response.body.decode(errors="replace")
    text = await visit.api.threads.run(without_formulas, exact)
    version = response.headers.get("headwater-version", "")
    return {
        **context,
        "text": text,
        "changed": text != exact,
        "version": version,
        "has_more": "headwater-next-page-token" in response.headers,
        "command": _csv_command(dataset, {**options, "version": version, "as_of": None}),
    }


def _csv_command(dataset: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """The command line that writes all of these rows to a file."""
    given = {name: options[name] for name in ("where", "columns", "order_by", "version", "as_of")}
    words = ["headwater rows", shell(dataset["name"])]
    words += [
        f"--{name.replace('_', '-')}={shell(value)}"
        for name, value in given.items()
        if value not in (None, "")
    ]
    return " ".join(words) + " -o csv > rows.csv"


def _options(visit: Visit, dataset: Mapping[str, Any], columns: Any, limit: int) -> dict[str, Any]:
    """The options of the request for rows. Raises FieldFault."""
    query = visit.query
    keys = key_columns(dataset) if isinstance(columns, list) else []
    return {
        "where": query.get("where", "").strip(),
        "columns": list(dict.fromkeys([*columns, *keys])) if isinstance(columns, list) else columns,
        "order_by": query.get("order_by", "").replace(" ", ""),
        **version_or_time(visit),
        "limit": limit,
        "page_token": query.get("page_token"),
    }


def _faults(problem: ApiProblem) -> dict[str, str]:
    names = {"as_of": "at"}
    if problem.code == "version-expired":
        return {"version": str(problem.members.get("detail", ""))}
    return {names.get(name, name): text for name, text in problem_fields(problem).items()}


def _line(dataset: Mapping[str, Any], row: Mapping[str, Any], columns: Sequence[str]) -> RowLine:
    return RowLine([short(row.get(name)) for name in columns], key_text(dataset, row))


def _head(visit: Visit, column: str) -> HeadLink:
    first = visit.query.get("order_by", "").split(",")[0].strip()
    name, _, direction = first.rpartition(":") if first.endswith((":asc", ":desc")) else (first, "", "asc")
    is_first = name == column
    order = f"{column}:desc" if is_first and direction == "asc" else column
    return HeadLink(column, direction if is_first else "", visit.link(order_by=order, page_token=None))


PAGES: Final = (
    ConsolePage(path="/datasets/{dataset:str}/rows", template="rows.html", read=_read),
    ConsolePage(path="/datasets/{dataset:str}/rows/csv", template="rows_csv.html", read=_read_csv),
)

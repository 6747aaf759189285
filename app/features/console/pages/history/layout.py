"""How the rows of a dataset are stored: its files, what reads must merge, and the services that tidy it up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.features.console.page import ConsoleAction, ConsoleForm, ConsolePage, Context, Done
from app.features.console.pages.dataset_frame import dataset_frame
from app.features.console.pages.field_values import place_in_list
from app.features.console.pages.history.layout_chart import (
    PATTERN,
    bars_of,
    bounds_text,
    file_rows,
    partition_bar,
)
from app.features.console.rendering import counted
from app.features.console.visit import PagePart, Visit, path_of, together

_FILES_MAX: Final = 1_000
"""Of more files there is a bar a partition."""
_ROWS_SHOWN: Final = 60
_TABLE_FILES: Final = 40
_BOUNDS_MAX: Final = 3
_PAGES_MAX: Final = 10
_WAIT: Final = {"Prefer": "wait=10"}


async def _read(visit: Visit) -> Context:
    base = path_of("datasets", visit.variables["dataset"])
    choice = {name: visit.query.get(name) for name in ("version", "where")}
    if "partition" in visit.query:
        choice["partition"] = visit.query["partition"]
    frame, files, statistics = await together(
        dataset_frame(visit),
        _files(visit, base, choice),
        visit.api.part(f"{base}/statistics"),
    )
    dataset = frame["dataset"]
    where_problem = None
    if files.problem and files.problem.code == "invalid-filter":
        where_problem = files.problem
        files = await _files(visit, base, {**choice, "where": None})
    context = {
        **frame,
        "files": files,
        "statistics": statistics,
        "where_problem": where_problem,
        "here": path_of("console", "datasets", dataset["name"], "layout"),
        "action": path_of("datasets", dataset["name"], "layout"),
        "pattern": PATTERN,
        "columns": [each["name"] for each in dataset["schema"]["fields"]],
        "debts": [] if statistics.problem else _debts(statistics.value),
        "many": False,
        "chart_rows": [],
        "more_rows": 0,
        "tombstones": False,
        "table": {},
        "partitions": PagePart(),
    }
    if files.problem:
        return context
    with_filter = bool(choice["where"]) and where_problem is None
    if files.value["next_page_token"] is not None and "partition" not in choice:
        return {**context, **await _by_partition(visit, base, choice, files.value, with_filter=with_filter)}
    return {**context, **_by_file(visit, dataset, files.value, with_filter=with_filter)}


async def _files(visit: Visit, base: str, choice: Mapping[str, Any]) -> PagePart:
    options = {**choice, "statistics": True, "page_size": _FILES_MAX}
    # An empty path selects the files of a table without partitions.
    return await visit.api.part(f"{base}/files", **options)


def _by_file(
    visit: Visit, dataset: Mapping[str, Any], page: Mapping[str, Any], *, with_filter: bool
) -> dict[str, Any]:
    """A bar a file, and a part of the files as a table."""
    items = page["items"]
    rows = file_rows(items, by_partition=bool(dataset["partition_by"]))
    columns = _columns_with_bounds(dataset, items)
    visible = rows[:_ROWS_SHOWN]
    first = place_in_list(visit.query.get("from"))
    entries = [{**each, "bounds": bounds_text(each, columns)} for each in items[first : first + _TABLE_FILES]]
    return {
        "chart_rows": [
            {"row": row, "bars": bars, "most": row.deleted_rows * 10 >= max(row.rows, 1) * 3}
            for row, bars in zip(visible, bars_of(visible, columns), strict=True)
        ],
        "more_rows": len(rows) - len(visible),
        "tombstones": any(each["kind"] == "tombstone" for each in items),
        "read": sum(each["read"] for each in items) if with_filter else None,
        "file_count": len(items),
        "heavy": sorted(
            (each for each in rows if each.deleted_rows * 10 >= max(each.rows, 1) * 3 or each.logs > 3),
            key=lambda each: -(each.deleted_rows + each.log_rows),
        )[:5],
        "table": {
            "files": entries,
            "columns": columns,
            "first": first,
            "next": first + _TABLE_FILES if first + _TABLE_FILES < len(items) else None,
            "total": len(items),
            "cut": page["next_page_token"] is not None,
        },
    }


async def _by_partition(
    visit: Visit, base: str, choice: Mapping[str, Any], page: Mapping[str, Any], *, with_filter: bool
) -> dict[str, Any]:
    """A bar a partition, and of a filter how many files of the table it opens."""
    version = page["version"]
    partitions = await visit.api.part(
        f"{base}/partitions",
        version=version,
        page_size=_ROWS_SHOWN,
        page_token=visit.query.get("page_token"),
    )
    items = [] if partitions.problem else partitions.value["items"]
    widest = max((each["rows"] for each in items), default=0) or 1
    counts = await _reads(visit, base, choice, page) if with_filter else None
    return {
        "many": True,
        "partitions": partitions,
        "chart_rows": [
            {
                "partition": each,
                "bars": partition_bar(each, widest),
                "read": None if counts is None else counts["by_partition"].get(each["path"], 0),
            }
            for each in items
        ],
        "read": None if counts is None else counts["read"],
        "file_count": None if counts is None else counts["files"],
        "partial": counts is not None and counts["more"],
        "heavy": [],
    }


async def _reads(
    visit: Visit, base: str, choice: Mapping[str, Any], page: Mapping[str, Any]
) -> dict[str, Any]:
    """How many of the first 10,000 files a filter opens, in all and by partition."""
    by_partition: dict[str, int] = {}
    files = read = 0
    for number in range(_PAGES_MAX):
        for each in page["items"]:
            files += 1
            read += each["read"]
            by_partition[each["partition"]] = by_partition.get(each["partition"], 0) + each["read"]
        token = page["next_page_token"]
        if token is None or number == _PAGES_MAX - 1:
            break
        options = {**choice, "page_size": _FILES_MAX, "page_token": token}
        page = await visit.api.get(f"{base}/files", **options)
    return {"by_partition": by_partition, "files": files, "read": read, "more": token is not None}


def _columns_with_bounds(dataset: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns whose bounds are shown: those of the order of the rows, then the key, then the first ones."""
    clustering = dataset["services"].get("clustering") or {}
    names = [*clustering.get("columns", ()), *dataset["record_key"]]
    names += [each["name"] for each in dataset["schema"]["fields"]]
    known = {name for each in items[:20] for name in (each["statistics"] or {})}
    return [name for name in dict.fromkeys(names) if name in known][:_BOUNDS_MAX]


def _debts(statistics: Mapping[str, Any]) -> list[str]:
    """What reads must merge or pass over, in words."""
    rows, files = statistics["rows"], statistics["files"]
    debts = []
    if rows["deleted"]:
        deleted = counted(rows["deleted"], "deleted row is", "deleted rows are")
        debts.append(f"{deleted} still stored ({rows['deleted_ratio']:.0%}): reads pass over them")
    if files["logs"]:
        in_logs = counted(rows["in_logs"], "row")
        logs = counted(files["logs"], f"log with {in_logs} is", f"logs with {in_logs} are")
        debts.append(f"{logs} merged at each read")
    if rows["postponed"]:
        postponed = counted(rows["postponed"], "postponed row is", "postponed rows are")
        debts.append(f"{postponed} not visible before a compaction")
    if files["small"] > 1:
        debts.append(
            f"{files['small']:,} of {files['base']:,} files are small: each costs a read about a request"
        )
    return debts


async def _compact(visit: Visit, form: ConsoleForm) -> Done:
    """Merges logs, deleted rows and small files."""
    body = _partitions(form)
    return await _start(visit, "compactions", body, "Compaction")


async def _cluster(visit: Visit, form: ConsoleForm) -> Done:
    """Rewrites files in the order of some columns."""
    body: dict[str, Any] = _partitions(form)
    columns = [each.strip() for each in form.text("columns").split(",") if each.strip()]
    if columns:
        body |= {"columns": columns, "order": form.text("order") or "linear"}
    return await _start(visit, "clusterings", body, "Clustering")


async def _clean(visit: Visit, form: ConsoleForm) -> Done:
    """Expires versions, and removes files that only they use."""
    body: dict[str, Any] = {}
    if form.text("versions"):
        body["versions"] = _number(form.text("versions"))
    if form.text("days"):
        days = _number(form.text("days"))
        body["seconds"] = days * 86_400 if isinstance(days, int) else days
    return await _start(visit, "cleans", body, "Clean")


async def _start(visit: Visit, path: str, body: Mapping[str, Any], word: str) -> Done:
    base = path_of("datasets", visit.variables["dataset"])
    job = await visit.api.send("POST", f"{base}/{path}", body, headers=_WAIT)
    here = visit.link(path_of("console", "datasets", visit.variables["dataset"], "layout"))
    if job["state"] != "succeeded":
        return Done(to=here, notice=f"{word} requested: job {job['id']} is {job['state']}.")
    return Done(to=here, notice=f"{word} done: {_outcome(job['result'])}.")


def _outcome(result: Mapping[str, Any]) -> str:
    if "versions_expired" in result:
        versions = counted(result["versions_expired"], "version")
        return f"{versions} and {counted(result['files_expired'], 'file')} are no longer kept"
    if not result["file_groups"]:
        return "there was nothing to do"
    return f"{counted(result['files_removed'], 'file')} became {result['files_added']:,}"


def _partitions(form: ConsoleForm) -> dict[str, Any]:
    globs = form.text("partitions").split()
    return {"partitions": globs} if globs else {}


def _number(text: str) -> int | str:
    """The number; another text as it is, for which the API says what is expected."""
    return int(text) if text.isdecimal() and len(text) < 19 else text


_PAGE: Final = ConsolePage(path="/datasets/{dataset:str}/layout", template="dataset_files.html", read=_read)
PAGES: Final = (_PAGE,)
ACTIONS: Final = (
    ConsoleAction(path="/datasets/{dataset:str}/layout/compact", run=_compact, page=_PAGE),
    ConsoleAction(path="/datasets/{dataset:str}/layout/cluster", run=_cluster, page=_PAGE),
    ConsoleAction(path="/datasets/{dataset:str}/layout/clean", run=_clean, page=_PAGE),
)

"""Writes the tables of documents that are made from the OpenAPI document, between their marks.

python -m tests.docs.api_members

A table stands between its mark and `<!-- end -->`. The marks are `<!-- members of CreateKey -->`, which names a schema,
`<!-- kinds of SchemaChange -->`, of which it lists the forms, and `<!-- parameters of GET /keys -->`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.docs.api_values import default_of, shown_type

ROOT: Final = Path(__file__).parents[2]
DOCUMENT: Final = ROOT / "docs" / "api.md"
DOCUMENTS: Final = (DOCUMENT, ROOT / "docs" / "kafka.md", ROOT / "docs" / "table-services.md")
"""Those with such tables."""
_MARKED: Final = re.compile(
    r"(<!-- (members|kinds|parameters) of ([^>]+?) -->\n)(.*?)(<!-- end -->)", re.MULTILINE | re.DOTALL
)

_BODY: Final = re.compile(r"(Create(?!d)|Update|Put|Rotate|End)[A-Z]|.*Policy$")
"""The names of schemas of requests, and of settings, whose members have defaults."""


def openapi() -> dict[str, Any]:
    """The committed OpenAPI document."""
    return json.loads((ROOT / "openapi" / "openapi.json").read_text(encoding="utf-8"))


def published(text: str) -> str:
    """The text of the page with its tables. Raises KeyError for a schema or an operation that does not exist."""
    document = openapi()

    def table(found: re.Match[str]) -> str:
        begin, kind, name, _, end = found.groups()
        lines = _TABLES[kind](document, name)
        return "\n".join([begin.rstrip("\n"), "", *lines, "", end])

    return _MARKED.sub(table, text)


def marked(text: str) -> list[str]:
    """What the tables of a text are of."""
    return [found[3] for found in _MARKED.finditer(text)]


def by_hand(text: str) -> list[str]:
    """The headings of the tables of members and of parameters that no mark has."""
    headings = re.findall(r"^(\|.*)\n\|[-|: ]+\|$", _MARKED.sub("", text), re.MULTILINE)
    return [heading for heading in headings if re.search(r"\b(members?|parameters?)\b", heading)]


def _members(document: Mapping[str, Any], name: str) -> Iterator[str]:
    schema = document["components"]["schemas"][name]
    is_body = _BODY.match(name) is not None
    required = set(schema.get("required", ()))
    yield "| member | type | description | default |" if is_body else "| member | type | description |"
    yield "|---|---|---|---|" if is_body else "|---|---|---|"
    for member, value in schema["properties"].items():
        cells = [f"`{member}`", shown_type(document, value), value["description"]]
        if is_body:
            cells.append("required" if member in required else default_of(value))
        yield _line(cells)


def _parameters(document: Mapping[str, Any], name: str) -> Iterator[str]:
    method, path = name.split(" ")
    shared = document["components"].get("parameters", {})
    yield "| parameter | type | description | default |"
    yield "|---|---|---|---|"
    for each in document["paths"][path][method.lower()]["parameters"]:
        parameter = shared[each["$ref"].rsplit("/", 1)[1]] if "$ref" in each else each
        if parameter["in"] == "query":
            default = "required" if parameter.get("required") else default_of(parameter["schema"])
            yield _line(
                [
                    f"`{parameter['name']}`",
                    shown_type(document, parameter["schema"]),
                    parameter["description"],
                    default,
                ]
            )


def _kinds(document: Mapping[str, Any], name: str) -> Iterator[str]:
    yield "| `kind` | members | effect |"
    yield "|---|---|---|"
    for kind, reference in document["components"]["schemas"][name]["discriminator"]["mapping"].items():
        schema = document["components"]["schemas"][reference.rsplit("/", 1)[1]]
        members = ", ".join(f"`{member}`" for member in schema["properties"] if member != "kind")
        yield _line([f"`{kind}`", members, schema["description"]])


_TABLES: Final = {"members": _members, "kinds": _kinds, "parameters": _parameters}


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in cells)} |"


if __name__ == "__main__":
    for page in DOCUMENTS:
        page.write_text(published(page.read_text(encoding="utf-8")), encoding="utf-8")

"""The modules of the values, as formatted source."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from clients.generator.components import Components
from clients.generator.structs import HTML, Structs

_PACKAGE: Final = "headwater_client.models"
_CLIENT: Final = Path(__file__).parents[1] / "python"
_ORIGIN: Final = "Generated from openapi/openapi.json by `make openapi`."
_SUMMARY: Final = '''"""The values of requests and responses. {origin}

Responses are decoded leniently: unknown members of a later release are ignored, and names of states and kinds are plain
strings, so that new ones break no client.
"""'''
_STANDARD: Final = {
    "datetime": "from datetime import datetime",
    "Any": "from typing import Any",
    "Literal": "from typing import Literal",
    "msgspec": "import msgspec",
    **{name: f"from headwater_client.html import {name}" for name in HTML.values()},
}


class GeneratorError(Exception):
    """The modules cannot be generated. The message has the reason."""


def sources(document: Mapping[str, Any]) -> dict[str, str]:
    """The text of each module of the values by its file name. Raises GeneratorError."""
    components = Components(document)
    structs = Structs(components)
    places: dict[str, str] = {}
    texts: dict[str, str] = {}
    for module, names in components.modules().items():
        defined = {name: text for name in names if (text := structs.source(name)) is not None}
        if not defined:
            continue
        bodies = [text for _, text in sorted(defined.items(), key=lambda each: _rank(structs, each))]
        texts[f"{module}.py"] = _module(module, bodies, defined.keys(), places)
        places |= dict.fromkeys(defined, module)
    texts["__init__.py"] = _exports(places)
    return {name: _formatted(texts[name]) for name in sorted(texts)}


def _rank(structs: Structs, definition: tuple[str, str]) -> tuple[int, str]:
    """Literals first, then structs, then the unions of structs."""
    name, text = definition
    return (2 if structs.is_union(name) else 1 if text.startswith("class ") else 0), name


def _module(module: str, bodies: list[str], defined: Iterable[str], places: Mapping[str, str]) -> str:
    body = "\n\n\n".join(bodies)
    names = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)} - set(defined)
    imports = [line for name, line in _STANDARD.items() if name in names]
    imports += [
        f"from {_PACKAGE}.{place} import {name}" for name, place in sorted(places.items()) if name in names
    ]
    return "\n".join(
        [
            f'"""Values of {module}. {_ORIGIN}"""',
            "",
            "from __future__ import annotations",
            "",
            *imports,
            "",
            body,
            "",
        ]
    )


def _exports(places: Mapping[str, str]) -> str:
    imports = [f"from {_PACKAGE}.{place} import {name}" for name, place in sorted(places.items())]
    listed = ",\n    ".join(f'"{name}"' for name in sorted(places))
    return "\n".join(
        [_SUMMARY.format(origin=_ORIGIN), "", *imports, "", f"__all__ = [\n    {listed},\n]", ""]
    )


def _formatted(text: str) -> str:
    """The source in the form of the project, with its imports in order. Raises GeneratorError."""
    ruff = Path(sys.executable).with_name("ruff")
    place = _CLIENT / "headwater_client" / "models" / "module.py"
    for arguments in (["check", "--quiet", "--select", "I", "--fix"], ["format", "--quiet"]):
        command = [str(ruff), *arguments, "--no-cache", "--stdin-filename", str(place), "-"]
        try:
            done = subprocess.run(
                command, input=text, capture_output=True, text=True, check=False, cwd=_CLIENT
            )
        except FileNotFoundError as error:
            raise GeneratorError(f"the program {ruff} is missing; `make setup` installs it") from error
        if done.returncode != 0:
            raise GeneratorError(f"{' '.join(arguments)}: {done.stderr.strip()}")
        text = done.stdout
    return text

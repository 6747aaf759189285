"""The descriptions of a struct's fields: the string that follows each field in its class.

class Webhook(msgspec.Struct):
    url: str
    \"\"\"The URL to which messages are posted.\"\"\"
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from inspect import cleandoc
from pathlib import Path
from typing import Any


@cache
def attribute_docs(type_: type[Any]) -> dict[str, str]:
    """The descriptions of a class's fields, with those that it inherits, by the names of the attributes."""
    docs: dict[str, str] = {}
    for base in reversed(type_.__mro__):
        docs |= _documented(base.__module__).get(base.__qualname__, {})
    return docs


@cache
def _documented(module: str) -> dict[str, dict[str, str]]:
    """The descriptions in each class of a module that has Python source."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or not file.endswith(".py"):
        return {}
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return {node.name: dict(_fields(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, after in zip(node.body, node.body[1:], strict=False):
        match field, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str() as text)):
                yield name, " ".join(cleandoc(text).split())

"""Mutations of a function: an abstract syntax tree in which one condition, statement or part of a query is another.

| kind | what is changed |
|---|---|
| `false`, `true` | the condition of an `if`, as a statement or an expression |
| `negated` | a comparison: `==` and `!=`, `is` and `is not`, `in` and `not in`; `not x` is `x` |
| `boundary` | a comparison: `<` and `<=`, `>` and `>=` |
| `dropped` | a statement: a call or a `raise` |
| `part dropped` | an operand of `and` and `or`, an argument of `where`, `and_`, `or_`, `min` and `max`, `+ 1` |
| `clause dropped` | `.where(…)`, `.with_for_update(…)`, `.order_by(…)` of a query |
| `member dropped` | a member of a tuple of three or more, of a dictionary, of `replace(…)` or `.values(…)` |
| `flipped` | `True` and `False` |
| `not handled` | the exceptions of an `except` |

A mutation is named by its place, its kind and the text that it changes, so that it stays the same while other code
moves: `app.kernel.commit.conflict:check_conflicts | false | not hits`.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

ROOT: Final = Path(__file__).parents[2]
_NEGATED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_BOUNDARIES: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_CLAUSES: Final = ("where", "with_for_update", "order_by")
_CONJUNCTIONS: Final = ("where", "and_", "or_")
_EXTREMES: Final = ("min", "max")
_UPDATES: Final = ("replace", "values")
# Annotations and decorators are no behaviour; tests need not notice a line of a log.
_SKIPPED_FIELDS: Final = ("annotation", "returns", "decorator_list", "type_params")
_LOGS: Final = ("log", "logger", "_log")
_TEXT_CHARACTERS: Final = 90


class Mutation(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a place, which is `module:name`."""

    place: str
    kind: str
    text: str
    """The changed code in one line, cut, with ` #2` if it is the second one of this kind and text."""

    @property
    def name(self) -> str:
        return f"{self.place} | {self.kind} | {self.text}"

    @property
    def module(self) -> str:
        return self.place.partition(":")[0]

    @classmethod
    def parse(cls, name: str) -> Mutation:
        """The mutation of a name. Raises ValueError."""
        place, kind, text = name.split(" | ", 2)
        return cls(place=place, kind=kind, text=text)

    def applied(self, source: str) -> str:
        """The source of the module with it. Raises LookupError if the code has no such place."""
        tree = ast.parse(source)
        for mutation, slot, replacement in _variants(self.place, source, tree):
            if mutation == self:
                slot.put(replacement)
                return ast.unparse(ast.fix_missing_locations(tree))
        raise LookupError(f"the code has no mutation {self.name}")


class _Slot(msgspec.Struct, frozen=True, kw_only=True):
    """Where a node hangs in its tree."""

    parent: ast.AST
    field: str
    index: int | None

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def path_of(module: str, root: Path = ROOT) -> Path:
    """The file of a module."""
    return root.joinpath(*module.split(".")).with_suffix(".py")


def mutations(place: str, source: str) -> list[Mutation]:
    """All mutations of a place, in the order of the code. Raises LookupError if the module has no such place."""
    return [mutation for mutation, _, _ in _variants(place, source, ast.parse(source))]


def _variants(place: str, source: str, tree: ast.Module) -> Iterator[tuple[Mutation, _Slot, ast.AST]]:
    counts: Counter[tuple[str, str]] = Counter()
    lines = source.encode().splitlines(keepends=True)
    for slot, node in _nodes(_node_of(place, tree)):
        for kind, replacement in _replacements(node):
            # As it is written: `ast.unparse` differs between versions of Python.
            text = " ".join(_segment(lines, node).split())[:_TEXT_CHARACTERS]
            counts[kind, text] += 1
            if (number := counts[kind, text]) > 1:
                text = f"{text} #{number}"
            yield Mutation(place=place, kind=kind, text=text), slot, replacement


def _segment(lines: list[bytes], node: Any) -> str:
    """The source of a statement, an expression or a handler. `ast.get_source_segment` splits the module for each."""
    first, last = node.lineno - 1, node.end_lineno
    segment = b"".join(lines[first:last])
    end = len(segment) - len(lines[last - 1]) + node.end_col_offset
    return segment[node.col_offset : end].decode()


def _node_of(place: str, tree: ast.Module) -> ast.AST:
    """The function, the method or the assignment of a place. Raises LookupError."""
    node: ast.AST = tree
    for name in place.partition(":")[2].split("."):
        body: list[ast.stmt] = getattr(node, "body", [])
        matches = [each for each in body if name in _names(each)]
        if len(matches) != 1:
            raise LookupError(f"{place} is {len(matches)} times in its module, not once")
        node = matches[0]
    return node


def _names(node: ast.stmt) -> set[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            return {ast.unparse(target) for target in targets}
        case ast.AnnAssign(target=target):
            return {ast.unparse(target)}
        case _:
            return set()


def _nodes(node: ast.AST) -> Iterator[tuple[_Slot, ast.AST]]:
    """All nodes below a node, each before those below it."""
    for field, value in ast.iter_fields(node):
        if field in _SKIPPED_FIELDS:
            continue
        several = isinstance(value, list)
        for index, child in enumerate(value if several else [value]):
            if isinstance(child, ast.AST):
                yield _Slot(parent=node, field=field, index=index if several else None), child
                yield from _nodes(child)


def _replacements(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What may stand in the place of a node, each with its kind."""
    yield from _statements(node) if isinstance(node, ast.stmt | ast.excepthandler) else _expressions(node)


def _statements(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Expr(value=ast.Call() as call):
            if ast.unparse(call.func).split(".")[0] not in _LOGS:
                yield "dropped", ast.Pass()
        case ast.Raise():
            yield "dropped", ast.Pass()
        case ast.If():
            for kind, value in (("false", False), ("true", True)):
                yield kind, _with(node, test=ast.Constant(value))
        case ast.ExceptHandler(type=ast.AST()):
            yield "not handled", _with(node, type=ast.Tuple([], ast.Load()))


def _expressions(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Compare(ops=[operator]):
            for kind, others in (("negated", _NEGATED), ("boundary", _BOUNDARIES)):
                if type(operator) in others:
                    yield kind, _with(node, ops=[others[type(operator)]()])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "negated", operand
        case ast.BoolOp(values=values):
            for number in range(len(values)):
                remaining = values[:number] + values[number + 1 :]
                yield "part dropped", remaining[0] if len(remaining) == 1 else _with(node, values=remaining)
        case ast.Call(func=function, args=arguments):
            yield from _clauses(node, function, arguments)
        case ast.IfExp(body=body, orelse=orelse):
            yield "true", body
            yield "false", orelse
        case ast.Tuple() | ast.Dict():
            yield from _members(node)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=ast.Constant(value=int())):
            yield "part dropped", left
        case ast.Constant(value=bool() as value):
            yield "flipped", ast.Constant(not value)


def _members(node: ast.Tuple | ast.Dict) -> Iterator[tuple[str, ast.AST]]:
    match node:
        # A tuple of two is mostly a result that is unpacked.
        case ast.Tuple(elts=[_, _, _, *_], ctx=ast.Load()):
            fields = ["elts"]
        case ast.Dict(keys=[_, _, *_]):
            fields = ["keys", "values"]
        case _:
            return
    for number in range(len(getattr(node, fields[0]))):
        others = {name: list(getattr(node, name)) for name in fields}
        for members in others.values():
            del members[number]
        yield "member dropped", _with(node, **others)


def _clauses(node: ast.Call, function: ast.expr, arguments: list[ast.expr]) -> Iterator[tuple[str, ast.AST]]:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name in _EXTREMES and len(arguments) > 1:
        for argument in arguments:
            yield "part dropped", argument
    if name in _UPDATES:
        for number in range(len(node.keywords)):
            yield "member dropped", _with(node, keywords=node.keywords[:number] + node.keywords[number + 1 :])
    if name in _CONJUNCTIONS and len(arguments) > 1:
        for number in range(len(arguments)):
            yield "part dropped", _with(node, args=arguments[:number] + arguments[number + 1 :])
    if isinstance(function, ast.Attribute) and name in _CLAUSES:
        yield "clause dropped", function.value


def _with(node: ast.AST, **fields: object) -> ast.AST:
    """A copy of a node with other fields."""
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other

"""How a page and a form are declared."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from app.features.console.visit import NoticeKind, Visit

Context: TypeAlias = Mapping[str, Any]
"""The values of a template, by name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsolePage:
    """A page below `/console`. `read` gets the values of the template; it raises ApiProblem if it cannot."""

    path: str
    """In the form of routes, such as `/datasets/{dataset:str}`; empty for the first page."""
    template: str
    """The name of its template."""
    read: Callable[[Visit], Awaitable[Context]]
    in_outages: bool = False
    """Whether operators get it while the database is away."""


@dataclass(frozen=True, slots=True)
class ConsoleForm:
    """What a person has filled in: the texts by the names of the fields."""

    fields: Mapping[str, Sequence[str]]

    def text(self, name: str) -> str:
        """The text of a field without spaces around it; empty if it was left out."""
        values = self.fields.get(name, ())
        return values[-1].strip() if values else ""

    def texts(self, name: str) -> Sequence[str]:
        """All texts of a field that can be chosen several times."""
        return self.fields.get(name, ())

    def checked(self, name: str) -> bool:
        """Whether a box is checked."""
        return bool(self.text(name))


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """An action has ended: the reader is sent to a page, which shows the notice."""

    to: str
    """The path and query of the page."""
    notice: str = ""
    """What was done, as a sentence."""
    kind: NoticeKind = "good"


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """An action has succeeded and shows a page at once, such as a secret that is shown once."""

    template: str
    context: Context = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsoleAction:
    """What a form of a page does, by POST. `run` raises ApiProblem for what the API refuses."""

    path: str
    """In the form of routes, below `/console`."""
    run: Callable[[Visit, ConsoleForm], Awaitable[Done | Shown]]
    page: ConsolePage | None = None
    """The page of the form, which is shown again with the problem and what was filled in (`form`, `problem`). None
    shows the problem alone.
    """

"""Renders templates: HTML with all values escaped, numbers and times as people read them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from app.features.console.charts import CHARTS
from app.features.console.commands import curl_line, operands, shell
from app.infra.files.probe import readable_bytes

_FOLDER: Final = Path(__file__).parent
STATIC: Final = _FOLDER / "static"
_CELL_CHARACTERS: Final = 120
_MAGNITUDES: Final = ("", "k", "M", "G", "T")
_THOUSAND: Final = 1_000
_PROBLEMS: Final = {
    "late": "late",
    "source": "its source fails",
    "view": "its refresh fails",
    "webhook": "a webhook is paused",
}
_KINDS_OF_STATES: Final = {
    "queued": "idle", "running": "busy", "succeeded": "good", "failed": "bad", "cancelled": "idle",
    "active": "good", "paused": "warning", "finished": "idle", "ended": "idle", "current": "good",
    "behind": "warning", "pending": "busy", "delivered": "good", "dead": "bad",
}  # fmt: skip
_MEMBERS_OF_ALL_PROBLEMS: Final = frozenset({"type", "title", "status", "detail", "instance", "errors"})
_FACTS_MAX: Final = 12
_FACT_CHARACTERS: Final = 500
# In an attribute, the characters < and > are escaped. Links of `macros.ranges` state the range of time themselves.
_LINK: Final = re.compile(r'(<a (?![^>]*\bdata-range\b)[^>]*?\bhref=")(/console(?:[/?#][^"]*)?)(?=")')
_SPANS: Final = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))


def render(template: str, context: Mapping[str, Any]) -> str:
    """The HTML of a template. Raises jinja2.UndefinedError for a value that the context lacks."""
    return _environment().get_template(template).render(context)


def with_links(html: str, target: Callable[[str], str]) -> str:
    """The page, whose links to pages of the console lead to what `target` returns for them."""
    return _LINK.sub(lambda found: f"{found[1]}{escape(target(unescape(found[2])))}", html)


@cache
def assets() -> Mapping[str, bytes]:
    """The files that pages load, by name."""
    return {path.name: path.read_bytes() for path in sorted(STATIC.iterdir()) if path.is_file()}


@cache
def asset_version() -> str:
    """A digest of all files that pages load: it is in their addresses, so that they may be cached for ever."""
    digest = hashlib.sha256()
    for name, content in assets().items():
        digest.update(name.encode() + b"\0" + content)
    return digest.hexdigest()[:16]


def number(value: float | None) -> str:
    """A number with separated thousands: 1,204,331. At most three digits after the point."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}".rstrip("0").rstrip(".")


def counted(value: float | None, one: str, many: str = "") -> str:
    """A number of things: 1 row, 2 rows. `many`: the word for several, if it is not `one` with an s."""
    return f"{number(value)} {one if value == 1 else many or f'{one}s'}"


def byte_size(value: float | None) -> str:
    """Bytes in the unit that fits: 12.4 MB."""
    if value is None:
        return "–"
    return readable_bytes(value)


def duration(seconds: float | None) -> str:
    """A span of time in one unit or two: 84 ms, 1.2 s, 3 min 20 s, 2 d 4 h."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    parts: list[str] = []
    rest = round(seconds)
    for size, unit in _SPANS:
        count, rest = divmod(rest, int(size))
        if count or parts:
            parts.append(f"{count:.0f} {unit}")
    return " ".join(part for part in parts[:2] if not part.startswith("0 "))


def moment(value: str | datetime | None, now: datetime) -> Markup:
    """A time as its distance from now, with the exact one on hover. The script shows it in the reader's zone."""
    if value is None:
        return Markup("–")
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    seconds = (now - at).total_seconds()
    distance = f"{duration(abs(seconds))} ago" if seconds >= 0 else f"in {duration(-seconds)}"
    if abs(seconds) < 1:
        distance = "just now"
    exact = at.astimezone(UTC)
    return Markup('<time datetime="{}" title="{} UTC" data-distance>{}</time>').format(
        exact.isoformat(), exact.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3], distance
    )


def age(value: str, now: datetime) -> Markup:
    """How long something has run that began at this time, with the time on hover."""
    at = datetime.fromisoformat(value).astimezone(UTC)
    return Markup('<time datetime="{}" title="since {} UTC" data-span>{}</time>').format(
        at.isoformat(), at.strftime("%Y-%m-%d %H:%M:%S"), duration(max((now - at).total_seconds(), 0.0))
    )


def is_ahead(value: str | datetime, now: datetime) -> bool:
    """Whether a time is still to come."""
    return (datetime.fromisoformat(value) if isinstance(value, str) else value) > now


def instant(value: str | datetime | None) -> Markup:
    """The exact time, in UTC. The script shows it in the reader's zone."""
    if value is None:
        return Markup("–")
    at = (datetime.fromisoformat(value) if isinstance(value, str) else value).astimezone(UTC)
    return Markup('<time datetime="{}">{} UTC</time>').format(
        at.isoformat(), at.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    )


def cell(value: Any) -> Markup:
    """A value of a column: nulls and nested values are notices apart from texts."""
    if value is None:
        return Markup('<span class="null">null</span>')
    if isinstance(value, bool):
        return escape(str(value).lower())
    if isinstance(value, dict | list):
        return Markup("<code>{}</code>").format(msgspec.json.encode(value).decode())
    return escape(value)


def sentence(text: str) -> str:
    """The text with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]


def short_number(value: float | None) -> str:
    """A number in three digits or so: 48.2 M. For places where an exact one has no room."""
    if value is None:
        return "–"
    size, unit = float(value), ""
    for unit in _MAGNITUDES:
        if abs(size) < _THOUSAND or unit == _MAGNITUDES[-1]:
            break
        size /= _THOUSAND
    text = f"{size:.0f}" if not unit or size >= _THOUSAND / 10 else f"{size:.1f}".removesuffix(".0")
    return f"{text} {unit}".strip()


def hour_rows(hours: Sequence[Mapping[str, Any]], name: str) -> list[tuple[str, str]]:
    """Hours and one of their numbers, as texts. `hours`: as GET /overview/hours has them."""
    return [(str(each["hour"])[:16].replace("T", " "), number(each[name])) for each in hours]


def hour_names(hours: Sequence[Mapping[str, Any]], name: str, noun: str) -> list[str]:
    """What a bar of an hour shows on hover: 11-29 10:00 UTC, 1,204 rows."""
    return [f"{str(each['hour'])[5:16].replace('T', ' ')} UTC, {counted(each[name], noun)}" for each in hours]


def problem_word(problem: str) -> str:
    """A problem of a dataset, as GET /overview names it, in words."""
    return _PROBLEMS.get(problem, problem)


class StateWords(NamedTuple):
    """A state as pages show it. `kind`: good, warning, bad, idle or busy."""

    kind: str
    words: str


def state_words(state: str | None) -> StateWords:
    """The state of a job, a source, a view, a webhook, an export or a message; without words for None."""
    return StateWords(_KINDS_OF_STATES.get(state or "", "idle"), state or "")


def webhook_state(webhook: Mapping[str, Any]) -> StateWords:
    """The state of a webhook, as GET /webhooks has it. An active one whose receiver did not take the last message is
    failing.
    """
    if webhook["state"] == "active" and webhook["retry"]:
        return StateWords("warning", f"failing, {counted(webhook['retry']['attempts'], 'attempt')}")
    if webhook["state"] == "active" and webhook["failures"]:
        return StateWords("warning", f"failing, {counted(webhook['failures'], 'message')} given up")
    return state_words(webhook["state"])


def problem_facts(members: Mapping[str, Any]) -> dict[str, str]:
    """The facts of a problem document beyond the members that all have, by name, as JSON; the first ones of many."""
    facts = {
        name.replace("_", " "): clipped(
            value if isinstance(value, str) else msgspec.json.encode(value).decode(), _FACT_CHARACTERS
        )
        for name, value in members.items()
        if name not in _MEMBERS_OF_ALL_PROBLEMS and value is not None
    }
    return dict(list(facts.items())[:_FACTS_MAX])


def instant_word(instant: Mapping[str, Any]) -> str:
    """What an instant of a timeline does, in a few words: of a write its operation."""
    action = str(instant["action"])
    if action == "commit":
        return str(instant["operation"])
    if action == "schema":
        return "schema change"
    version = (instant["parameters"] or {}).get("to_version")
    return action if version is None else f"{action} to v{version:,}"


def fault_of(problem: Any, pointer: str) -> str:
    """What a problem document states about a member; empty for nothing. `problem`: None or an ApiProblem."""
    errors = [] if problem is None else problem.members.get("errors") or []
    return "; ".join(each.get("detail", "") for each in errors if each.get("pointer") == pointer)


def ticks(text: str) -> Markup:
    """The text, with what stands between backticks as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else escape(part)
        for index, part in enumerate(parts)
    )


def clipped(value: Any, characters: int = _CELL_CHARACTERS) -> str:
    """The text; of a longer one its beginning, and `…`."""
    text = str(value)
    return text if len(text) <= characters else text[: characters - 1] + "…"


def pretty(value: Any) -> str:
    """The JSON of a value, on several lines."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=number,
        byte_size=byte_size,
        counted=counted,
        duration=duration,
        moment=moment,
        age=age,
        instant=instant,
        is_ahead=is_ahead,
        cell=cell,
        pretty=pretty,
        sentence=sentence,
        problem_word=problem_word,
        instant_word=instant_word,
        state_words=state_words,
        webhook_state=webhook_state,
        problem_facts=problem_facts,
        shell=shell,
        curl_line=curl_line,
        operands=operands,
        ticks=ticks,
        fault_of=fault_of,
        short_number=short_number,
        hour_rows=hour_rows,
        hour_names=hour_names,
        clipped=clipped,
    )
    environment.globals.update(CHARTS, static=f"/console/static/{asset_version()}")
    return environment

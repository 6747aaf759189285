"""Pages of the console as a browser reads them: elements by tag, their texts, and what every page must satisfy."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from typing import Final

import httpx2

_VOID: Final = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
_FIELDS: Final = frozenset({"input", "select", "textarea"})
_UNLABELLED: Final = frozenset({"hidden", "submit", "button"})
_HEADINGS: Final = ("h1", "h2", "h3", "h4")
PAGE_BYTES_MAX: Final = 100_000


class PageElement:
    """An element with its attributes, its texts and the elements in it."""

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.parts: list[PageElement | str] = []

    def __iter__(self) -> Iterator[PageElement]:
        """This element and all elements in it, in the order of the page."""
        yield self
        for part in self.parts:
            if isinstance(part, PageElement):
                yield from part

    @property
    def text(self) -> str:
        """All of its texts, with single spaces."""
        return " ".join(self._text().split())

    def _text(self) -> str:
        return "".join(part if isinstance(part, str) else part._text() for part in self.parts)

    def all(self, tag: str, /, **attributes: str) -> list[PageElement]:
        """The elements in it with this tag, and these values of attributes (`class_` for class, `_` for -).

        Of the attribute class, the value is one of several words.
        """
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [each for each in self if each.tag == tag and each._has(wanted)]

    def one(self, tag: str, /, **attributes: str) -> PageElement:
        """The only such element."""
        matches = self.all(tag, **attributes)
        assert len(matches) == 1, f"{len(matches)} elements {tag} with {attributes} in: {self.text[:500]}"
        return matches[0]

    def link(self, text: str) -> str:
        """The address of the first link with this text."""
        matches = [each for each in self.all("a") if each.text == text]
        assert matches, f"no link {text!r} in: {self.text[:500]}"
        return matches[0].attributes["href"]

    def rows(self) -> list[list[str]]:
        """The texts of the cells of each row in it, those of the heads included."""
        return [
            [cell.text for cell in row if cell.tag in ("td", "th") and cell is not row]
            for row in self.all("tr")
        ]

    def _has(self, wanted: dict[str, str]) -> bool:
        return all(
            value in self.attributes.get(name, "").split()
            if name == "class"
            else self.attributes.get(name) == value
            for name, value in wanted.items()
        )


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = PageElement("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), f"an attribute of {tag} occurs twice: {names}"
        element = PageElement(tag, {name: value or "" for name, value in attributes})
        self._open[-1].parts.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in _VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> ends <{self._open[-1].tag}>, at {self.getpos()}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].parts.append(data)


def parsed(html: str) -> PageElement:
    """The elements of a page. Fails for one whose elements do not end in order."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    assert parser._open == [parser.root], f"<{parser._open[-1].tag}> does not end"
    return parser.root


def page(client: httpx2.Client, path: str, status: int = 200) -> PageElement:
    """The page at a path of the console, which satisfies what every page must. The client is signed in."""
    response = client.get(path)
    assert response.status_code == status, response.text[:2_000]
    return checked_page(response)


def checked_page(response: httpx2.Response) -> PageElement:
    """The page of a response, which satisfies what every page must."""
    assert response.headers["content-type"].startswith("text/html"), response.headers
    assert len(response.content) <= PAGE_BYTES_MAX, f"the page has {len(response.content)} bytes"
    root = parsed(response.text)
    faults = list(_faults(root))
    assert not faults, faults
    return root


def submit(client: httpx2.Client, root: PageElement, action: str, /, **fields: str) -> httpx2.Response:
    """Sends the form with this action as a browser does: its values, and those of `fields` in place of them."""
    forms = root.all("form", action=action, method="post")
    assert forms, f"no form leads to {action}"
    data: dict[str, str | list[str]] = {**form_values(forms[0]), **fields}
    return client.post(action, data=data)


def form_values(form: PageElement) -> dict[str, str]:
    """The fields of a form as a browser sends them if nothing was changed."""
    values: dict[str, str] = {}
    for each in form:
        name = each.attributes.get("name")
        if not name:
            continue
        kind = each.attributes.get("type", "text")
        if each.tag == "input" and (kind not in ("checkbox", "radio") or "checked" in each.attributes):
            values[name] = each.attributes.get("value", "on" if kind == "checkbox" else "")
        elif each.tag == "textarea":
            values[name] = each._text()
        elif each.tag == "select":
            options = each.all("option")
            chosen = [option for option in options if "selected" in option.attributes] or options[:1]
            for option in chosen:
                values[name] = option.attributes.get("value", option.text)
    return values


def _faults(root: PageElement) -> Iterator[str]:
    ids = [each.attributes["id"] for each in root if "id" in each.attributes]
    yield from (
        f"the id {each} occurs twice" for each in sorted({each for each in ids if ids.count(each) > 1})
    )
    labelled = {each.attributes.get("for") for each in root.all("label")}
    for each in root:
        yield from (
            f"{each.tag} has {name}" for name in each.attributes if name == "style" or name[:2] == "on"
        )
        if each.tag == "style" or (each.tag == "script" and each.text):
            yield f"an inline {each.tag}"
        if (
            each.tag == "svg"
            and not each.attributes.get("aria-label")
            and "aria-hidden" not in each.attributes
        ):
            yield "a chart without a label"
    inside = {id(field) for label in root.all("label") for field in label}
    for each in root:
        if each.tag not in _FIELDS or each.attributes.get("type") in _UNLABELLED:
            continue
        named = each.attributes.get("aria-label") or each.attributes.get("aria-labelledby")
        if not named and id(each) not in inside and each.attributes.get("id") not in labelled:
            yield f"the field {each.attributes.get('name')} has no label"
    levels = [_HEADINGS.index(each.tag) + 1 for each in root if each.tag in _HEADINGS]
    if levels.count(1) != 1:
        yield f"{levels.count(1)} main headings"
    yield from (f"h{high} follows h{low}" for low, high in pairwise(levels) if high > low + 1)

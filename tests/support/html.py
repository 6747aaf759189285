"""The texts of the cells of an HTML table, as a browser would show them."""

from __future__ import annotations

from html.parser import HTMLParser

_CELLS = frozenset({"caption", "td", "th"})


class _Table(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[list[str]] = []
        self._in_cell = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in _CELLS | {"table", "tr"}, tag
        assert not attributes
        if tag in {"caption", "tr"}:
            self.lines.append([])
        if tag in _CELLS:
            self.lines[-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag not in _CELLS

    def handle_data(self, data: str) -> None:
        # Line breaks between elements are no texts.
        if self._in_cell:
            self.lines[-1][-1] += data


def texts_of(table: str) -> list[list[str]]:
    """The caption, and the cells of each line."""
    parser = _Table()
    parser.feed(table)
    parser.close()
    return parser.lines

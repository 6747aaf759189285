"""The notebook of the examples, run cell by cell as Jupyter would."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "feed.ipynb"
SVG = "{http://www.w3.org/2000/svg}"


def cells() -> list[dict[str, Any]]:
    """The cells with code."""
    return [
        each
        for each in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
        if each["cell_type"] == "code"
    ]


def shown(cell: dict[str, Any], names: dict[str, Any]) -> object:
    """Runs a cell; the value of its last expression, which a notebook shows, or None."""
    tree = ast.parse("".join(cell["source"]))
    last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, NOTEBOOK.name, "exec"), names)
    return None if last is None else eval(compile(last, NOTEBOOK.name, "eval"), names)


def test_notebook_runs_and_its_plots_have_the_feed(service, api_key, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADWATER_URL", service.url)
    monkeypatch.setenv("HEADWATER_API_KEY", api_key)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    names: dict[str, Any] = {}
    with service.working():
        values = [shown(each, names) for each in cells()]
    loaded, corrected, page, temperatures, bars, law = [each for each in values if each is not None]
    assert loaded == (1, 24)
    assert corrected == (2, 7, 1)
    assert [change.op for change in page.changes] == ["-C", "+C"] * 3
    lines = ET.fromstring(temperatures._repr_svg_()).findall(f"{SVG}polyline")
    assert len(lines) == 2
    assert lines[0].get("points") != lines[1].get("points")
    assert len(ET.fromstring(bars._repr_svg_()).findall(f"{SVG}rect")) == 3
    assert law is True


def test_stored_results_are_there_and_name_no_service() -> None:
    stored = [each for each in cells() if each["outputs"]]
    assert len(stored) == 6
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert "hw_" not in text
    assert "http://127" not in text


@pytest.mark.parametrize("number", range(len(cells())))
def test_stored_plots_are_svg(number: int) -> None:
    for output in cells()[number]["outputs"]:
        for text in output["data"].get("image/svg+xml", ()):
            assert ET.fromstring(text).tag == f"{SVG}svg"

"""The committed document passes the linters Redocly and Spectral, without an error or a warning."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.process.openapi.packages import install, pinned_packages
from tests.support.shares import share

HERE = Path(__file__).parent
RULES = HERE.parents[2] / "openapi"
DOCUMENT = RULES / "openapi.json"
# What a broken rule is called, by the name of the document.
Broken: TypeAlias = dict[str, list[str]]

needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="npm, which runs the linters, is missing")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the linters, the document, and a copy of it with an example and a name that are not valid."""
    found = tmp_path_factory.mktemp("lint")
    install(HERE / "lint", found)
    shutil.copy(DOCUMENT, found)
    document = json.loads(DOCUMENT.read_text())
    schemas = document["components"]["schemas"]
    schemas["Dataset"]["examples"][0]["version"] = "seven"
    schemas["DatasetInner"] = schemas["DatasetIdentity"]
    (found / "broken.json").write_text(json.dumps(document))
    return found


def reported(folder: Path, *command: str) -> str:
    """The report of a linter on both documents."""
    ended = subprocess.run(
        ["npx", "--no-install", *command, DOCUMENT.name, "broken.json"],
        cwd=folder,
        env={**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.stdout.strip(), ended.stderr
    return ended.stdout


def by_document(problems: list[Any], rule: Callable[[Any], str], file: Callable[[Any], str]) -> Broken:
    """The rules that each document breaks, errors and warnings alike."""
    broken: Broken = {DOCUMENT.name: [], "broken.json": []}
    for problem in problems:
        broken[Path(file(problem)).name].append(rule(problem))
    return broken


@share(2)
@needs_npm
def test_redocly_reports_errors_only_in_a_broken_document(folder: Path) -> None:
    text = reported(folder, "redocly", "lint", "--config", str(RULES / "redocly.yaml"), "--format", "json")
    # A report for each document.
    reports = [
        json.loads(report) for report in re.split(r"(?<=^})", text.strip(), flags=re.MULTILINE) if report
    ]
    found = by_document(
        [problem for report in reports for problem in report["problems"]],
        lambda each: each["ruleId"],
        lambda each: each["location"][0]["source"]["ref"],
    )
    assert found[DOCUMENT.name] == []
    assert "no-invalid-schema-examples" in found["broken.json"]


@share(4)
@needs_npm
def test_spectral_reports_errors_only_in_a_broken_document(folder: Path) -> None:
    rules = str(RULES / "spectral.yaml")
    report = reported(folder, "spectral", "lint", "--quiet", "-F", "hint", "-f", "json", "-r", rules)
    found = by_document(json.loads(report), lambda each: each["code"], lambda each: each["source"])
    assert found[DOCUMENT.name] == []
    assert {"components-have-names-of-their-own", "oas3-unused-component"} <= set(found["broken.json"])


def test_the_linters_are_pinned_by_hash() -> None:
    assert pinned_packages(HERE / "lint")

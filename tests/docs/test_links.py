"""Shell blocks and links of the documents fit the repository."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.examples import blocks

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name(document):
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_shell_block_is_run_or_names_existing_targets(document):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for block in blocks(document):
        if block.language != "sh" or block.run:
            continue
        for line in block.text.splitlines():
            words = line.partition("#")[0].split()
            if words[:1] == ["make"]:
                goals = [word for word in words[1:] if "=" not in word]
                assert set(goals) <= targets, f"{name(document)}:{block.line} {line}"
        checked = subprocess.run(["sh", "-n", "-c", block.text], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, f"{name(document)}:{block.line} {checked.stderr}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_links_resolve(document):
    text = re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (document.parent / path).resolve() if path else document
        assert file.exists(), f"{name(document)} -> {target}"
        if anchor:
            assert anchor in anchors(file), f"{name(document)} -> {target}"


def anchors(document):
    """The anchors that a Markdown file's headings get."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}

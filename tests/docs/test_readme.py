"""The commands in the documents work, and have the documented results."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.examples import blocks, check, check_answer, examples, run

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCUMENTS = [README, *sorted((ROOT / "docs").rglob("*.md"))]
# These start Spark: tests/flows and tests/spark try them.
ON_SPARK = (ROOT / "docs" / "views.md", ROOT / "docs" / "spark.md")
TRIED = [document for document in DOCUMENTS if examples(document) and document not in ON_SPARK]


def name(document):
    return str(document.relative_to(ROOT))


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl, which the examples use, is not here")
@pytest.mark.parametrize("document", TRIED, ids=name)
def test_document_examples_return_the_documented_responses(document, service, tmp_path):
    with service.working():
        answered = list(run(document, tmp_path, service.url, service.new_key(f"reader of {name(document)}")))
    for example, received in answered:
        if example.answer is not None:
            try:
                check_answer(example.answer, received)
            except AssertionError as error:
                raise AssertionError(f"{name(document)}:{example.answer.line} {error}") from None


def test_readme_shows_write_feed_and_time_travel():
    commands = "\n".join(example.command for example in examples(README))
    for part in ("/datasets", "/writes", "Prefer: wait=10", "/changes", "/rows", "version="):
        assert part in commands
    assert all(example.answer for example in examples(README) if "curl" in example.command)


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


@pytest.mark.parametrize(
    ("shown", "received"),
    [
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {}),
        ([1], [1, 2]),
        ("a … c", "a b d"),
        (1, True),
        ({"created_at": "2026-11-21T10:00:00Z"}, {"created_at": "yesterday"}),
    ],
)
def test_wrong_response_is_detected(shown, received):
    with pytest.raises(AssertionError):
        check(shown, received, "")

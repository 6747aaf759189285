"""The commands in the documents work, and have the documented results."""

import shutil
from pathlib import Path

import pytest

from tests.docs.examples import check, check_answer, examples, run

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

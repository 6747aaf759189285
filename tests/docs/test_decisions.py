"""Decision records have a status and a date, name the records that they supersede, and are listed with all of these.

The form of a record is described in docs/decisions/README.md.
"""

import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

DECISIONS = Path(__file__).parents[2] / "docs" / "decisions"
STATUSES = {"Supersedes": "superseded by", "Supersedes in part": "superseded in part by"}
LINK = re.compile(r"\[(\d{4})\]\((\d{4})-[\w-]+\.md\)")


@dataclass(frozen=True, kw_only=True)
class Record:
    """The head of a decision record."""

    number: str
    title: str
    status: str
    """The status without its links: `superseded by 0091`."""
    date: str
    supersedes: dict[str, list[str]]
    """By the word of the line: numbers of older records."""


def record(path):
    title, *lines = path.read_text(encoding="utf-8").partition("\n\n**Context.**")[0].splitlines()
    head = "\n".join(lines).replace("\n  ", " ")
    listed = dict(re.findall(r"^- ([A-Z][a-z ]+): (.+)$", head, re.MULTILINE))
    return Record(
        number=path.name[:4],
        title=title.removeprefix("# "),
        status=LINK.sub(r"\1", listed.pop("Status", "")),
        date=listed.pop("Date", ""),
        supersedes={word: [number for number, _ in LINK.findall(text)] for word, text in listed.items()},
    )


RECORDS = [record(path) for path in sorted(DECISIONS.glob("0*.md"))]


@pytest.mark.parametrize("decision", RECORDS, ids=lambda decision: decision.number)
def test_record_has_a_status_and_a_date(decision):
    assert re.fullmatch(
        r"accepted|(?:superseded by|superseded in part by) \d{4}(?:, \d{4})*", decision.status
    ), decision.status
    assert date.fromisoformat(decision.date).isoformat() == decision.date
    assert decision.supersedes.keys() <= STATUSES.keys()


def test_records_name_each_other():
    newer = {
        (old, STATUSES[word], decision.number)
        for decision in RECORDS
        for word, numbers in decision.supersedes.items()
        for old in numbers
    }
    older = {
        (decision.number, decision.status.partition(" by ")[0] + " by", number)
        for decision in RECORDS
        for number in re.findall(r"\d{4}", decision.status)
    }
    assert newer == older


def test_every_record_is_listed_with_its_status_and_date():
    listed = re.findall(
        r"^\| \[(\d{4})\]\(\1-[\w-]+\.md\) \| (.*) \| (.*) \| (.*) \|$",
        (DECISIONS / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert listed == [(each.number, each.title, each.status, each.date) for each in RECORDS]


def test_links_to_records_state_the_number_of_the_record():
    documents = [DECISIONS.parents[1] / "README.md", *DECISIONS.parent.rglob("*.md")]
    links = [
        link
        for document in documents
        for link in re.findall(
            r"\[(?:decision\s)?(\d{4})\]\((?:[./]*decisions/)?(\d{4})-", document.read_text("utf-8")
        )
    ]
    assert len(links) > 100
    assert [link for link in links if link[0] != link[1]] == []

"""A commit whose answer is lost, or whose database is out of reach, happens once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Final

import pytest

from app.core.jobs.values import Claim
from app.core.timeline.ports import OutcomeUnknown
from app.core.timeline.service import publish as publishing
from app.core.timeline.service.publish import Publish
from app.core.timeline.values import Fenced, JobOutcome, NewCommit, Overtaken, Published
from app.infra.errors import Unavailable
from app.infra.identifiers import new_id, new_instant_id
from app.kernel.commit.conflict import Conflicted
from app.kernel.format.errors import CommitConflict
from app.kernel.format.instant import Action, RowCounts

Refusal = Conflicted | Overtaken | Fenced
Answer = tuple[Published, ...] | Refusal | Exception | None
PUBLISHED: Final = (Published(version=4, first_offset=7, next_offset=9),)
LOST: Final = OutcomeUnknown("the connection broke")
DOWN: Final = Unavailable("the database is out of reach")


@dataclass
class Timeline:
    """Gives these answers, one after another, and notes which question each was to."""

    answers: list[Answer]
    calls: list[str] = field(default_factory=list)
    requested: list[Mapping[str, Sequence[str]]] = field(default_factory=list)

    def publish(self, tenant_id: str, commits: Sequence[NewCommit]) -> tuple[Published, ...] | Refusal:
        answer = self._answer("publish")
        assert answer is not None
        return answer

    def outcome_of(
        self, tenant_id: str, jobs_of: Mapping[str, Sequence[str]]
    ) -> tuple[Published, ...] | None:
        self.requested.append(jobs_of)
        answer = self._answer("outcome")
        assert not isinstance(answer, Conflicted | Overtaken | Fenced)
        return answer

    def _answer(self, question: str) -> tuple[Published, ...] | Refusal | None:
        self.calls.append(question)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made, none of which takes any time."""
    made: list[float] = []
    # Threads of other tests pause, too.
    monkeypatch.setattr(publishing, "time", SimpleNamespace(sleep=made.append))
    return made


def commit(dataset_id: str, *job_ids: str) -> NewCommit:
    return NewCommit(
        dataset_id=dataset_id,
        action=Action.COMMIT,
        read_version=3,
        schema_id=1,
        outcomes=tuple(
            JobOutcome(claim=Claim(job_id=job_id, epoch=1), instant_id=new_instant_id(), counts=RowCounts())
            for job_id in job_ids
        ),
        messages=(),
    )


def publish(timeline: Timeline) -> tuple[Published, ...] | Refusal:
    return Publish(timeline=timeline).run("t", [commit("d", new_id())])


def test_commit_with_a_lost_response_is_published_once() -> None:
    timeline = Timeline([LOST, PUBLISHED])
    assert publish(timeline) == PUBLISHED
    assert timeline.calls == ["publish", "outcome"]


def test_commit_that_did_not_happen_is_published_again() -> None:
    timeline = Timeline([LOST, None, PUBLISHED])
    assert publish(timeline) == PUBLISHED
    assert timeline.calls == ["publish", "outcome", "publish"]


def test_commit_that_is_lost_twice_is_searched_for_before_each_further_try() -> None:
    timeline = Timeline([LOST, None, LOST, PUBLISHED])
    assert publish(timeline) == PUBLISHED
    assert timeline.calls == ["publish", "outcome", "publish", "outcome"]


def test_outcome_is_requested_until_the_database_answers() -> None:
    timeline = Timeline([LOST, DOWN, DOWN, PUBLISHED])
    assert publish(timeline) == PUBLISHED
    assert timeline.calls == ["publish", "outcome", "outcome", "outcome"]


def test_commit_that_was_not_sent_is_published_without_asking_for_its_outcome() -> None:
    timeline = Timeline([DOWN, DOWN, PUBLISHED])
    assert publish(timeline) == PUBLISHED
    assert timeline.calls == ["publish"] * 3


def test_outcome_is_requested_for_all_jobs_by_dataset() -> None:
    timeline = Timeline([LOST, PUBLISHED])
    Publish(timeline=timeline).run("t", [commit("a", "1", "2"), commit("b", "3")])
    assert timeline.requested == [{"a": ["1", "2"], "b": ["3"]}]


@pytest.mark.parametrize(
    "refusal",
    [
        Fenced(valid_ids=frozenset()),
        Overtaken(dataset_id="d", since=5),
        Conflicted(file_groups=("g",), winner="i", winner_version=4, head_version=4),
    ],
)
def test_refusal_is_returned_after_a_lost_response(refusal: Refusal) -> None:
    assert publish(Timeline([refusal])) == refusal
    assert publish(Timeline([LOST, None, refusal])) == refusal


def test_other_errors_are_raised() -> None:
    with pytest.raises(CommitConflict):
        publish(Timeline([CommitConflict("the head is elsewhere")]))


def test_pauses_grow_up_to_five_seconds(pauses: list[float]) -> None:
    publish(Timeline([DOWN] * 8 + [PUBLISHED]))
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]

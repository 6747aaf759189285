"""Rounds: one Spark job for the small tasks of several groups of writes, since a job costs more than such tasks.

A group that arrives while a round runs waits for its end. The first that waits then leads the next round: its thread
runs the tasks of all that wait. One that has waited for too long leads a round beside the one that runs, so a slow
round delays others for this time at most. A round that fails is run again group by group, so a group fails with its own
error only.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, TypeVar

_log = logging.getLogger(__name__)

_Task = TypeVar("_Task")


@dataclass(kw_only=True, eq=False, slots=True)
class _Member(Generic[_Task]):
    """The tasks of one group. `turn` is set once it leads, or once its round has ended.

    `results`: None if its round has failed.
    """

    tasks: Sequence[_Task]
    tag: str
    leads: bool
    turn: threading.Event = field(default_factory=threading.Event)
    results: list[bytes] | None = None


class Rounds(Generic[_Task]):
    """Runs tasks, those of several groups together. Safe to use from any number of threads.

    `run_job`: runs packed tasks as one job under a tag, and returns one result for each. `at_a_time`: the number of
    rounds that run at a time, all but the first only for groups that have waited for `patience_seconds`. `tasks_max`:
    the number of tasks of a round; a group with more is a round of its own.
    """

    def __init__(
        self,
        run_job: Callable[[Sequence[_Task], str], list[bytes]],
        *,
        at_a_time: int,
        patience_seconds: float,
        tasks_max: int,
    ) -> None:
        self._run_job = run_job
        self._at_a_time = at_a_time
        self._patience_seconds = patience_seconds
        self._tasks_max = tasks_max
        self._lock = threading.Lock()
        self._waiting: list[_Member[_Task]] = []
        self._running = 0
        self._numbers = count(1)
        self._jobs: dict[str, str] = {}

    def run(self, tasks: Sequence[_Task], tag: str) -> list[bytes]:
        """One result per task, in order. Raises what `run_job` raises for these tasks."""
        with self._lock:
            member = _Member(tasks=tasks, tag=tag, leads=not self._running)
            self._waiting.append(member)
            self._running += member.leads
        while not member.leads and not member.turn.wait(self._patience_seconds):
            # The leader of each round wakes its members, and one that leads the next round.
            self._lead_beside(member)
        if member.leads:
            self._lead(member)
        return self._run_job(tasks, tag) if member.results is None else member.results

    def job_of(self, tag: str) -> str:
        """The tag of the job that the tasks of a group run in: that of its round, or its own."""
        with self._lock:
            return self._jobs.get(tag, tag)

    def _lead_beside(self, member: _Member[_Task]) -> None:
        """Has the group lead a round beside those that run, if it still waits, and as few of them run as may."""
        with self._lock:
            if member in self._waiting and not member.leads and self._running < self._at_a_time:
                member.leads = True
                self._running += 1

    def _lead(self, leader: _Member[_Task]) -> None:
        """Runs a round of this group and of others that wait."""
        members, job = self._begin(leader)
        try:
            if len(members) == 1:
                leader.results = self._run_job(leader.tasks, leader.tag)
            else:
                self._run_together(members, job)
        finally:
            self._end(members)

    def _run_together(self, members: Sequence[_Member[_Task]], job: str) -> None:
        """Runs the tasks of these groups as one job. If it fails, none of them has results."""
        _log.info("a round of %d groups runs as %s", len(members), job)
        try:
            results = iter(self._run_job([task for member in members for task in member.tasks], job))
        except Exception:
            # The error may be that of one group, or its cancellation. Each group runs by itself now.
            _log.info("a round of %d groups failed; each runs by itself", len(members), exc_info=True)
            return
        for member in members:
            member.results = [next(results) for _ in member.tasks]

    def _begin(self, leader: _Member[_Task]) -> tuple[list[_Member[_Task]], str]:
        with self._lock:
            members, size = [leader], len(leader.tasks)
            self._waiting.remove(leader)
            for other in [member for member in self._waiting if not member.leads]:
                if size + len(other.tasks) > self._tasks_max:
                    break
                members.append(other)
                self._waiting.remove(other)
                size += len(other.tasks)
            job = f"{leader.tag}/round-{next(self._numbers)}"
            if len(members) > 1:
                self._jobs.update((member.tag, job) for member in members)
        return members, job

    def _end(self, members: Sequence[_Member[_Task]]) -> None:
        with self._lock:
            for member in members:
                self._jobs.pop(member.tag, None)
                member.turn.set()
            following = next((member for member in self._waiting if not member.leads), None)
            if following is None or self._running > 1:
                self._running -= 1
            else:
                following.leads = True
                following.turn.set()

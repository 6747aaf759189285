"""Which host runs a task: the same one for a file group again, since it has hot copies and key indexes of its files.

Rendezvous hashing: each host has a weight for each key, and the host with the highest one is preferred. Nothing is
stored, and all workers prefer the same host. If a host joins or leaves, only its own share of the keys moves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from app.kernel.commit.merge_bundle import MergeBundle
from workers.engine.task_files import marks_rows
from workers.engine.tasks import Task

_WEIGHT_BYTES: Final = 8


def key_of(task: Task) -> str | None:
    """The key of what a task works on: its file group, or the dataset if it has several; None if it uses no copies.

    The groups of a bundle may have several hosts. A key for the whole dataset lets its bundles add one to them at most.
    """
    if not isinstance(task, MergeBundle) or not marks_rows(task.tasks[0].dataset):
        return None
    first = task.tasks[0]
    return f"{first.data_prefix}/{first.file_group}" if len(task.tasks) == 1 else first.data_prefix


def host_of(key: str | None, hosts: Collection[str]) -> str | None:
    """The preferred host; None without a key or hosts. It depends on nothing else, in any release."""
    if key is None or not hosts:
        return None
    return max(hosts, key=lambda host: (_weight(key, host), host))


def _weight(key: str, host: str) -> bytes:
    return hashlib.blake2b(f"{host}\n{key}".encode(), digest_size=_WEIGHT_BYTES).digest()


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of tasks that run one after another, on `host` if it has a free core; None for any host."""

    host: str | None
    tasks: tuple[int, ...]


def partitions_of(hosts: Sequence[str | None], count: int) -> list[Partition]:
    """About `count` partitions of about the same number of tasks, each for one host.

    `hosts`: the host of each task. There are fewer than `count` and the number of hosts together.
    """
    by_host: dict[str | None, list[int]] = {}
    for number, host in enumerate(hosts):
        by_host.setdefault(host, []).append(number)
    size = -(-len(hosts) // count)
    return [
        Partition(host=host, tasks=tuple(numbers[first : first + size]))
        for host, numbers in by_host.items()
        for first in range(0, len(numbers), size)
    ]

"""Fails writes that wait for a process which cannot be started."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from app.core.jobs.kinds.kind import WriteProcess
from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.service.give_back import missing_module
from app.core.jobs.values import ClaimRules
from app.kernel.format.errors import Fault

_log = logging.getLogger(__name__)
# Of a dataset at a time. What is left is found by the next poll.
_GROUPS_MAX: Final = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class FailWaiting:
    """Claims what a process would claim, and fails it. `owner` names this worker; `announce` is called at the end."""

    jobs: JobStore
    rules: ClaimRules
    owner: str
    announce: Callable[[], None]

    def run(self, process: WriteProcess, tenant_id: str, dataset_id: str, reason: str) -> None:
        """Fails the writes of a dataset that are next and run in the process. `reason`: what it cannot import.

        Raises Unavailable.
        """
        rules = msgspec.structs.replace(self.rules, process=process)
        fault = Fault.of(missing_module(reason))
        for _ in range(_GROUPS_MAX):
            group = self.jobs.claim(tenant_id, dataset_id, self.owner, rules)
            if not group:
                break
            for job in group:
                self.jobs.fail(tenant_id, job.claim, fault)
                _log.error("job %s failed: the process %s does not start: %s", job.id, process.value, reason)
        self.announce()

"""All guards, and a share of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from tests.mutants.attempt_guards import ATTEMPT_GUARDS
from tests.mutants.commit_guards import COMMIT_GUARDS
from tests.mutants.file_guards import FILE_GUARDS
from tests.mutants.guard import Guard
from tests.mutants.job_guards import JOB_GUARDS
from tests.mutants.version_guards import VERSION_GUARDS

GUARDS: Final = (*FILE_GUARDS, *JOB_GUARDS, *ATTEMPT_GUARDS, *COMMIT_GUARDS, *VERSION_GUARDS)


def share(guards: Sequence[Guard], count: int, seed: str) -> list[Guard]:
    """Some of the guards: the same ones for the same seed."""
    return random.Random(seed).sample(list(guards), min(count, len(guards)))

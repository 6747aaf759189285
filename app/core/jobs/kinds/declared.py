"""The list of all kinds of jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from app.core.jobs.kinds.analysis import ANALYSIS, AnalysisTask
from app.core.jobs.kinds.clean import CLEAN, CleanTask
from app.core.jobs.kinds.comparison import COMPARISON, ComparisonTask
from app.core.jobs.kinds.export import EXPORT, ExportTask
from app.core.jobs.kinds.kind import JobDeclaration, JobKind, WriteProcess
from app.core.jobs.kinds.named_version import SAVEPOINT, TAG, SavepointTask, TagTask
from app.core.jobs.kinds.read import READ, ReadTask
from app.core.jobs.kinds.rewrite import CLUSTERING, COMPACTION, ClusteringTask, CompactionTask
from app.core.jobs.kinds.verification import VERIFICATION, VerifyTask
from app.core.jobs.kinds.write import REFRESH, RESTORE, ROLLBACK, SOURCE_ROUND, WRITE, WriteRequest
from app.kernel.format.instant import Action

TableServiceTask: TypeAlias = CompactionTask | ClusteringTask | AnalysisTask | CleanTask
AnyTask: TypeAlias = (
    ExportTask | VerifyTask | TableServiceTask | SavepointTask | TagTask | ReadTask | ComparisonTask
)
JobRequest: TypeAlias = WriteRequest | AnyTask

WRITES: Final[tuple[JobDeclaration[Any, Any], ...]] = (WRITE, REFRESH, RESTORE, ROLLBACK, SOURCE_ROUND)
TASKS: Final[tuple[JobDeclaration[Any, Any], ...]] = (
    EXPORT,
    VERIFICATION,
    COMPACTION,
    CLUSTERING,
    ANALYSIS,
    CLEAN,
    SAVEPOINT,
    TAG,
    READ,
    COMPARISON,
)


def _by_name(kinds: tuple[JobDeclaration[Any, Any], ...]) -> Mapping[JobKind, JobDeclaration[Any, Any]]:
    """The declarations by name, in the order of the names. Raises ValueError if they are not one for each name."""
    declared = {kind.name: kind for kind in kinds}
    if len(declared) != len(kinds) or declared.keys() != set(JobKind):
        raise ValueError("each kind of job has one declaration")
    return {name: declared[name] for name in JobKind}


KINDS: Final = _by_name((*WRITES, *TASKS))
# Their rows are made when they run: each needs something that stages them.
STAGED_WRITES: Final = tuple(kind for kind in WRITES if kind is not WRITE)

_Part = TypeVar("_Part")


def for_each(
    kinds: Iterable[JobDeclaration[Any, Any]], parts: Mapping[JobKind, _Part]
) -> Mapping[JobKind, _Part]:
    """What features register for these kinds. Raises ValueError for a kind without a part, and for a part too many."""
    wrong = sorted(name.value for name in {kind.name for kind in kinds} ^ parts.keys())
    if wrong:
        raise ValueError(f"kinds of jobs that are not registered, or not here: {', '.join(wrong)}")
    return parts


def instant_action(request: JobRequest) -> Action | None:
    """The action of the instant of a job with this request; None for a job without an instant in the timeline."""
    return KINDS[request.kind].action


def process_of(kind: JobKind, deaths: int, *, transforms: bool = False, slow: bool = False) -> WriteProcess:
    """Where a write runs. `deaths`: how often its process was killed while it ran. `transforms`: as of its round.

    `slow`: whether it has used up a time slice.
    """
    if KINDS[kind].process is WriteProcess.WORKER and not transforms:
        return WriteProcess.WORKER
    if slow:
        return WriteProcess.SLOW
    return WriteProcess.ISOLATED if deaths else WriteProcess.DERIVED

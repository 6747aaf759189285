"""How commands fail: the exit codes, and the errors that are printed as one sentence."""

from __future__ import annotations

from enum import IntEnum

from headwater_client.problem import Problem


class ExitCode(IntEnum):
    """The exit code of a command."""

    OK = 0
    FAILED = 1
    """The service refused the request, a job failed, or a check has found something."""
    USAGE = 2
    """The command is wrong, whatever the service does: an argument, a file or folder that it names, or a setting. Or no
    service or key is chosen."""
    NOT_FOUND = 3
    """There is no such dataset, row, job, …"""
    NO_RIGHT = 4
    """The key is not valid, or may not do this."""
    NOT_REACHABLE = 5
    """The service does not answer, or is not available."""
    CONFLICT = 6
    """Something with this name exists, or has changed in the meantime."""
    UNFINISHED = 7
    """The job did not end in time. It continues."""
    INTERRUPTED = 130
    """Ctrl-C."""


class CommandError(Exception):
    """An error that the user can correct: printed without a traceback; the command exits with `code`."""

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.code = code


_OF_STATUS = {
    401: ExitCode.NO_RIGHT,
    403: ExitCode.NO_RIGHT,
    404: ExitCode.NOT_FOUND,
    409: ExitCode.CONFLICT,
    410: ExitCode.NOT_FOUND,
    412: ExitCode.CONFLICT,
    502: ExitCode.NOT_REACHABLE,
    503: ExitCode.NOT_REACHABLE,
    504: ExitCode.NOT_REACHABLE,
}
_LOST = ("commit-conflict", "data-exists")


def code_of(problem: Problem) -> ExitCode:
    """The exit code of a problem. A job that failed has failed, except one that lost against another commit."""
    if "job" in problem.document or "transaction" in problem.document:
        return ExitCode.CONFLICT if problem.code in _LOST else ExitCode.FAILED
    return _OF_STATUS.get(problem.status, ExitCode.FAILED)


def sentences(problem: Problem) -> str:
    """A problem document as text: what is wrong, then a line for each faulty part of the request."""
    lines = [": ".join(text for text in (problem.title, problem.detail) if text)]
    faults = [f"{fault.pointer}: {fault.detail}" for fault in problem.errors]
    # The detail of a problem with one fault is that fault.
    lines += [f"  {fault}" for fault in faults if fault not in lines[0]]
    if problem.code not in ("blank", ""):
        lines[0] += f" ({problem.code})"
    return "\n".join(lines)

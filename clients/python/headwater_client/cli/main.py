"""Builds the application of the registered commands, runs it, and turns errors into exit codes."""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points, version

import httpx2
import msgspec
from cyclopts import App, CycloptsError
from cyclopts import Group as Section

from headwater_client.cli.failure import CommandError, ExitCode, code_of, sentences
from headwater_client.cli.printing.text import visible
from headwater_client.cli.registry import COMMANDS, OTHERS, SECTIONS, Command, Commands, completed, merged
from headwater_client.problem import JobUnfinished, Problem, TransactionUnfinished

ENTRY_POINTS = "headwater.commands"
_OURS = ("app", "clients", "headwater_client", "migrations", "workers")


def build(commands: Commands, words: Sequence[str] = ()) -> App:
    """The application. The command that `words` begin with is described by its docstring, the others by one line."""
    headwater = App(
        name="headwater",
        version=lambda: version("headwater-client"),
        help="Write rows, read tables, and follow the changes of a Headwater service.",
        help_format="markdown",
        suppress_keyboard_interrupt=False,
    )
    headwater.register_install_completion_command(help="Complete commands with the Tab key in this shell.")
    others = Section(OTHERS, sort_key=len(SECTIONS))
    sections: dict[str, Section] = {}
    for place, (text, names) in enumerate(SECTIONS):
        sections |= dict.fromkeys(names, Section(text, sort_key=place))
    for name, entry in commands.items():
        is_chosen = name in words[:1]
        section = sections.get(name, others)
        if isinstance(entry, Command):
            _add(headwater, name, entry, is_chosen, section)
            continue
        group = App(name=name, help=entry.text, group=section)
        for each, command in entry.commands.items():
            _add(group, each, command, is_chosen and each in words[1:2], None)
        headwater.command(group)
    return headwater


def _add(app: App, name: str, command: Command, is_chosen: bool, section: Section | None) -> None:
    app.command(command.target, name=name, help=None if is_chosen else command.text, group=section)


def all_commands() -> Commands:
    """The commands of this distribution and of those that add some."""
    return merged([COMMANDS, *(point.load() for point in entry_points(group=ENTRY_POINTS))])


def run(words: Sequence[str], commands: Commands | None = None) -> int:
    """Runs the command of the arguments, by default one of `all_commands`. Returns the exit code."""
    try:
        known = all_commands() if commands is None else commands
        words = completed(words, known)
        with _shown_retries():
            build(known, words)(words, exit_on_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError:  # the application has printed what is wrong
        return ExitCode.USAGE
    except BrokenPipeError:
        # What reads the output has all that it wants.
        _discard_output()
        return ExitCode.OK
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except SystemExit as end:
        return _code(end)
    except Exception as error:
        message, code = _explained(error)
        sys.stderr.write(f"headwater: {visible(message, lines=True)}\n")
        return code
    return ExitCode.OK


def _discard_output() -> None:
    """Drops what is left to be printed: the interpreter must not report once more when it ends that it cannot be."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _shown_retries() -> Iterator[None]:
    """Has a terminal show retries of requests: a service that does not answer is no slow command."""
    if not sys.stderr.isatty():
        yield
        return
    handler = logging.StreamHandler()
    handler.setFormatter(_Line("headwater: %(message)s"))
    logger = logging.getLogger("headwater_client")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _Line(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def _code(end: SystemExit) -> int:
    if isinstance(end.code, str):
        sys.stderr.write(f"{end.code}\n")
        return ExitCode.FAILED
    return end.code or ExitCode.OK


def _explained(error: Exception) -> tuple[str, ExitCode]:
    """What is printed of an error, and the exit code. Raises the error if it is a bug."""
    match error:
        case CommandError():
            return str(error), error.code
        case Problem():
            return sentences(error), code_of(error)
        case httpx2.TransportError():
            return f"the service does not answer: {error}", ExitCode.NOT_REACHABLE
        case JobUnfinished() | TransactionUnfinished():
            return f"{error}. It continues", ExitCode.UNFINISHED
        case OSError() if error.filename is not None:
            return f"{error.filename}: {error.strerror}", ExitCode.USAGE
        case OSError() if error.errno in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
            _discard_output()
            return f"the output cannot be written: {error.strerror}", ExitCode.FAILED
        case msgspec.MsgspecError():
            return f"the response has another form than in this release: {error}", ExitCode.FAILED
        case ImportError():
            return _what_is_missing(error), ExitCode.FAILED
    raise error


def _what_is_missing(error: ImportError) -> str:
    """Name the missing part of the installation. Any other failed import is a bug."""
    cause = error.__cause__ or error  # the library of the command line wraps the exception of the import
    if not isinstance(cause, ModuleNotFoundError) or cause.name is None:
        raise error
    if cause.name.partition(".")[0] in _OURS:
        return f"the command needs the module {cause.name}, which this installation does not have"
    return f"the package {cause.name} is missing; install it, or the extra that has it"

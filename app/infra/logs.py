"""The log of a process, on standard error: a line for each event, as text or as JSON."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import Enum
from types import MappingProxyType, TracebackType
from typing import Any, Final

_log = logging.getLogger(__name__)
_OWN: Final = ("app.", "workers.", "clients.", "headwater.", "__main__")
_CONTEXT: Final[ContextVar[Mapping[str, object]]] = ContextVar("log_context", default=MappingProxyType({}))
# Of libraries: what they report at each start or call would add nothing.
_QUIET: Final = ("celery", "kombu", "py4j", "httpx", "httpcore", "botocore")


class LogFormat(str, Enum):
    """The form of a line."""

    TEXT = "text"
    JSON = "json"


def configure_logs(process: str, log_format: LogFormat = LogFormat.TEXT) -> None:
    """Logs one line for each event, with its time in UTC, the process and its number.

    An exception that ends the process or a thread is an event, too.
    """
    # What the lines do not show is not collected, as the documentation of `logging` proposes.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter(f"{process}[{os.getpid()}]", log_format))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for library in _QUIET:
        logging.getLogger(library).setLevel(logging.WARNING)
    # Warnings are for developers of a library; they come in several lines.
    warnings.simplefilter("ignore")
    sys.excepthook = _log_end_of_process
    threading.excepthook = _log_end_of_thread
    sys.unraisablehook = _log_unraisable


def _log_end_of_process(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    _log.critical("an exception ends the process", exc_info=(kind, error, trace))


def _log_end_of_thread(end: threading.ExceptHookArgs) -> None:
    if end.exc_value is not None:
        name = None if end.thread is None else end.thread.name
        _log.error(
            "an exception ends a thread",
            exc_info=(end.exc_type, end.exc_value, end.exc_traceback),
            extra=facts(thread=name),
        )


def _log_unraisable(fault: sys.UnraisableHookArgs) -> None:
    if fault.exc_value is not None:
        _log.error(
            "an exception could not be raised",
            exc_info=(fault.exc_type, fault.exc_value, fault.exc_traceback),
        )


def facts(**values: object) -> dict[str, Mapping[str, object]]:
    """What an event is about, for `extra` of a call of a logger. What is None is left out."""
    return {"facts": {name: value for name, value in values.items() if value is not None}}


@contextmanager
def log_context(**values: object) -> Iterator[None]:
    """Adds facts to all events of this thread, or task, until the block ends."""
    token = _CONTEXT.set({**_CONTEXT.get(), **facts(**values)["facts"]})
    try:
        yield
    finally:
        _CONTEXT.reset(token)


class LineFormatter(logging.Formatter):
    """Formats an event: `TIME LEVEL process[pid] message name=value …`, or the same as a JSON object.

    The facts of an event are its own (`facts`), then those of its context (`log_context`).
    """

    def __init__(self, process: str, log_format: LogFormat) -> None:
        super().__init__()
        self._process = process
        self._json = log_format is LogFormat.JSON

    def format(self, record: logging.LogRecord) -> str:
        """A line; of text with the lines of a traceback behind it."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        time = moment.replace("+00:00", "Z")
        values = {**_CONTEXT.get(), **getattr(record, "facts", {})}
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        if self._json:
            line = {
                "time": time,
                "level": record.levelname,
                "process": self._process,
                "logger": record.name,
                "message": record.getMessage(),
                **({"exception": trace} if trace else {}),
                **values,
            }
            return json.dumps(line, ensure_ascii=False, default=str)
        # The name of a module of ours says nothing to those who read the text.
        origin = "" if record.name.startswith(_OWN) else f"{record.name}: "
        shown = "".join(f" {name}={_shown(value)}" for name, value in values.items())
        line_text = f"{time} {record.levelname} {self._process} {origin}{record.getMessage()}{shown}"
        return f"{line_text}\n{trace}" if trace else line_text


def _shown(value: Any) -> str:
    """A value without spaces, or in quotation marks."""
    text = f"{value:.1f}" if isinstance(value, float) else str(value)
    plain = text.isprintable() and not set(text) & set(' "=')
    return text if plain and text else json.dumps(text, ensure_ascii=True)

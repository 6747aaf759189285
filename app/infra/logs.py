"""The log of a process, on standard error: a line for each event, as text or as JSON."""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

_OWN: Final = ("app.", "workers.", "clients.", "headwater.", "__main__")
_CONTEXT: Final[ContextVar[Mapping[str, object]]] = ContextVar("log_context", default=MappingProxyType({}))
# Of libraries: what they report at each start or call would add nothing.
_QUIET: Final = ("celery", "kombu", "py4j", "httpx", "httpcore", "botocore")


class LogFormat(str, Enum):
    """The form of a line."""

    TEXT = "text"
    JSON = "json"


def configure_logs(process: str, log_format: LogFormat = LogFormat.TEXT) -> None:
    """Logs one line for each event, with its time in UTC, the process and its number."""
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

"""Starts a process of a worker for the SQL of users: `python -m workers.derived ID PROCESS FD`.

It imports nothing of the service before it can report that this fails: a module that is missing is written to the file
descriptor, whose other end the worker has.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Runs `workers.serve_derived`. Raises ImportError, once it is reported."""
    try:
        from workers.serve_derived import main as serve  # noqa: PLC0415 (see above)

        serve()
    except Exception as error:
        if (missing := _missing(error)) is not None:
            os.write(int(sys.argv[3]), str(missing).encode())
        raise


def _missing(error: BaseException | None) -> ImportError | None:
    """The import that has failed: the exception itself, or one that has caused it."""
    while error is not None and not isinstance(error, ImportError):
        error = error.__cause__
    return error


if __name__ == "__main__":
    main()

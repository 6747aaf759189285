"""The service that commands of operators call, and how they print what it returns."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import httpx2

from clients.cli.failure import CommandError
from headwater_client import Headwater, Problem


@contextmanager
def service() -> Iterator[Headwater]:
    """A client of the service of HEADWATER_URL with the key of HEADWATER_API_KEY.

    Raises:
        CommandError: a variable is not set, the service cannot be reached, or it refuses the request.
    """
    try:
        with Headwater.from_environment(os.environ) as client:
            yield client
    except LookupError as error:
        raise CommandError("set HEADWATER_URL and HEADWATER_API_KEY") from error
    except Problem as error:
        raise CommandError(f"{error.title}: {error.detail}") from error
    except httpx2.TransportError as error:
        raise CommandError(f"the service of HEADWATER_URL does not answer: {error}") from error


def print_table(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints rows as columns, with `-` for None."""
    texts = [heading, *(["-" if cell is None else str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[place]) for row in texts) for place in range(len(heading))]
    for row in texts:
        line = "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        sys.stdout.write(f"{line.rstrip()}\n")

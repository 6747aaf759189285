"""The options that every measurement takes."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser that knows where scratch data may go."""
    found = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    found.add_argument(
        "--scratch",
        type=Path,
        default=Path(tempfile.gettempdir()),
        help="where scratch data directories are made",
    )
    return found

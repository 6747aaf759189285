"""Alembic migrations, and their revisions, which processes compare with that of the database.

A process that runs no migration reads this without Alembic, which is large.
"""

from __future__ import annotations

from pathlib import Path


def revisions() -> list[str]:
    """The migrations of this release, the first one first: their files begin with their number."""
    folder = Path(__file__).parent / "versions"
    return sorted(path.name.partition("_")[0] for path in folder.glob("[0-9]*.py"))

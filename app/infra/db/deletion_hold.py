"""The hold that keeps files of the storage while a backup copies them: an advisory lock of the database.

A backup holds the lock on a session of its own, so that the hold ends with the backup, however that ends.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import text

from app.infra.db.session import Database

HOLD_LOCK: Final = 0x68656164776268  # "headwbh"
# For the length of the transaction, which ends at once: two processes that check do not disturb each other.
_TRY: Final = text("SELECT pg_try_advisory_xact_lock_shared(:lock)")


def deletions_held(database: Database) -> bool:
    """Whether a backup runs, so that no file may be deleted. Raises Unavailable.

    Check it after what shows that a file is not referenced: a backup that begins later does not refer to it either.
    """
    with database.relay() as connection:
        return not connection.execute(_TRY, {"lock": HOLD_LOCK}).scalar_one()

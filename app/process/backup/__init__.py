"""Backups of the metadata: all rows of the database, in a folder of files, and back into an empty database.

A backup does not have the files of the tables. They never change, so they are copied after it, by a command that runs
while no file is deleted:

    manifest = back_up(url, folder, storage_command=["rclone", "sync", "/srv/storage", "backup:storage"])
    restore(other_url, folder)

`folder.py` reads and writes the folder, `take.py` makes a backup, and `restore.py` loads one.
"""

from app.process.backup.manifest import BackupError, BackupManifest
from app.process.backup.restore import restore
from app.process.backup.take import back_up

__all__ = ["BackupError", "BackupManifest", "back_up", "restore"]

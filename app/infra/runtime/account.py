"""The account that runs PostgreSQL when Headwater runs as root, since PostgreSQL refuses to run as root."""

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

# The account of PostgreSQL's own packages is tried first; `nobody` exists on every system. No account is created: a
# demo must not change a machine's list of users.
CANDIDATES = ("postgres", "nobody")


class AccountError(Exception):
    """No account fits, or a folder cannot be opened to it. The message says which, and what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """A user to run a child as, with the supplementary groups that give it access to its files."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()

    def owns(self, path: Path) -> None:
        """Changes the owner of a file or folder to this account."""
        os.chown(path, self.uid, self.gid)


def account_for(*paths: Path) -> Account | None:
    """The account to run a server that needs access to ``paths``; None unless this process runs as root.

    A parent folder that others may not search (such as `/root`) gets the search bit for its *group*, and the account
    that group: this opens it to fewer users than a bit for everyone, and its files stay as unreadable as before.


    Raises:
        AccountError: there is no such account, or a parent folder cannot be opened to it.
    """
    if os.geteuid() != 0:
        return None
    entry = _first_entry()
    groups: list[int] = []
    for folder in _folders_on_the_way(paths):
        status = folder.stat()
        if status.st_mode & stat.S_IXOTH or status.st_uid == entry.pw_uid:
            continue
        if not status.st_mode & stat.S_IXGRP:
            try:
                folder.chmod(stat.S_IMODE(status.st_mode) | stat.S_IXGRP)
            except OSError as error:
                raise AccountError(
                    f"PostgreSQL cannot run as root, and {entry.pw_name} cannot reach {folder}: "
                    f"{error.strerror}. Choose another --data, or set HEADWATER_DATABASE_URL"
                ) from error
        if status.st_gid not in groups:
            groups.append(status.st_gid)
    return Account(uid=entry.pw_uid, gid=entry.pw_gid, groups=tuple(groups))


def _first_entry() -> pwd.struct_passwd:
    for name in CANDIDATES:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise AccountError(
        f"PostgreSQL cannot run as root, and this system has none of the users {', '.join(CANDIDATES)}. "
        "Run Headwater as another user, or set HEADWATER_DATABASE_URL"
    )


def _folders_on_the_way(paths: tuple[Path, ...]) -> list[Path]:
    """Every parent folder of the paths, outermost first, for each path as specified and with its links resolved."""
    folders: set[Path] = set()
    for path in paths:
        folders.update(path.absolute().parents)
        folders.update(path.resolve().parents)
    return sorted(folders)

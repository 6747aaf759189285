"""The account that PostgreSQL runs as when Headwater itself runs as root, which PostgreSQL refuses to be."""

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

# An account that PostgreSQL's own packages make comes first; `nobody` is on every system. None is created:
# starting a server for a demo is no reason to change a machine's list of users.
CANDIDATES = ("postgres", "nobody")


class AccountError(Exception):
    """No account fits, or it cannot be let through to a folder; the message says which and what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """A user to run a child as, with the supplementary groups that let it reach its files."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()

    def owns(self, path: Path) -> None:
        """Make a file or folder this account's."""
        os.chown(path, self.uid, self.gid)


def account_for(*paths: Path) -> Account | None:
    """The account to run a server as that must reach ``paths``; None when this process is no root.

    A folder on the way that others may not search (as `/root` is) gets the search bit for its *group*, and
    the account that group: narrower than opening it to everyone, and its files stay as unreadable as before.

    Raises:
        AccountError: there is no such account, or a folder on the way cannot be opened.
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
    """Every folder above the paths, outermost first, for each path as given and with its links followed."""
    folders: set[Path] = set()
    for path in paths:
        folders.update(path.absolute().parents)
        folders.update(path.resolve().parents)
    return sorted(folders)

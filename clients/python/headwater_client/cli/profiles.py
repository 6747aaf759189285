"""Profiles: URLs and keys by name, in a file that only its owner can read."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

import msgspec

from headwater_client.cli.failure import CommandError, ExitCode

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A service, and a key of it."""

    url: str
    api_key: str


class Profiles(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of the file. `default`: the profile of commands that name no other."""

    default: str | None = None
    profiles: dict[str, Profile] = {}


def profiles_file() -> Path:
    """`headwater/profiles.json` in the user's folder for settings."""
    chosen = os.environ.get("XDG_CONFIG_HOME")
    return (Path(chosen) if chosen else Path.home() / ".config") / "headwater" / "profiles.json"


def read_profiles() -> Profiles:
    """The profiles. Raises CommandError if the file is damaged, or if others may read it."""
    path = profiles_file()
    try:
        if path.stat().st_mode & _OTHERS:
            raise CommandError(f"{path} can be read by others: chmod 600 {path}", ExitCode.USAGE)
        return msgspec.json.decode(path.read_bytes(), type=Profiles)
    except FileNotFoundError:
        return Profiles()
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}", ExitCode.USAGE) from error
    except msgspec.MsgspecError as error:
        raise CommandError(f"{path} is not a file of profiles: {error}", ExitCode.USAGE) from error


def write_profiles(profiles: Profiles) -> None:
    """Replaces the file as a whole, with mode 0600. Raises CommandError."""
    path = profiles_file()
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(profiles), indent=2) + b"\n")
        fresh.replace(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}", ExitCode.USAGE) from error
    finally:
        fresh.unlink(missing_ok=True)

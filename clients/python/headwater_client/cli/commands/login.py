"""`headwater login`, `headwater logout` and `headwater profiles`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from getpass import getpass
from typing import Any, Final

import msgspec

from headwater_client.cli.failure import CommandError, ExitCode
from headwater_client.cli.printing.output import OUTPUT, Output, TableColumn
from headwater_client.cli.profiles import Profile, Profiles, profiles_file, read_profiles, write_profiles
from headwater_client.cli.service import named, require_url
from headwater_client.client import Headwater


def login(url: str, /, *, profile: str = "default", default: bool = True) -> None:
    """Store the URL and a key of a service as a profile, once the service accepts the key.

    The key is read from the terminal without being shown, or from the standard input. It is never printed.

    Example: `headwater login https://lake.example.com --profile production < key.txt`

    Parameters
    ----------
    url
        The URL of the service.
    profile
        The name of the profile, for --profile of other commands.
    default
        Whether commands that name no profile use this one.
    """
    url = url.rstrip("/")
    require_url(url, "URL")
    api_key = (getpass("API key: ") if sys.stdin.isatty() else sys.stdin.readline()).strip()
    if not api_key or not api_key.isascii() or not api_key.isprintable():
        raise CommandError("expected an API key, such as hw_…, on the standard input", ExitCode.USAGE)
    with Headwater(url, api_key) as client:
        identity = client.me()
    known = read_profiles()
    write_profiles(
        msgspec.structs.replace(
            known,
            default=profile if default else known.default,
            profiles=known.profiles | {profile: Profile(url=url, api_key=api_key)},
        )
    )
    print(f"Profile {profile}: tenant {identity.tenant.name} of {url}. It is stored in {profiles_file()}.")


def logout(profile: str = "default", /) -> None:
    """Remove a profile with its key from this machine. The key stays valid.

    Example: `headwater logout production`

    Parameters
    ----------
    profile
        The name of the profile.
    """
    known = read_profiles()
    named(known, profile)
    kept = {name: each for name, each in known.profiles.items() if name != profile}
    default = None if known.default == profile else known.default
    write_profiles(Profiles(default=default, profiles=kept))
    print(f"Profile {profile} is removed.")


def list_profiles(*, output: Output = OUTPUT) -> None:
    """List profiles, without their keys.

    Example: `headwater profiles`
    """
    known = read_profiles()
    found = [
        {"name": name, "url": each.url, "default": name == known.default}
        for name, each in sorted(known.profiles.items())
    ]
    output.items(found, _PROFILES)


_PROFILES: Final[Sequence[TableColumn[dict[str, Any]]]] = (
    TableColumn("NAME", lambda each: each["name"]),
    TableColumn("URL", lambda each: each["url"]),
    TableColumn("DEFAULT", lambda each: each["default"]),
)

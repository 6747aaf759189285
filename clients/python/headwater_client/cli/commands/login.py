"""`headwater login`, `headwater logout` and `headwater profiles`."""

from __future__ import annotations

import sys
from getpass import getpass

import msgspec

from headwater_client.cli.failure import CommandError, ExitCode
from headwater_client.cli.profiles import Profile, profiles_file, read_profiles, write_profiles
from headwater_client.client import Headwater


def login(url: str, *, profile: str = "default", default: bool = True) -> None:
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
    if not url.startswith(("http://", "https://")):
        raise CommandError(f"expected a URL such as https://lake.example.com, got {url}", ExitCode.USAGE)
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

"""The service of a command: its URL and key, by a flag, the environment, a profile, or the note of this folder."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
from cyclopts import Group, Parameter

from headwater_client.cli.failure import CommandError, ExitCode
from headwater_client.cli.profiles import Profile, Profiles, read_profiles
from headwater_client.client import Headwater

NOTE: Final = Path(".headwater") / "headwater.json"
"""Where `headwater up` notes the service that it runs in a folder."""
_GROUP: Final = Group("Service", sort_key=100)
_HOW: Final = (
    "no service is chosen: run `headwater login URL`, set HEADWATER_URL and HEADWATER_API_KEY, or start one here "
    "with `headwater up`. For one that runs with `headwater up --data FOLDER` (`make up DATA=FOLDER`): "
    "`headwater login URL < FOLDER/operator.key`"
)


class ChosenService(NamedTuple):
    """A service and a key of it, each with the place that it is from."""

    url: str
    api_key: str
    url_from: str
    key_from: str


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServiceChoice:
    """Which service a command uses."""

    url: Annotated[str | None, Parameter(group=_GROUP)] = None
    """The URL of the service. By default HEADWATER_URL, then the profile, then the service of this folder."""
    api_key: Annotated[str | None, Parameter(group=_GROUP)] = None
    """The key, which other users of this machine can see in the list of processes: prefer a profile."""
    profile: Annotated[str | None, Parameter(group=_GROUP)] = None
    """A profile of `headwater login`. By default HEADWATER_PROFILE, then the default profile."""

    def target(self) -> ChosenService:
        """The URL, and the key, each from the first place that has it. Raises CommandError.

        A profile that `profile` names precedes the environment. The key of a profile or a note is only sent to the URL
        that it is stored with.
        """
        places = list(self._places())
        url, url_from = next(((each.url, place) for place, each in places if each.url), (None, ""))
        if url is None:
            raise CommandError(_HOW, ExitCode.USAGE)
        require_url(url, url_from)
        keys = ((each.api_key, place) for place, each in places if each.api_key and each.url in ("", url))
        key, key_from = next(keys, (None, ""))
        if key is None:
            raise CommandError(
                f"there is no key for {url} (from {url_from}): set HEADWATER_API_KEY, or run `headwater login {url}`",
                ExitCode.USAGE,
            )
        return ChosenService(url, key, url_from, key_from)

    @contextmanager
    def client(self) -> Iterator[Headwater]:
        """A client of the service. Raises CommandError."""
        target = self.target()
        with Headwater(target.url, target.api_key) as client:
            yield client

    def _places(self) -> Iterator[tuple[str, Profile]]:
        """The places in order. An empty URL or key means that the place has none."""
        yield "--url", Profile(url=_plain(self.url), api_key="")
        yield "--api-key", Profile(url="", api_key=self.api_key or "")
        if self.profile is not None:
            yield f"profile {self.profile}", named(read_profiles(), self.profile)
        yield "HEADWATER_URL", Profile(url=_plain(os.environ.get("HEADWATER_URL")), api_key="")
        yield "HEADWATER_API_KEY", Profile(url="", api_key=os.environ.get("HEADWATER_API_KEY", ""))
        if self.profile is None:
            profiles = read_profiles()
            name = os.environ.get("HEADWATER_PROFILE") or profiles.default
            if name is not None:
                yield f"profile {name}", named(profiles, name)
        note = _note()
        if note is not None:
            yield str(NOTE), note


def require_url(url: str, place: str) -> None:
    """Raises CommandError for a text that is no URL of a service. `place`: where it is from."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise CommandError(
            f"{place}: expected a URL such as https://lake.example.com or http://127.0.0.1:8080, got {url}",
            ExitCode.USAGE,
        )


def named(profiles: Profiles, name: str) -> Profile:
    """The profile of a name. Raises CommandError."""
    try:
        return profiles.profiles[name]
    except KeyError:
        known = ", ".join(sorted(profiles.profiles)) or "none"
        raise CommandError(f"there is no profile {name}; known: {known}", ExitCode.USAGE) from None


def _note() -> Profile | None:
    """The service that `headwater up` runs in this folder. Only one of this machine counts: others may write notes."""
    try:
        note = msgspec.json.decode(NOTE.read_bytes(), type=Profile)
    except (OSError, msgspec.MsgspecError):
        return None
    try:
        address = ipaddress.ip_address(urlsplit(note.url).hostname or "")
    except ValueError:
        return None
    return note if address.is_loopback else None


def _plain(url: str | None) -> str:
    return (url or "").rstrip("/")


SERVICE: Final = ServiceChoice()
"""What no flag chooses."""

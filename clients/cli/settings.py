"""The settings of the service, for commands that read its database or its storage."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from app.infra.settings import Settings, SettingsError
from headwater_client.cli.failure import CommandError, ExitCode

# A setting without a default, of a server that commands on the database and the storage do not use.
_UNUSED_REDIS: Final = {"HEADWATER_REDIS_URL": "redis://127.0.0.1:1"}


def settings_of(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of an environment. Raises CommandError for a variable that is missing or malformed."""
    try:
        return Settings.from_environment(environment)
    except SettingsError as error:
        raise CommandError(str(error), ExitCode.USAGE) from error


def settings_without_redis() -> Settings:
    """As `settings_of`, for commands that do not use Redis: its URL may be missing."""
    return settings_of({**_UNUSED_REDIS, **os.environ})

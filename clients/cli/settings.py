"""The settings of the service, for commands that read its database or its storage."""

from __future__ import annotations

import os
from collections.abc import Mapping

from app.infra.settings import Settings, SettingsError
from headwater_client.cli.failure import CommandError, ExitCode


def settings_of(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of an environment. Raises CommandError for a variable that is missing or malformed."""
    try:
        return Settings.from_environment(environment)
    except SettingsError as error:
        raise CommandError(str(error), ExitCode.USAGE) from error

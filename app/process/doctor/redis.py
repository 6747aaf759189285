"""Redis or Valkey: whether it answers, and its version."""

from __future__ import annotations

from typing import Any, Final, cast

from redis import Redis, RedisError

from app.infra.settings import Settings
from app.process.doctor.values import Diagnosis, ok, warning

REDIS_MIN: Final = (6, 2)
"""The oldest version with all commands that are used. Valkey states the version of Redis that it is compatible with."""
_SECONDS_MAX: Final = 3


def redis_checks(settings: Settings) -> list[Diagnosis]:
    """The check of the server. None of its faults stops the service: it finds work by polling."""
    try:
        with Redis.from_url(
            settings.redis_url, socket_connect_timeout=_SECONDS_MAX, socket_timeout=_SECONDS_MAX
        ) as client:
            server = cast(dict[str, Any], client.info("server"))
    except (RedisError, OSError) as error:
        return [warning("redis", f"the server of HEADWATER_REDIS_URL does not answer: {error}")]
    return [redis_check(server)]


def redis_check(server: dict[str, Any]) -> Diagnosis:
    """Whether the server is new enough. `server`: the section of that name of its INFO."""
    version = str(server["redis_version"])
    server_name = f"Valkey {server['valkey_version']}" if "valkey_version" in server else f"Redis {version}"
    if tuple(int(part) for part in version.split(".")[:2]) < REDIS_MIN:
        min_version = ".".join(map(str, REDIS_MIN))
        return warning("redis", f"the server is {server_name}; Headwater needs Redis {min_version} or Valkey")
    return ok("redis", server_name)

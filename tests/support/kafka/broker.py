"""A single Kafka broker in KRaft mode, from the jars of Maven Central.

`python -m tests.support.kafka.broker --port 9092 --data DIR` runs one until it is interrupted.
"""

from __future__ import annotations

import argparse
import base64
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.infra.runtime.java import JavaError, java_home
from app.infra.runtime.loopback import LOOPBACK, free_port, is_free
from tests.support import maven

_ROOT: Final = Path(__file__).parents[3]
_POM: Final = Path(__file__).with_name("pom.xml")
JARS: Final = _ROOT / ".kafka"
_FORMAT_SECONDS_MAX: Final = 60
_START_SECONDS_MAX: Final = 90
_STOP_SECONDS_MAX: Final = 20
_JAVA: Final = ("-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class KafkaMissing(Exception):
    """No broker can be started here. The message has the reason."""


@dataclass(kw_only=True)
class Broker:
    """A broker that can be stopped, killed and started again on its port, with its data."""

    folder: Path
    port: int
    controller_port: int
    java: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """What clients connect to."""
        return f"{LOOPBACK}:{self.port}"

    def format(self) -> None:
        """Makes the data folder of a new cluster."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "server.properties").write_text(
            "".join(f"{name}={value}\n" for name, value in self._settings().items()), encoding="utf-8"
        )
        # An id that begins with a hyphen would be an option; this one begins with a letter.
        cluster = base64.urlsafe_b64encode(b"\0" + os.urandom(15)).decode().rstrip("=")
        arguments = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", "server.properties"]
        made = subprocess.run(
            self._command(*arguments),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=_FORMAT_SECONDS_MAX,
            check=False,
        )
        assert made.returncode == 0, made.stdout + made.stderr

    def start(self) -> None:
        """Returns once the broker accepts connections."""
        assert self.process is None, "the broker runs"
        with (self.folder / "broker.log").open("ab") as log:
            command = self._command("kafka.Kafka", "server.properties")
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
        deadline = time.monotonic() + _START_SECONDS_MAX
        while is_free(self.port):
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < deadline, f"the broker did not start: {self.log()}"
            time.sleep(0.05)

    def stop(self) -> None:
        """Stops the broker in order, and after a while by force."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """`kill -9`."""
        self._end(signal.SIGKILL)

    def log(self) -> str:
        """The last lines that the broker has printed."""
        return (self.folder / "broker.log").read_text(encoding="utf-8", errors="replace")[-2_000:]

    def _end(self, number: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _command(self, *arguments: str) -> list[str]:
        return [str(self.java), *_JAVA, "-cp", f"{JARS}/*", *arguments]

    def _settings(self) -> dict[str, str | int]:
        clients, controllers = (
            f"PLAINTEXT://{self.bootstrap}",
            f"CONTROLLER://{LOOPBACK}:{self.controller_port}",
        )
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{LOOPBACK}:{self.controller_port}",
            "listeners": f"{clients},{controllers}",
            "advertised.listeners": clients,
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": self.folder / "logs",
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": 0,
            # A broker that was killed can register again once its session has ended.
            "broker.session.timeout.ms": 3_000,
            "broker.heartbeat.interval.ms": 500,
            # One broker has one replica of everything.
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            # Compaction is quick to start, so that tests can wait for it.
            "log.cleaner.backoff.ms": 200,
            "log.cleaner.dedupe.buffer.size": 2 << 20,
            "log.cleaner.io.buffer.size": 1 << 19,
        }


def install() -> None:
    """Downloads the jars unless they are there. Raises KafkaMissing."""
    try:
        maven.install(_POM, JARS, "Apache Kafka")
    except maven.MavenFailed as error:
        raise KafkaMissing(str(error)) from None


@contextmanager
def running_broker(folder: Path, *, port: int | None = None) -> Iterator[Broker]:
    """A broker that keeps all in the folder, until the context is left. Raises KafkaMissing."""
    install()
    try:
        java = java_home(folder) / "bin" / "java"
    except JavaError as error:
        raise KafkaMissing(str(error)) from None
    broker = Broker(folder=folder, port=port or free_port(), controller_port=free_port(), java=java)
    if not (folder / "server.properties").exists():
        broker.format()
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


def main() -> None:
    """Runs a broker in the foreground."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9092)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    with running_broker(arguments.data.resolve(), port=arguments.port) as broker:
        print(f"Kafka accepts connections on {broker.bootstrap}", flush=True)
        # Blocked only now: a child inherits what is blocked.
        ends = {signal.SIGINT, signal.SIGTERM}
        signal.pthread_sigmask(signal.SIG_BLOCK, ends)
        signal.sigwait(ends)


if __name__ == "__main__":
    main()

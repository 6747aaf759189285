"""One child process: its command, and how to start, check and stop it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from app.infra.runtime.account import Account

TETHER = Path(__file__).with_name("tether.py")


def always_ready() -> bool:
    """The readiness of a child that counts as ready once it runs."""
    return True


@dataclass(frozen=True, kw_only=True, slots=True)
class ChildSpec:
    """The command of a child, how to check its readiness, and how to stop it."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables on top of the supervisor's own."""
    directory: Path | None = None
    ready: Callable[[], bool] = always_ready
    """Called repeatedly after the start; must not block for more than about a second."""
    ready_seconds_max: float = 60.0
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds_max: float = 15.0
    """The time to end after the stop signal; then the whole process group is killed."""
    death_signal: signal.Signals = signal.SIGKILL
    """The signal that the kernel sends to the child when the supervisor is killed."""
    input_stays_open: bool = False
    """Whether its standard input is a pipe that ends with the supervisor. Otherwise it has ended from the start."""
    is_held: bool = False
    """Whether it waits for a line on its standard input, which stays open. `Supervisor.release` sends it."""
    account: Account | None = None
    """The user to run as; by default the supervisor's own."""

    def __post_init__(self) -> None:
        if not self.name or not self.command:
            raise ValueError("a child needs a name and a command")


def launch(
    spec: ChildSpec,
    output: IO[bytes] | int,
    input_: int = subprocess.DEVNULL,
    descriptors: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Starts the child as leader of its own process group, bound to the life of the calling thread.

    `descriptors`: further ones that it inherits, under their numbers.

    A process group of its own protects it from a terminal's Ctrl-C: only the supervisor determines the order of the
    stop. The calling thread must live as long as the child may, since the kernel's death signal follows the thread.
    """
    tether = [sys.executable, "-I", "-S", str(TETHER), "--parent", str(os.getpid())]
    tether += ["--death-signal", str(int(spec.death_signal))]
    if spec.account is not None:
        groups = ",".join(str(group) for group in spec.account.groups)
        tether += ["--uid", str(spec.account.uid), "--gid", str(spec.account.gid), f"--groups={groups}"]
    return subprocess.Popen(
        [*tether, "--", *spec.command],
        stdin=input_,
        stdout=output,
        stderr=subprocess.STDOUT,
        env={**os.environ, **spec.environment},
        cwd=spec.directory,
        process_group=0,
        pass_fds=descriptors,
    )


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether the child has ended. Does not reap it, so that its number still identifies its group."""
    if process.returncode is not None:
        return True
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def reap(process: subprocess.Popen[bytes]) -> int:
    """Kills the rest of an ended child's process group, and returns the child's exit code (negative: a signal)."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    code = process.wait()
    if process.stdin is not None:
        process.stdin.close()
    return code


def stop(process: subprocess.Popen[bytes], spec: ChildSpec) -> bool:
    """Stops the child: sends its stop signal, then, after the time limit, SIGKILL to its whole group.

    Returns:
        Whether it ended within the time limit.
    """
    deadline = time.monotonic() + spec.stop_seconds_max
    if not has_ended(process):
        process.send_signal(spec.stop_signal)
    while not has_ended(process) and time.monotonic() < deadline:
        time.sleep(0.02)
    in_time = has_ended(process)
    reap(process)
    return in_time


def describe_exit(code: int) -> str:
    """A description of a child's exit code."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"

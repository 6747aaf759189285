"""The supervisor on small real processes: order, restarts, bounded stops, and no orphans."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from app.infra.runtime.child import ChildSpec
from app.infra.runtime.supervisor import RestartPolicy, StartError, StopRequestedError, Supervisor

ROOT = Path(__file__).parents[3]
SLEEP = ("sleep", "1000")


def eventually(check, seconds=10.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := check():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")


def shell(script):
    return ("sh", "-c", script)


def gone(pid):
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.fixture
def messages():
    return []


@pytest.fixture
def supervisor(tmp_path, messages):
    supervisor = Supervisor(tmp_path / "logs", report=messages.append)
    yield supervisor
    supervisor.stop()


def monitor_until(supervisor, check):
    """Let the supervisor work in this thread, which its children are tied to, until ``check`` holds."""
    failure = []

    def end():
        try:
            eventually(check)
        except BaseException as error:
            failure.append(error)
        supervisor.request_stop()

    thread = threading.Thread(target=end)
    thread.start()
    supervisor.monitor()
    thread.join()
    supervisor._stop_requested = False
    assert not failure, failure


def test_children_start_in_order_of_readiness_and_stop_in_reverse(supervisor, tmp_path):
    events = tmp_path / "events"
    # sh waits for sleep in pieces, so that its trap runs soon.
    script = (
        "trap 'echo {0} ends >> {1}; exit 0' TERM; sleep 0.2; echo {0} begins >> {1}; "
        "while :; do sleep 0.05; done"
    )
    for name in ("first", "second", "third"):
        supervisor.start(
            ChildSpec(
                name=name,
                command=shell(script.format(name, events)),
                ready=lambda name=name: events.exists() and f"{name} begins" in events.read_text(),
            )
        )
    supervisor.stop()
    assert events.read_text().splitlines() == [
        "first begins", "second begins", "third begins", "third ends", "second ends", "first ends",
    ]  # fmt: skip


def test_killed_child_is_reported_and_restarted(supervisor, messages):
    supervisor.start(ChildSpec(name="steady", command=SLEEP))
    supervisor.start(ChildSpec(name="victim", command=SLEEP))
    steady, victim = supervisor.pid("steady"), supervisor.pid("victim")
    os.kill(victim, signal.SIGKILL)
    monitor_until(supervisor, lambda: supervisor.pid("victim") not in {None, victim})
    assert supervisor.pid("steady") == steady
    report = next(message for message in messages if f"pid {victim}" in message)
    assert report.startswith(f"victim (pid {victim}) was killed by SIGKILL after ")
    assert "restart 1 now" in report


def test_held_child_waits_for_its_release_and_its_successors_do_not(supervisor, tmp_path):
    path = tmp_path / "lives"
    script = f"read line && echo lives >> {path} && exec sleep 1000"
    supervisor.start(ChildSpec(name="held", command=shell(script), is_held=True), wait=False)
    supervisor.run(ChildSpec(name="first", command=("sleep", "0.3")))
    assert not path.exists()
    supervisor.release("held")
    lives = eventually(lambda: path.exists() and path.read_text())
    assert lives == "lives\n"
    os.kill(supervisor.pid("held"), signal.SIGKILL)
    monitor_until(supervisor, lambda: path.read_text() == 2 * lives)


def test_restart_ends_the_processes_of_the_dead_child(supervisor, tmp_path):
    note = tmp_path / "grandchild"
    spec = ChildSpec(name="parent", command=shell(f"sleep 1000 & echo $! > {note}; wait"), ready=note.exists)
    supervisor.start(spec)
    parent, grandchild = supervisor.pid("parent"), int(eventually(note.read_text))
    os.kill(parent, signal.SIGKILL)
    monitor_until(supervisor, lambda: supervisor.pid("parent") not in {None, parent})
    eventually(lambda: gone(grandchild))


def test_restart_delay_grows_with_consecutive_deaths():
    policy = RestartPolicy()
    assert [policy.delay_seconds(deaths) for deaths in range(1, 6)] == [0.0, 0.5, 1.0, 2.0, 4.0]
    assert policy.delay_seconds(10_000) == 30.0


def test_child_that_cannot_start_fails_the_start_with_its_last_output(tmp_path, messages):
    policy = RestartPolicy(delay_seconds_first=0.01, deaths_before_ready_max=3)
    supervisor = Supervisor(tmp_path / "logs", policy=policy, report=messages.append)
    spec = ChildSpec(name="broken", command=shell("echo no such luck; exit 3"), ready=lambda: False)
    with pytest.raises(StartError, match=r"broken exited 3 times(.|\n)*no such luck"):
        supervisor.start(spec)
    supervisor.stop()
    assert [
        message
        for message in messages
        if "exited with code 3" in message and "restart 2 in 0.01 s" in message
    ]


def test_missing_command_is_named(tmp_path, messages):
    supervisor = Supervisor(tmp_path / "logs", report=messages.append)
    with pytest.raises(StartError, match="cannot run /no/such/program"):
        supervisor.run(ChildSpec(name="missing", command=("/no/such/program",)))


def test_child_that_is_never_ready_fails_the_start(supervisor):
    with pytest.raises(StartError, match=r"slow was not ready after 0\.2 s"):
        supervisor.start(ChildSpec(name="slow", command=SLEEP, ready=lambda: False, ready_seconds_max=0.2))


def test_stop_during_the_start_ends_the_start(supervisor):
    threading.Timer(0.2, supervisor.request_stop).start()
    with pytest.raises(StopRequestedError):
        supervisor.start(ChildSpec(name="slow", command=SLEEP, ready=lambda: False))


_STOPPED_WITHIN_A_WAIT = """
import os, signal, sys, threading
from pathlib import Path
from app.infra.runtime.supervisor import Supervisor

supervisor = Supervisor(Path(sys.argv[1]))
signal.signal(signal.SIGTERM, lambda *_: supervisor.request_stop())
threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()

def stop_with_the_lock(frame, event, argument):
    if event == "return" and frame.f_code is threading.Condition.wait.__code__:
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGTERM)

sys.setprofile(stop_with_the_lock)
supervisor.monitor()
"""


def test_signal_stops_it_whatever_lock_its_thread_holds(tmp_path):
    """The handler runs in the thread that it interrupts, so it must not wait for a lock."""
    command = [sys.executable, "-c", _STOPPED_WITHIN_A_WAIT, str(tmp_path)]
    subprocess.run(command, check=True, timeout=10, cwd=ROOT)


def test_child_that_ignores_the_stop_is_killed_in_bounded_time(supervisor, messages, tmp_path):
    ready = tmp_path / "ready"
    stubborn = shell(f"trap '' TERM; touch {ready}; while :; do sleep 0.05; done")
    supervisor.start(ChildSpec(name="stubborn", command=stubborn, ready=ready.exists, stop_seconds_max=0.3))
    pid = supervisor.pid("stubborn")
    began = time.monotonic()
    supervisor.stop()
    assert time.monotonic() - began < 3
    assert gone(pid)
    assert "stubborn did not stop within 0.3 s and was killed" in messages


def test_output_is_logged_as_it_is(supervisor, tmp_path):
    supervisor.run(ChildSpec(name="talker", command=shell("echo out; echo err >&2; printf 'caf\\303\\050'")))
    lines = (tmp_path / "logs" / "talker.log").read_text().splitlines()
    assert lines == ["out", "err", "caf\N{REPLACEMENT CHARACTER}("]


def test_terminal_interrupt_reaches_only_the_supervisor(supervisor):
    supervisor.start(ChildSpec(name="child", command=SLEEP))
    pid = supervisor.pid("child")
    assert os.getpgid(pid) == pid != os.getpgrp()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child to its parent's life")
def test_children_die_with_a_killed_supervisor(tmp_path):
    program = f"""
from pathlib import Path
from app.infra.runtime.child import ChildSpec
from app.infra.runtime.supervisor import Supervisor
supervisor = Supervisor(Path({str(tmp_path)!r}))
supervisor.start(ChildSpec(name="child", command=("sleep", "1000")))
print(supervisor.pid("child"), flush=True)
supervisor.watch()
"""
    root = Path(__file__).parents[3]
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=root, stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    assert psutil.Process(child).is_running()
    parent.kill()
    parent.wait()
    parent.stdout.close()
    eventually(lambda: gone(child))

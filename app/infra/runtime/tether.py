"""Runs a command that ends with its parent: ``python -I -S tether.py OPTIONS -- COMMAND…``.

``app.infra.runtime.child`` starts it as a separate program. The same calls in a ``preexec_fn`` would run Python between
fork and exec in a process with threads, which can deadlock; here there is one thread and no fork. It uses the standard
library only, and no module imports it.
"""

import argparse
import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def become(uid: int, gid: int, groups: list[int]) -> None:
    """Drops root permanently: supplementary groups first, the user last, since each step needs root."""
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def die_with_parent(parent: int, death_signal: int) -> None:
    """Sets the signal that the kernel sends to this process, also after exec, when its parent ends."""
    if (
        sys.platform != "linux"
    ):  # elsewhere a killed supervisor leaves its children running; a clean stop does not
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    # A parent that ended before the call above sends no signal.
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--death-signal", type=int, required=True)
    parser.add_argument("--uid", type=int)
    parser.add_argument("--gid", type=int)
    parser.add_argument("--groups", default="")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    if arguments.uid is not None:
        become(arguments.uid, arguments.gid, [int(group) for group in arguments.groups.split(",") if group])
    # After the change of user: the kernel clears the death signal when credentials change.
    die_with_parent(arguments.parent, arguments.death_signal)
    try:
        os.execvp(arguments.command[0], arguments.command)  # noqa: S606 - no shell is the point
    except OSError as error:
        sys.exit(f"cannot run {arguments.command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()

"""What processes with limits do in tests: what the request says."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import BinaryIO


def serve(request: bytes, answer: BinaryIO) -> None:
    """Writes its number and what it sees as a line, and then serves the request by its first word."""
    word, _, rest = request.partition(b" ")
    links = list(Path("/proc/self/fd").iterdir())
    facts = {
        "pid": os.getpid(),
        "server": os.getppid(),
        "environment": Path("/proc/self/environ").read_text("utf-8"),
        "variables": dict(os.environ),
        "niceness": os.nice(0),
        "command": Path("/proc/self/cmdline").read_text("utf-8"),
        "descriptors": [str(each.readlink()) for each in links if each.is_symlink()],
    }
    answer.write(json.dumps(facts).encode() + b"\n")
    answer.flush()
    match word:
        case b"allocate":
            try:
                bytearray(int(rest))
                answer.write(b"allocated\n")
            except MemoryError:
                answer.write(b"refused\n")
        case b"write":
            try:
                Path(os.fsdecode(rest)).write_bytes(b"x")
                answer.write(b"written\n")
            except OSError:
                answer.write(b"refused\n")
        case b"sleep":
            time.sleep(60)
        case b"spin":
            while True:
                pass
        case b"flood":
            while True:
                answer.write(b"x" * 65_536)
        case b"echo":
            answer.write(rest)
        case _:
            sys.exit(1)
    answer.flush()

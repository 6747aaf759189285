"""Every hostile body is refused or decoded within little memory and time, by the API and by the tasks."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.support.commit_seed import commit_seed
from tests.support.shares import share

REFUSALS = {"malformed-body", "schema-mismatch", "body-too-large", "row-too-large", "too-many-rows"}
ENDS = {
    "tasks, ndjson deep lists": "malformed-body",
    "tasks, ndjson no line end": "row-too-large",
    "tasks, gzip of a long line": "row-too-large",
    "tasks, csv with an endless cell": "row-too-large",
    "tasks, csv with an endless line": "row-too-large",
    "API, gzip of gzip": "malformed-body",
    "tasks, arrow of 2147483647 nulls": "schema-mismatch",
    "tasks, arrow dictionary of nearly a GiB": "4000 rows",
    "tasks, parquet dictionary of nearly a GiB": "4000 rows",
    "tasks, arrow dictionary of over a GiB": "body-too-large",
    "tasks, parquet dictionary of over a GiB": "body-too-large",
}


@share(6)
def test_hostile_bodies_are_refused_or_decoded_within_limits():
    command = [sys.executable, "-m", "tests.kernel.codecs.hostile_bodies", commit_seed()]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    ended: dict[str, str] = {}
    for process in map(json.loads, ran.stdout.splitlines()):
        assert process["status"] == 0, process["ended"][-1]
        found = dict(each.rsplit(": ", 1) for each in process["ended"])
        assert list(found) == process["bodies"]
        ended |= found
    assert [each for each in ended.items() if each[1] not in REFUSALS and not each[1].endswith(" rows")] == []
    assert {name: ended[name] for name in ENDS} == ENDS

"""Interleavings of two writers, as a table: who planned at which version, who touched what, who must plan again."""

from __future__ import annotations

import pytest

from app.lake.commit_message import CommitMessage
from app.lake.conflict import Clean, CommittedChange, Conflicted, check_conflicts

# plan     what the commit touches; window: what was committed after its plan, as version:file group
CASES = """
touches  window              answer
a        -                   clean
a        2:b                 clean
a        2:a                 a
a,b      2:b 3:c             b
a,b      2:a 3:b             a,b
a        2:append-x          clean
append-y 2:append-x 3:a      clean
"""


@pytest.mark.parametrize("line", CASES.strip().splitlines()[1:])
def test_interleaving(line: str) -> None:
    touches, *window, answer = line.split()
    messages = [CommitMessage(file_group=name) for name in touches.split(",")]
    changes = [
        CommittedChange(
            version=int(entry.split(":")[0]),
            instant_id=f"i{entry[0]}",
            file_group=entry.split(":")[1],
            partition_path="",
            path=entry,
            removed=False,
        )
        for entry in window
        if entry != "-"
    ]
    head = max([change.version for change in changes], default=1)
    outcome = check_conflicts(messages, changes, head_version=head)
    if answer == "clean":
        assert outcome == Clean()
    else:
        winner = max(change.version for change in changes if change.file_group in answer.split(","))
        assert outcome == Conflicted(
            file_groups=tuple(answer.split(",")), winner=f"i{winner}", head_version=head
        )

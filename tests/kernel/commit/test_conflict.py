"""Interleavings of two writers, as a table: who planned at which version, who touched what, who must plan again."""

from __future__ import annotations

import pytest

from app.kernel.commit.commit_message import CommitMessage, Reads
from app.kernel.commit.conflict import Clean, CommittedChange, Conflicted, check_conflicts
from app.kernel.commit.write_plan import WriteScope
from app.kernel.format.file_group import Slot, bucket_file_group

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
def test_commit_conflicts_with_changes_of_its_file_groups(line: str) -> None:
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
            file_groups=tuple(answer.split(",")),
            winner=f"i{winner}",
            winner_version=int(winner),
            head_version=head,
        )


# what the message rests on, what it removes, what came (+) or went (-) of its file group a; whether that is a conflict
READS = """
reads    removes  window     conflict
group    x        +log       yes
group    x        -y         yes
files    x        +log       no
files    x        +base      no
files    x        -y         no
files    x        -x         yes
files    x        -x +x      yes
nothing  -        +log       no
nothing  -        -x +y      no
"""


@pytest.mark.parametrize("line", READS.strip().splitlines()[1:])
def test_reads_of_a_commit_decide_its_conflicts(line: str) -> None:
    reads, removes, *window, conflict = line.split()
    message = CommitMessage(
        file_group="a", reads=Reads(reads), removed=() if removes == "-" else tuple(removes.split(","))
    )
    changes = [
        CommittedChange(
            version=2,
            instant_id="i2",
            file_group="a",
            partition_path="",
            path=word[1:],
            removed=word.startswith("-"),
        )
        for word in window
    ]
    outcome = check_conflicts([message], changes, head_version=2)
    assert isinstance(outcome, Conflicted) is (conflict == "yes")


def test_removed_file_of_another_group_conflicts_with_its_rewrite() -> None:
    message = CommitMessage(file_group="append-new", reads=Reads.FILES, removed=("x", "y"))
    change = CommittedChange(
        version=3, instant_id="i3", file_group="append-1", partition_path="", path="y", removed=True
    )
    outcome = check_conflicts([message], [change], head_version=3)
    assert outcome == Conflicted(file_groups=("append-new",), winner="i3", winner_version=3, head_version=3)


@pytest.mark.parametrize(
    ("bucket", "conflict"),
    [
        (Slot(partition_path="", bucket=1, of=2), False),
        (Slot(partition_path="", bucket=0, of=1), True),
        (Slot(partition_path="", bucket=3, of=4), True),
        (Slot(partition_path="", bucket=0, of=2), False),
        (Slot(partition_path="p", bucket=0, of=1), False),
    ],
)
def test_change_of_a_larger_or_smaller_bucket_conflicts_and_one_beside_the_replaced_files_does_not(
    bucket: Slot, conflict: bool
) -> None:
    """A table service replaces files of bucket 1 of 2: what is added to this bucket stays beside the new files."""
    own = bucket_file_group(Slot(partition_path="", bucket=1, of=2))
    message = CommitMessage(file_group=own, reads=Reads.FILES, removed=("x",))
    change = CommittedChange(
        version=2,
        instant_id="i2",
        file_group=bucket_file_group(bucket),
        partition_path=bucket.partition_path,
        path="log",
        removed=False,
    )
    outcome = check_conflicts([message], [change], head_version=2)
    lost = Conflicted(file_groups=(own,), winner="i2", winner_version=2, head_version=2)
    assert outcome == (lost if conflict else Clean())


def test_conflict_in_the_scope_names_the_changed_groups_and_one_in_a_read_group_the_reader() -> None:
    messages = [CommitMessage(file_group="append-new", reads=Reads.FILES, removed=("x",))]
    changes = [
        CommittedChange(
            version=version,
            instant_id=f"i{version}",
            file_group=group,
            partition_path=partition,
            path=path,
            removed=removed,
        )
        for version, group, partition, path, removed in (
            (2, "append-1", "day=1", "x", True),
            (3, "append-2", "day=1", "y", False),
            (4, "append-3", "day=2", "z", False),
        )
    ]
    scope = WriteScope(partitions=("day=1",))
    outcome = check_conflicts(messages, changes, head_version=4, scope=scope)
    assert outcome == Conflicted(
        file_groups=("append-2", "append-new"), winner="i3", winner_version=3, head_version=4
    )

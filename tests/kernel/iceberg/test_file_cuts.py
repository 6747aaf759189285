"""Cuts of files by commits: they have each file once, are small, and change little from commit to commit."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from app.kernel.iceberg.file_cuts import cut_files


def test_cuts_cover_each_commit_once_and_few_change() -> None:
    random = Random(3)
    counts: dict[int, int] = {}
    before: set[tuple[int, int, int]] = set()
    for version in range(1, 400):
        counts[version] = 40 if version % 50 == 0 else random.choice([0, 1, 1, 1, 3])
        gone = random.choice(list(counts))
        if random.random() < 0.2:
            counts[gone] = 0
        known = sorted((each, count) for each, count in counts.items() if count)
        cuts = list(cut_files(known, 16))
        ends = [cut.end for cut in cuts]
        assert ends == sorted(ends)
        for one, other in pairwise(cuts):
            assert one.end <= other.first
        for cut in cuts:
            inside = [count for each, count in known if cut.first <= each < cut.end]
            assert 0 < sum(inside) <= 16 * cut.parts
            assert cut.parts == 1 or cut.end == cut.first + 1
        assert sum(cut.first <= each < cut.end for cut in cuts for each, _ in known) == len(known)
        assert len(set(cuts) - before) <= 12
        before = set(cuts)
        [last] = [cut for cut in cuts if cut.first <= known[-1][0] < cut.end]
        assert sum(count for each, count in known if last.first <= each < last.end) <= max(known[-1][1], 2)
    assert len(before) > 20


def test_no_files_have_no_cuts() -> None:
    assert list(cut_files([], 16)) == []


def test_counts_of_several_commits_give_the_same_cuts() -> None:
    random = Random(4)
    for _ in range(200):
        counts = {version: random.choice([0, 0, 1, 2]) for version in range(1, random.randrange(2, 300))}
        known = sorted((each, count) for each, count in counts.items() if count)
        steps: dict[int, int] = {}
        for version, count in known:
            steps[version - version % 8] = steps.get(version - version % 8, 0) + count
        fine = {cut for cut in cut_files(known, 16, 8) if cut.end - cut.first >= 8}
        assert fine <= set(cut_files(sorted(steps.items()), 16, 8))

"""Mutates the commit path and runs the tests that must notice: `python -m tests.mutants`.

Without options, every mutation of every place is tried, which takes hours. Survivors are listed with their places, and
those of `equivalents.py` are left out. Exits 1 if one survives.

`--record` adds what is killed to `killed.txt`. `--recorded 0 --record` then tries all of them again, each by its test
alone, and keeps those that are killed again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile

from tests.mutants.equivalents import EQUIVALENTS
from tests.mutants.hunt import Report, Trial, Verdict, hunt, passing, warm
from tests.mutants.kills import candidates, kills, present, record, share


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    trials = _trials(options)
    warm()
    if options.recorded is not None:
        failure = passing(trials)
        if failure is not None:
            print(f"the tests do not pass on the tree as it is:\n{failure}", file=sys.stderr)
            return 1
    verdicts: Counter[Verdict] = Counter()
    for report in _reports(trials, options):
        verdicts[report.verdict] += 1
        print(f"{report.verdict.value:9} {report.trial.mutation.name}", flush=True)
        if report.verdict is Verdict.BROKEN or (report.verdict is Verdict.SURVIVED and options.recorded):
            print(report.detail, flush=True)
    print(
        ", ".join(f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict),
        f"of {len(trials)} mutations",
    )
    return 0 if verdicts[Verdict.KILLED] == verdicts.total() else 1


def _trials(options: argparse.Namespace) -> list[Trial]:
    trials = candidates(options.seed) if options.recorded is None else present(kills())
    trials = [
        trial
        for trial in trials
        if trial.mutation.name not in EQUIVALENTS and trial.mutation.place.startswith(options.place)
    ]
    return share(trials, options.recorded, options.seed) if options.recorded else trials


def _reports(trials: Sequence[Trial], options: argparse.Namespace) -> Iterator[Report]:
    """The reports, until the time is over."""
    deadline = time.monotonic() + options.seconds
    records = {trial.mutation: trial for trial in present(kills())}
    for report in hunt(takewhile(lambda _: time.monotonic() < deadline, trials), options.processes):
        yield report
        mutation = report.trial.mutation
        if report.verdict is Verdict.KILLED:
            records[mutation] = Trial(mutation=mutation, tests=(report.test,))
        else:
            records.pop(mutation, None)
        if options.record:
            record(records.values())


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "place", nargs="?", default="", help="the beginning of the places to mutate (default: all)"
    )
    parser.add_argument(
        "--recorded",
        type=int,
        metavar="N",
        help="try N of the recorded kills, each by its test; 0: all of them",
    )
    parser.add_argument(
        "--record", action="store_true", help="add the kills to killed.txt, and remove others"
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no trial after this time")
    parser.add_argument("--seed", default=time.strftime("%Y-%m-%d"), help="default: today's date")
    parser.add_argument("--processes", type=int, default=2, help="how many to try at once (default: 2)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())

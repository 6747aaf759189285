"""`python -m tests.mutants`: every guard, or those named, or a few chosen by a seed. Exits 1 unless all are caught."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tests.mutants.guards import GUARDS, share
from tests.mutants.hunt import Verdict, hunt, passing, warm


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    unknown = set(options.names) - {guard.name for guard in GUARDS}
    if unknown:
        print(f"no such guard: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    chosen = [guard for guard in GUARDS if not options.names or guard.name in options.names]
    if options.share is not None:
        chosen = share(chosen, options.share, options.seed)
    warm()
    failure = passing(chosen)
    if failure is not None:
        print(f"the tests of the guards do not pass on the tree as it is:\n{failure}", file=sys.stderr)
        return 1
    bad = set()
    for report in hunt(chosen, options.processes):
        print(f"{report.verdict.value:9} {report.guard.name}", flush=True)
        if report.verdict is not Verdict.CAUGHT:
            bad.add(report.guard.name)
            print(report.detail, flush=True)
    print(f"{len(chosen) - len(bad)} of {len(chosen)} guards are held by their tests")
    return 1 if bad else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="guards to take out (default: all)")
    parser.add_argument("--share", type=int, help="take out only so many, chosen by --seed")
    parser.add_argument("--seed", default=time.strftime("%Y-%m-%d"), help="default: today's date")
    parser.add_argument("--processes", type=int, default=2, help="how many to try at once (default: 2)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.mission`: the node ids of the tests that hold the rows; `--missing`: what is not built."""

from __future__ import annotations

import sys

from tests.mission.rows import GROUPS, every_test


def main(arguments: list[str]) -> None:
    if arguments == ["--missing"]:
        for group, rows in GROUPS.items():
            for row in rows:
                if row.missing is not None:
                    print(f"{group}: {row.name}: {row.missing}")
    else:
        print("\n".join(every_test()))


if __name__ == "__main__":
    main(sys.argv[1:])

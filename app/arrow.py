"""Arrow without pandas. Import this before anything that makes an Arrow array.

pyarrow looks for pandas when it makes the first array from Python values, to recognise pandas' own types.
Nothing here uses them, and pandas costs every process 40 MB and a third of a second; so pyarrow is told,
once, that there is none. Whoever imports pandas afterwards still gets it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa


class _NoPandas(MetaPathFinder):
    def find_spec(
        self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is left out", name=name)
        return None


def _leave_pandas_out() -> None:
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)


_leave_pandas_out()

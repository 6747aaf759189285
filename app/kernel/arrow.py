"""Arrow without pandas. Import this module before any other that creates an Arrow array.

When pyarrow creates the first array from Python values, it imports pandas to recognise pandas' types. The service does
not use them, and pandas costs every process 40 MB and a third of a second. So this module makes that one import fail.
Later imports of pandas succeed.
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
            raise ModuleNotFoundError("pandas is not loaded for pyarrow", name=name)
        return None


def _leave_pandas_out() -> None:
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)


_leave_pandas_out()

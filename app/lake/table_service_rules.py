"""The rules of a dataset's table services, each a small function that names the faults it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from app.lake.dataset import DatasetDefinition
from app.lake.table_services import TableServices

Fault = tuple[str, str]
_Rule = Callable[[TableServices, DatasetDefinition], Iterator[Fault]]


def service_faults(services: TableServices, dataset: DatasetDefinition) -> Iterator[Fault]:
    """Every fault of the services of a dataset: a JSON pointer, and what was expected."""
    for rule in _RULES:
        for pointer, detail in rule(services, dataset):
            yield f"/services{pointer}", detail


_RULES: Final[tuple[_Rule, ...]] = ()

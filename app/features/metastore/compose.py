"""Composes the use cases of reports to a Hive metastore."""

from __future__ import annotations

from typing import Final, Protocol

from app.core.feature.feature import Feature, Worker
from app.core.feature.reconcilers import Reconciler
from app.features.metastore.service.metastore_reconciler import MetastoreReconciler
from app.features.metastore.values import METASTORE_RECONCILER, Metastore
from app.features.overview.compose import overview_store
from app.features.partitions.compose import touched_partitions


class MetastoreEngine(Protocol):
    """Connects to metastores."""

    def metastore(self, uri: str, storage_uri: str) -> Metastore:
        """The metastore at a `thrift://host:port`, whose tables are below `storage_uri`."""
        ...


def _reconcilers(worker: Worker[MetastoreEngine]) -> dict[str, Reconciler]:
    settings = worker.platform.settings
    if not settings.metastore_uri:
        return {}
    policy = MetastoreReconciler(
        metastore=worker.engine.metastore(settings.metastore_uri, settings.storage_uri),
        overview=overview_store(worker.platform),
        touched=touched_partitions(worker.platform),
    )
    return {METASTORE_RECONCILER: policy}


FEATURE: Final = Feature(name="metastore", reconcilers=_reconcilers)

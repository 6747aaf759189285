"""Composes the use cases of reports to a Hive metastore."""

from __future__ import annotations

from app.features.maintenance.values import Reconciler
from app.features.metastore.service.maintenance import MetastoreReconciler
from app.features.metastore.service.reports import MetastoreReports, RecordOf
from app.features.metastore.values import METASTORE_RECONCILER, Metastore, PartitionIndex, TouchedPartitions


def metastore_reports(record: RecordOf) -> MetastoreReports:
    """Reports in the API."""
    return MetastoreReports(record=record)


def dependencies(record: RecordOf) -> dict[str, object]:
    """The use cases of the feature, by the names that handlers use."""
    return {"metastore_reports": metastore_reports(record)}


def reconcilers(
    metastore: Metastore | None, overview: PartitionIndex, touched: TouchedPartitions
) -> dict[str, Reconciler]:
    """The policy that reports datasets, if the deployment has a metastore."""
    if metastore is None:
        return {}
    policy = MetastoreReconciler(metastore=metastore, overview=overview, touched=touched)
    return {METASTORE_RECONCILER: policy}

"""Provides handlers with the lineage of a tenant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.core.catalog.service import Datasets
from app.core.consumers.service import Consumers
from app.features.exports.service.exports import ManageExports
from app.features.lineage.service import Lineage
from app.features.sharing.service.shares import Shares
from app.features.sources.service.sources import ManageSources
from app.features.views.service.views import DerivedViews
from app.features.webhooks.service.webhooks import Webhooks
from app.http.dependencies import Provided, Provider


async def lineage(
    datasets: Provided[Datasets],
    views: Provided[DerivedViews],
    sources: Provided[ManageSources],
    webhooks: Provided[Webhooks],
    exports: Provided[ManageExports],
    consumers: Provided[Consumers],
    shares: Provided[Shares],
) -> Lineage:
    """The lineage of tenants, from what the features list."""
    return Lineage(
        datasets=datasets,
        views=views,
        sources=sources,
        webhooks=webhooks,
        exports=exports,
        consumers=consumers,
        shares=shares,
    )


PROVIDERS: Final[Mapping[str, Provider]] = {"lineage": lineage}

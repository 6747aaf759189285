"""What webhooks serve."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import ApiProcess, CountOf, FeatureApi
from app.core.platform import Platform
from app.features.webhooks.compose import alert_feed, receivers
from app.features.webhooks.handlers.deliveries import (
    get_webhook_delivery,
    list_webhook_alerts,
    list_webhook_attempts,
    list_webhook_deliveries,
    redeliver_dead_webhook_deliveries,
    redeliver_webhook_delivery,
)
from app.features.webhooks.handlers.webhooks import (
    change_webhook,
    create_webhook,
    delete_webhook,
    get_webhook,
    list_webhooks,
    rotate_webhook_secret,
    try_webhook,
)
from app.features.webhooks.problems import PROBLEMS
from app.features.webhooks.repository.webhook_row import no_webhook
from app.features.webhooks.repository.webhooks import WebhookStore
from app.features.webhooks.service.webhooks import Webhooks
from app.http.auth import Resource


def _webhooks(platform: Platform) -> Webhooks:
    return Webhooks(
        catalog=platform.stores.catalog,
        index=WebhookStore(platform.database),
        receivers=receivers(platform.settings),
        alerts_after=alert_feed(platform).after,
        wake=platform.wake,
    )


def _dependencies(process: ApiProcess) -> dict[str, object]:
    return {"webhooks": _webhooks(process.platform)}


def _resources(platform: Platform) -> dict[str, Resource]:
    catalog, webhooks = platform.stores.catalog, _webhooks(platform)

    def datasets(tenant_id: str, webhook_id: str) -> list[str]:
        dataset_id = webhooks.get(tenant_id, webhook_id).dataset_id
        if dataset_id is None:
            # This is for keys with grants, which do not reach all datasets.
            raise no_webhook(webhook_id)
        return catalog.names(tenant_id, [dataset_id])

    return {"webhook": Resource(datasets=datasets, access=lambda *reference: webhooks.get(*reference).access)}


def _quotas(platform: Platform) -> dict[str, CountOf]:
    return {"webhooks": WebhookStore(platform.database).count}


API: Final = FeatureApi(
    name="webhooks",
    routes=(
        create_webhook,
        list_webhooks,
        get_webhook,
        change_webhook,
        delete_webhook,
        rotate_webhook_secret,
        try_webhook,
        list_webhook_alerts,
        list_webhook_attempts,
        list_webhook_deliveries,
        get_webhook_delivery,
        redeliver_webhook_delivery,
        redeliver_dead_webhook_deliveries,
    ),
    dependencies=_dependencies,
    resources=_resources,
    quotas=_quotas,
    problems=(PROBLEMS,),
)

"""Makes the graph of lineage that a principal may see."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from app.access.tenants.values import Principal
from app.core.catalog.service import Datasets, GrantedDatasets
from app.core.catalog.values import Dataset, DatasetFilter, DatasetSummary
from app.core.consumers.service import Consumers
from app.features.exports.service.exports import ManageExports
from app.features.exports.tasks import ExportQuery
from app.features.exports.values import Export
from app.features.lineage.columns import (
    export_columns,
    taken_columns,
    view_columns,
    webhook_columns,
    written_columns,
)
from app.features.lineage.values import Edge, Graph, LineagePoint, NodeKind
from app.features.sharing.service.shares import Shares
from app.features.sources.service.sources import ManageSources
from app.features.sources.values import DataSource
from app.features.views.service.views import DerivedViews
from app.features.views.values import View
from app.features.webhooks.service.webhooks import Webhooks
from app.features.webhooks.values import Webhook, WebhookEvents
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import InvalidRequest
from app.kernel.paging import Page

ITEMS_MAX: Final = 10_000
"""The most datasets of which a graph is made; likewise of sources, of webhooks and so on."""
_PAGE_SIZE: Final = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class _Scope:
    """What a graph is made of: the datasets by id that the principal may read, all or those with these ids.

    `definitions`: of these datasets, if the graph has columns.
    """

    granted_datasets: GrantedDatasets
    datasets: Mapping[str, DatasetSummary]
    definitions: Mapping[str, DatasetDefinition]
    ids: Collection[str] | None
    columns: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Lineage:
    """The lineage of a tenant, from the lists of its features, which show what the principal may see."""

    datasets: Datasets
    views: DerivedViews
    sources: ManageSources
    webhooks: Webhooks
    exports: ManageExports
    consumers: Consumers
    shares: Shares

    def graph(
        self, granted_datasets: GrantedDatasets, reference: str | None = None, *, columns: bool = False
    ) -> Graph:
        """What the principal sees; only what leads to the dataset and what it leads to, unless `reference` is None.

        `columns`: with the columns of edges. Raises NotFound, Forbidden, InvalidRequest if there is too much.
        """
        tenant_id = granted_datasets.principal.tenant_id
        focus = None if reference is None else granted_datasets.seen(tenant_id, reference)[0].id
        ids = None if focus is None else _around(focus, self.sources.dataset_edges(tenant_id))
        selection = DatasetFilter(ids=None if ids is None else frozenset(ids))
        principal = granted_datasets.principal
        summaries: list[DatasetSummary] = self._every(
            "datasets",
            lambda token: self.datasets.summaries(
                principal, selection, page_size=_PAGE_SIZE, page_token=token
            ),
        )
        datasets = {each.id: each for each in summaries}
        definitions: dict[str, DatasetDefinition] = {}
        if columns:
            definitions = {each.id: each.definition for each in self._whole(principal, selection)}
        views: dict[str, View] = {}
        if any(each.is_view for each in summaries):
            views = {
                each.dataset.id: each
                for each in self._every(
                    "views",
                    lambda token: self.views.list(
                        granted_datasets, page_size=_PAGE_SIZE, page_token=token, ids=ids
                    ),
                )
            }
        scope = _Scope(
            granted_datasets=granted_datasets,
            datasets=datasets,
            definitions=definitions,
            ids=ids,
            columns=columns,
        )
        parts = [
            _of_datasets(datasets, views, columns=columns),
            self._of_sources(scope),
            self._of_webhooks(scope),
            self._of_exports(scope),
            self._of_consumers(scope),
            self._of_shares(scope),
        ]
        in_part = {each.id for each in summaries if principal.access(each.name).restricted}
        graph = Graph(
            nodes=tuple(node for nodes, _ in parts for node in nodes),
            edges=tuple(_without_hidden(edge, in_part) for _, edges in parts for edge in edges),
        )
        return graph if focus is None else _connected(graph, focus)

    def _whole(self, principal: Principal, selection: DatasetFilter) -> list[Dataset]:
        return self._every(
            "datasets",
            lambda token: self.datasets.list(principal, selection, page_size=_PAGE_SIZE, page_token=token),
        )

    def _of_sources(self, scope: _Scope) -> _Part:
        sources: list[DataSource] = self._every(
            "sources",
            lambda token: self.sources.list(
                scope.granted_datasets, None, page_size=_PAGE_SIZE, page_token=token, dataset_ids=scope.ids
            ),
        )
        nodes = [
            LineagePoint(id=each.id, kind=NodeKind.SOURCE, name=each.name, state=each.state.value)
            for each in sources
        ]
        return nodes, [edge for each in sources for edge in _source_edges(each, scope)]

    def _of_webhooks(self, scope: _Scope) -> _Part:
        datasets = scope.datasets
        webhooks: list[Webhook] = self._every(
            "webhooks",
            lambda token: self.webhooks.list(
                scope.granted_datasets, None, page_size=_PAGE_SIZE, page_token=token, dataset_ids=scope.ids
            ),
        )
        of_rows = [
            (each, each.dataset_id)
            for each in webhooks
            if each.dataset_id is not None
            and each.dataset_id in datasets
            and each.definition.events is not WebhookEvents.ALERTS
        ]
        nodes = [
            LineagePoint(
                id=each.id,
                kind=NodeKind.WEBHOOK,
                name=each.definition.name,
                state=each.state.value,
            )
            for each, _ in of_rows
        ]
        return nodes, [
            Edge(
                origin=dataset_id,
                target=each.id,
                lag=max(each.pending, 0),
                columns=webhook_columns(each.definition, scope.definitions[dataset_id])
                if dataset_id in scope.definitions
                else None,
            )
            for each, dataset_id in of_rows
        ]

    def _of_exports(self, scope: _Scope) -> _Part:
        datasets, principal = scope.datasets, scope.granted_datasets.principal
        exports_of_tenant = self._within(
            "exports", self.exports.followers(principal.tenant_id, ITEMS_MAX + 1, scope.ids)
        )
        exports: list[Export] = [
            each
            for each in exports_of_tenant
            if each.dataset_id in datasets
            and each.definition.access.within(principal.access(each.dataset_name))
        ]
        nodes = [
            LineagePoint(
                id=each.id, kind=NodeKind.EXPORT, name=each.definition.name or each.id, state=each.state.value
            )
            for each in exports
        ]
        return nodes, [
            Edge(
                origin=each.dataset_id,
                target=each.id,
                lag=_export_lag(each, datasets[each.dataset_id]),
                columns=export_columns(each.definition, scope.definitions[each.dataset_id])
                if each.dataset_id in scope.definitions
                else None,
            )
            for each in exports
        ]

    def _of_consumers(self, scope: _Scope) -> _Part:
        tenant_id = scope.granted_datasets.principal.tenant_id
        readers = self._within("consumers", self.consumers.readers(tenant_id, ITEMS_MAX + 1, scope.ids))
        nodes: list[LineagePoint] = []
        edges: list[Edge] = []
        for each in readers:
            dataset_id, name = each.consumer.dataset_id, each.consumer.name
            if dataset_id in scope.datasets:
                node = LineagePoint(id=f"{dataset_id}/{name}", kind=NodeKind.CONSUMER, name=name)
                nodes.append(node)
                edges.append(Edge(origin=dataset_id, target=node.id, lag=each.behind_changes))
        return nodes, edges

    def _of_shares(self, scope: _Scope) -> _Part:
        shares = self._every(
            "shares",
            lambda token: self.shares.list(
                scope.granted_datasets, page_size=_PAGE_SIZE, page_token=token, dataset_ids=scope.ids
            ),
        )
        nodes = [LineagePoint(id=each.id, kind=NodeKind.SHARE, name=each.name) for each in shares]
        return nodes, [
            Edge(origin=member.id, target=each.id)
            for each in shares
            for member in each.datasets
            if member.id in scope.datasets
        ]

    def _every(self, what: str, page: Callable[[str | None], Page]) -> list[Any]:
        """All items of a list. Raises InvalidRequest if there are more than ITEMS_MAX."""
        items: list[Any] = []
        token = None
        while True:
            current = page(token)
            items += current.items
            self._within(what, items)
            token = current.next_token
            if token is None:
                return items

    def _within(self, what: str, items: Sequence[Any]) -> Sequence[Any]:
        if len(items) > ITEMS_MAX:
            raise InvalidRequest(
                f"there are more than {ITEMS_MAX:,} {what}, too many for one graph: read the lists of a dataset, "
                "such as GET /webhooks?dataset="
            )
        return items


_Part = tuple[Sequence[LineagePoint], Sequence[Edge]]


def _without_hidden(edge: Edge, in_part: Collection[str]) -> Edge:
    """The edge without its lag, if that counts changes of a dataset that the principal sees in part."""
    return msgspec.structs.replace(edge, lag=None) if edge.origin in in_part else edge


def _of_datasets(
    datasets: Mapping[str, DatasetSummary], views: Mapping[str, View], *, columns: bool
) -> _Part:
    nodes = [
        LineagePoint(
            id=each.id,
            kind=NodeKind.VIEW if each.is_view else NodeKind.DATASET,
            name=each.name,
            state=views[each.id].state.value if each.id in views else None,
        )
        for each in datasets.values()
    ]
    return nodes, [edge for each in views.values() for edge in _view_edges(each, datasets, columns=columns)]


def _view_edges(view: View, datasets: Collection[str], *, columns: bool) -> Iterator[Edge]:
    of_inputs = view_columns(view) if columns else {}
    for each in view.inputs:
        if each.dataset.id in datasets:
            yield Edge(
                origin=each.dataset.id,
                target=view.dataset.id,
                lag=each.lag,
                columns=of_inputs.get(each.dataset.id),
            )


def _export_lag(export: Export, dataset: DatasetSummary) -> int | None:
    """How many changes it has not written; None for a snapshot, which writes the whole table."""
    if export.definition.query is ExportQuery.SNAPSHOT:
        return None
    return max(dataset.next_offset - export.offset, 0)


def _source_edges(source: DataSource, scope: _Scope) -> Iterator[Edge]:
    """What the source reads, if that is a dataset, and what it writes to."""
    read = str(source.definition.config.get("dataset_id"))
    is_read, definition = read in scope.datasets, scope.definitions.get(read)
    lag = None if source.lag is None else source.lag.rows
    if is_read:
        yield Edge(
            origin=read,
            target=source.id,
            lag=lag,
            columns=None if definition is None else taken_columns(source.definition, definition),
        )
    if source.dataset_id is not None and source.dataset_id in scope.datasets:
        yield Edge(
            origin=source.id,
            target=source.dataset_id,
            # What a source has read is written by the same round.
            lag=0 if is_read else lag,
            columns=written_columns(source.definition, definition) if scope.columns else None,
        )


def _connected(graph: Graph, focus: str) -> Graph:
    """What leads to a node, in any number of steps, and what it leads to."""
    ids = _around(focus, [(each.origin, each.target) for each in graph.edges])
    return Graph(
        nodes=tuple(each for each in graph.nodes if each.id in ids),
        edges=tuple(each for each in graph.edges if each.origin in ids and each.target in ids),
    )


def _around(focus: str, edges: Collection[tuple[str, str]]) -> set[str]:
    """What leads to a node, what it leads to, and the node. `edges`: origins and targets."""
    backward = [(target, origin) for origin, target in edges]
    return {focus} | _reached(focus, backward) | _reached(focus, edges)


def _reached(start: str, steps: Iterable[tuple[str, str]]) -> set[str]:
    """All that steps lead to from the start."""
    onward: dict[str, list[str]] = {}
    for origin, target in steps:
        onward.setdefault(origin, []).append(target)
    ids: set[str] = set()
    waiting = [start]
    while waiting:
        for each in onward.get(waiting.pop(), ()):
            if each not in ids:
                ids.add(each)
                waiting.append(each)
    return ids

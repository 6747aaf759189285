"""Views on request: registers, reads, pauses, refreshes and deletes them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass

import msgspec

from app.access.errors import NotFound
from app.access.tenants.values import KeyScope, Principal
from app.core.catalog.ports import DatasetLookup
from app.core.catalog.repository.catalog import CatalogStore
from app.core.catalog.service import GrantedDatasets
from app.core.catalog.values import Dataset
from app.core.jobs.values import Accepted
from app.features.views.new_view import CreateView, define_view
from app.features.views.refresh_plan import follows_changes
from app.features.views.repository.views import ViewStore
from app.features.views.values import CheckedView, View, ViewDefinition, ViewMode, new_refresh
from app.infra.identifiers import new_id
from app.kernel.codecs.faults import shown
from app.kernel.format.dataset import ChangelogProducer
from app.kernel.format.errors import InvalidView
from app.kernel.paging import Page
from app.kernel.sql.queries.bind import bind_view
from app.kernel.sql.queries.parse import parse_view


@dataclass(frozen=True, kw_only=True, slots=True)
class DerivedViews:
    """The views of a tenant. `wake` is called after a job was recorded. `slice_seconds`: that of a refresh."""

    catalog: CatalogStore
    views: ViewStore
    wake: Callable[[], None]
    slice_seconds: float

    def register(
        self, tenant_id: str, new: CreateView, catalog: DatasetLookup, *, actor: str | None = None
    ) -> View:
        """Registers a view; its first refresh is queued with it. `catalog`: where its inputs are looked up.

        Raises InvalidView, InvalidDataset, DatasetExists, NotFound if an input is deleted meanwhile, SchemaChanged if
        the schema of one changes meanwhile.
        """
        query = parse_view(new.sql)
        inputs = {name: _input(catalog, tenant_id, new, name) for name in query.inputs}
        _check_distinct(inputs)
        definitions = {name: dataset.definition for name, dataset in inputs.items()}
        plan = bind_view(query, definitions, allow_cross_join=new.allow_cross_join)
        definition = define_view(new, plan, definitions)
        follows = follows_changes(plan, definitions, definition.record_key)
        dataset_id = new_id()
        view = self.views.create(
            tenant_id,
            CheckedView(
                dataset_id=dataset_id,
                dataset=definition,
                definition=ViewDefinition(
                    sql=new.sql,
                    plan=plan,
                    mode=ViewMode.ROW_BY_ROW if follows else ViewMode.RECOMPUTE,
                    allow_cross_join=new.allow_cross_join,
                ),
                inputs={name: dataset.id for name, dataset in inputs.items()},
                schemas={each.id: each.definition.schema.id for each in inputs.values()},
                refresh=new_refresh(dataset_id, actor),
            ),
        )
        self.wake()
        return view

    def get(self, tenant_id: str, reference: str) -> View:
        """`reference` is an id or a name. Raises NotFound."""
        return self.views.get(tenant_id, reference)

    def read(self, granted_datasets: GrantedDatasets, reference: str) -> View:
        """A view as the principal may see it. Raises NotFound."""
        return _shown(granted_datasets, self.get(granted_datasets.principal.tenant_id, reference))

    def list(
        self,
        granted_datasets: GrantedDatasets,
        *,
        page_size: int,
        page_token: str | None,
        ids: Collection[str] | None = None,
    ) -> Page:
        """The views that the principal may read, by name, without those of which it sees a part only.

        `ids`: of these only.
        """
        principal = granted_datasets.principal
        page = self.views.list(
            principal.tenant_id,
            page_size=page_size,
            page_token=page_token,
            patterns=principal.patterns(KeyScope.READ),
            ids=ids,
        )
        whole = page.filtered(lambda view: not principal.access(view.dataset.definition.name).restricted)
        return whole.mapped(lambda view: _shown(granted_datasets, view))

    def pause(
        self, granted_datasets: GrantedDatasets, reference: str, *, paused: bool, revision: int
    ) -> View:
        """Pauses or resumes the refreshes of a view. Raises NotFound, PreconditionFailed."""
        tenant_id = granted_datasets.principal.tenant_id
        view = self.views.pause(tenant_id, reference, paused=paused, revision=revision)
        self.wake()
        return _shown(granted_datasets, view)

    def delete(self, tenant_id: str, reference: str) -> None:
        """Ends a view, and its dataset with it. Raises NotFound, DatasetInUse."""
        view = self.views.get(tenant_id, reference)
        self.catalog.delete(tenant_id, view.dataset.id, version=None)
        self.wake()

    def refresh(self, view: View, idempotency_key: str | None = None, actor: str | None = None) -> Accepted:
        """Queues a refresh of the view, or returns the one that is queued already.

        Raises NotFound, IdempotencyMismatch.
        """
        new = msgspec.structs.replace(
            new_refresh(view.dataset.id, actor),
            idempotency_key=idempotency_key,
            request_hash=hashlib.sha256(f"refresh {view.dataset.id}".encode()).hexdigest(),
        )
        outcome = self.views.refresh(
            view.dataset.tenant_id, new, after_running=True, slice_seconds=self.slice_seconds
        )
        self.wake()
        return outcome


def _shown(granted_datasets: GrantedDatasets, view: View) -> View:
    """The view as the principal may see it: why its refresh failed may quote rows of its inputs."""
    view = _with_shown_inputs(granted_datasets.principal, view)
    if view.error is None or granted_datasets.sees_inputs(view.dataset.id):
        return view
    return msgspec.structs.replace(view, error=view.error.without_values())


def _with_shown_inputs(principal: Principal, view: View) -> View:
    """The view without what the principal may not know of its inputs: only their names in the SQL are of the view."""
    if principal.grants is None:
        return view
    inputs = tuple(
        msgspec.structs.replace(
            each,
            named=KeyScope.READ in principal.scopes_on(each.dataset.definition.name),
            counted=principal.sees_whole(each.dataset.definition.name),
        )
        for each in view.inputs
    )
    return msgspec.structs.replace(view, inputs=inputs)


def _input(catalog: DatasetLookup, tenant_id: str, new: CreateView, name: str) -> Dataset:
    """A dataset that the SQL names. Raises InvalidView, Forbidden."""
    try:
        dataset = catalog.get(tenant_id, name)
    except NotFound:
        reason = "a view cannot read itself" if name == new.name else "there is no such dataset"
        raise _refused(name, reason, "the name of a dataset that is registered") from None
    producer = dataset.definition.changelog.producer
    if producer is not ChangelogProducer.FULL:
        raise _refused(
            name,
            f"its changelog.producer is {producer.value!r}, so its feed does not have every change of its rows",
            f"a dataset whose producer is {ChangelogProducer.FULL.value!r}",
        )
    return dataset


def _check_distinct(inputs: dict[str, Dataset]) -> None:
    """Raises InvalidView if the SQL names a dataset both by its id and by its name."""
    names_by_id: dict[str, str] = {}
    for name, dataset in inputs.items():
        earlier = names_by_id.setdefault(dataset.id, name)
        if earlier != name:
            raise _refused(
                name, f"it is the dataset that is called {shown(earlier)} before", "one name for it"
            )


def _refused(name: str, reason: str, expectation: str) -> InvalidView:
    return InvalidView(
        f"the view reads {shown(name)}: {reason}; expected {expectation}",
        pointer="/sql",
        position=None,
        expected=expectation,
        dataset=name,
    )

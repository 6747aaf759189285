"""Registers, reads, changes and deletes datasets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import msgspec

from app.access.errors import Forbidden, NotFound, PreconditionFailed, scope_missing
from app.access.tenants.values import KeyScope, Principal, seen_in_part
from app.core.catalog.errors import DerivedDataset
from app.core.catalog.impact import ColumnReader, SchemaImpact
from app.core.catalog.repository.catalog import CatalogStore
from app.core.catalog.repository.live_datasets import dataset_not_found
from app.core.catalog.values import Dataset, DatasetFilter, SchemaVersion
from app.infra.identifiers import new_id, new_instant_id
from app.kernel.format.definition.dataset_definition import (
    define_dataset,
    new_notes,
    with_changelog,
    with_deletes,
    with_services,
    with_settings,
)
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import CreateDataset
from app.kernel.format.definition.schema_change import UpdateDataset
from app.kernel.format.definition.settings import dataset_notes
from app.kernel.format.errors import InvalidDataset
from app.kernel.format.policies import TableServices
from app.kernel.format.schema.schema import Schema
from app.kernel.paging import Page
from app.kernel.sql.conditions.row_access import RowAccess


@dataclass(frozen=True, kw_only=True, slots=True)
class Datasets:
    """The datasets of a tenant. `wake` is called after one was deleted; losing it costs latency only.

    `metastore`: whether a Hive metastore is configured.
    """

    catalog: CatalogStore
    wake: Callable[[], None]
    metastore: bool = False

    def register(self, tenant_id: str, new: CreateDataset) -> Dataset:
        """Raises InvalidDataset, DatasetExists."""
        _check_metastore(new.services, available=self.metastore)
        return self.catalog.create(tenant_id, new_id(), define_dataset(new), dataset_notes(new))

    def list(
        self,
        principal: Principal,
        selection: DatasetFilter,
        *,
        page_size: int,
        page_token: str | None,
    ) -> Page:
        """The datasets that the principal may read, by name."""
        return self.catalog.list(
            principal.tenant_id, readable(principal, selection), page_size=page_size, page_token=page_token
        )

    def summaries(
        self,
        principal: Principal,
        selection: DatasetFilter,
        *,
        page_size: int,
        page_token: str | None,
    ) -> Page:
        """DatasetSummary items of the datasets that the principal may read, by name."""
        return self.catalog.summaries(
            principal.tenant_id, readable(principal, selection), page_size=page_size, page_token=page_token
        )

    def change(
        self,
        impact: SchemaImpact,
        reference: str,
        request: UpdateDataset,
        *,
        version: int,
    ) -> Dataset:
        """Changes the settings, schema, feed or services of a dataset, which must still be at `version`.

        The change makes the next version, unless it only changes settings that are not of the table, such as labels.
        `impact`: who requests it, and whether what it breaks pauses.
        """
        tenant_id = impact.principal.tenant_id
        dataset = self.catalog.get(tenant_id, reference)
        if dataset.version != version:
            raise PreconditionFailed(
                f"The dataset is at version {dataset.version}, not {version}", version=dataset.version
            )
        notes = new_notes(request)
        definition = with_settings(dataset.definition, request)
        if request.deletes is not msgspec.UNSET:
            definition = with_deletes(definition, request.deletes)
        if request.changelog is not msgspec.UNSET:
            definition = with_changelog(definition, request.changelog)
        if request.services is not msgspec.UNSET:
            services = request.services.instead_of(definition.services)
            _check_metastore(services, available=self.metastore)
            definition = with_services(definition, services)
        if notes and definition is dataset.definition and not request.changes:
            return self.catalog.note(tenant_id, dataset.id, notes, version=version)
        if request.changes or definition is dataset.definition:
            refuse_derived(dataset)
            definition = evolve(definition, request.changes)
        return self.catalog.evolve(
            tenant_id,
            dataset.id,
            definition,
            version=version,
            instant_id=new_instant_id(),
            actor=impact.principal.actor,
            notes=notes,
            admit=impact.admit,
        )

    def try_change(
        self, impact: SchemaImpact, reference: str, request: UpdateDataset, *, version: int
    ) -> Dataset:
        """The dataset as `change` would make it, and what would break, in `impact`. Nothing is changed.

        Raises what `change` raises.
        """
        with self.catalog.trial(impact.principal.tenant_id):
            return self.change(impact, reference, request, version=version)

    def schema(self, dataset: Dataset, schema_id: int | None) -> SchemaVersion:
        """A schema of the dataset; the latest one for None. Raises NotFound."""
        if schema_id is None:
            schema_id = dataset.definition.schema.id
        return self.catalog.schema(dataset.tenant_id, dataset.id, schema_id)

    def readers(self, principal: Principal, dataset: Dataset) -> Sequence[ColumnReader]:
        """What names columns of the dataset, as far as the principal may see it."""
        readers = self.catalog.readers(dataset.tenant_id, dataset)
        return [each for each in readers if each.shown_to(principal)]

    def schemas(self, dataset: Dataset, *, page_size: int, page_token: str | None) -> Page:
        """Every schema that the dataset had, the latest first."""
        return self.catalog.schemas(dataset.tenant_id, dataset.id, page_size=page_size, page_token=page_token)

    def delete(self, tenant_id: str, reference: str, *, version: int | None) -> None:
        """Deletes a dataset, which must still be at `version`, unless None.

        Raises NotFound, PreconditionFailed, DatasetInUse.
        """
        self.catalog.delete(tenant_id, reference, version=version)
        self.wake()


@dataclass(frozen=True, kw_only=True, slots=True)
class GrantedDatasets:
    """The datasets with which a principal may do what a scope names. Others do not exist for it.

    It is a `DatasetLookup` for use cases that are given names of datasets by a request.
    """

    catalog: CatalogStore
    principal: Principal
    scope: KeyScope

    def get(self, tenant_id: str, reference: str) -> Dataset:
        """A dataset that the principal sees whole. Raises NotFound, Forbidden, RestrictedGrant."""
        dataset, access = self.seen(tenant_id, reference)
        if access.restricted:
            raise seen_in_part(dataset.definition.name)
        return dataset

    def seen(self, tenant_id: str, reference: str) -> tuple[Dataset, RowAccess]:
        """A dataset, and what the principal sees of it. Raises NotFound, Forbidden."""
        dataset = self.catalog.get(tenant_id, reference)
        name = dataset.definition.name
        self._check([name], dataset_not_found(reference))
        return dataset, self.principal.access(name)

    def schema(self, tenant_id: str, dataset_id: str, schema_id: int) -> SchemaVersion:
        """A schema of a dataset that `get` has returned. Raises NotFound."""
        return self.catalog.schema(tenant_id, dataset_id, schema_id)

    def later_schemas(self, tenant_id: str, dataset_id: str, schema_id: int) -> Sequence[Schema]:
        """The schemas of such a dataset after this one, in their order."""
        return self.catalog.later_schemas(tenant_id, dataset_id, schema_id)

    def reading(self) -> GrantedDatasets:
        """Those that the principal may read."""
        return replace(self, scope=KeyScope.READ)

    def check(self, names: Sequence[str], missing: NotFound) -> None:
        """Raises `missing` if one of these names is not granted, Forbidden if one is granted without the scope.

        Raises RestrictedGrant if the principal sees only a part of one.
        """
        self._check(names, missing)
        for name in names:
            if self.principal.access(name).restricted:
                raise seen_in_part(name)

    def _check(self, names: Sequence[str], missing: NotFound) -> None:
        if not all(map(self.principal.reaches, names)):
            raise missing
        for name in names:
            if self.scope not in self.principal.scopes_on(name):
                raise scope_missing(self.scope.value)

    def check_ids(self, dataset_ids: Collection[str], missing: NotFound) -> None:
        """`check` of datasets by id, deleted ones included."""
        if self.principal.grants is not None:
            self.check(self.catalog.names(self.principal.tenant_id, dataset_ids), missing)

    def manage(self, dataset: Dataset) -> None:
        """Raises Forbidden if the principal may not manage a dataset that it was given."""
        name = dataset.definition.name
        replace(self, scope=KeyScope.MANAGE)._check([name], dataset_not_found(name))

    def shows(self, dataset_id: str, access: RowAccess | None) -> bool:
        """Whether the principal sees all that was made of a dataset with this access; None if it may be anything."""
        if not self.principal.sees_parts:
            return True
        accesses = [
            self.principal.access(name) for name in self.catalog.names(self.principal.tenant_id, [dataset_id])
        ]
        return all(not each.restricted or (access is not None and access.within(each)) for each in accesses)

    def sees_inputs(self, dataset_id: str) -> bool:
        """Whether the principal sees all rows of all inputs of a view. Those of a deleted view are not known."""
        if self.principal.grants is None:
            return True
        names = self.catalog.input_names(self.principal.tenant_id, dataset_id)
        return bool(names) and all(map(self.principal.sees_whole, names))

    def check_missing(self, name: str, *, registers: bool) -> None:
        """Raises NotFound unless the request registers the dataset that there is not, and what `check_new` raises."""
        if not registers:
            raise dataset_not_found(name)
        self.check_new(name)

    def check_new(self, name: str) -> None:
        """Raises Forbidden if the principal may not give a dataset this name."""
        if self.scope not in self.principal.scopes_on(name):
            raise Forbidden(
                f"the grants of this key do not include a dataset named {name!r} with the scope {self.scope.value!r}",
                required_scope=self.scope.value,
            )


def readable(principal: Principal, selection: DatasetFilter) -> DatasetFilter:
    """The filter, for what the principal may read."""
    patterns = principal.patterns(KeyScope.READ)
    return selection if patterns is None else msgspec.structs.replace(selection, patterns=tuple(patterns))


def refuse_derived(dataset: Dataset) -> None:
    """Raises DerivedDataset if the dataset is a view's: only its refreshes write to it."""
    if dataset.is_view:
        raise DerivedDataset(
            f"{dataset.definition.name!r} is a view: it changes when the datasets that it reads do, so write to these"
        )


def _check_metastore(services: TableServices, *, available: bool) -> None:
    """Raises InvalidDataset if the services name a metastore table, but no metastore is configured."""
    if services.metastore is not None and not available:
        detail = (
            "this deployment reports to no Hive metastore: leave it out, or have its operator set "
            "HEADWATER_METASTORE_URI"
        )
        raise InvalidDataset.of([("/services/metastore", detail)])

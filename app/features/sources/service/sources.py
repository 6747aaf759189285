"""Sources on request: registers, reads, changes and deletes them, and starts rounds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from app.access.errors import NotFound
from app.access.tenants.values import KeyScope
from app.core.catalog.service import GrantedDatasets, refuse_derived
from app.core.catalog.values import Dataset
from app.core.jobs.values import Accepted
from app.features.sources.kinds.positions import check_position, check_start
from app.features.sources.ports import Connects, Position, ReadsDatasets, SourceEnvironment, SourceKind
from app.features.sources.repository.sources import SourceStore
from app.features.sources.service.register import RegisterDataset, WithoutRows, check_watermark
from app.features.sources.service.rounds import new_round
from app.features.sources.transforms import bind_transform
from app.features.sources.values import (
    DataSource,
    NewSource,
    SourceChange,
    SourceDefinition,
    SourceMode,
    SourceState,
    SourceTransform,
    refused_source,
)
from app.infra.files.folders.admitted import roots_of_tenant
from app.infra.identifiers import new_id
from app.kernel.commit.write_rules import brings_rows, check_options, partition_done_faults
from app.kernel.format.commit_metadata import metadata_faults
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import schema_of
from app.kernel.format.operation import Operation
from app.kernel.paging import Page

_FINAL_STATES: Final = (SourceState.FINISHED, SourceState.FAILED)


@dataclass(frozen=True, kw_only=True, slots=True)
class ManageSources:
    """The sources of a tenant. `wake` is called after a job was recorded.

    `environment_of`: what the operator admits to a tenant.
    """

    sources: SourceStore
    kinds: Mapping[str, SourceKind]
    environment_of: Callable[[str], SourceEnvironment]
    register: RegisterDataset
    wake: Callable[[], None]

    def create(
        self, granted_datasets: GrantedDatasets, name: str, definition: SourceDefinition, position: Position
    ) -> DataSource:
        """Registers a source, which is due at once. `position`: where it starts; empty for the start of its config.

        Raises InvalidRequest, InvalidSource, SourceExists, NotFound, Forbidden, DerivedDataset, SchemaChanged,
        QuotaExceeded.
        """
        tenant_id = granted_datasets.principal.tenant_id
        operation = definition.operation
        if operation is not None and not brings_rows(operation, definition.options):
            raise refused_source("/operation", f"{operation.value} takes no rows")
        if not isinstance(definition.order, msgspec.UnsetType) and (
            definition.filter_duplicates or operation not in (None, Operation.CHANGELOG)
        ):
            raise refused_source(
                "/order", "only changes have an order; leave it out, or use operation changelog"
            )
        for pointer, detail in metadata_faults(definition.options.metadata or {}):
            raise refused_source(f"/metadata{pointer}", detail)
        kind = self.kinds.get(definition.kind)
        if kind is None:
            kinds = ", ".join(sorted(self.kinds))
            raise refused_source("/kind", f"expected one of {kinds}, got {definition.kind!r}")
        check_start(definition.kind, position)
        config = kind.checked(definition.config, self.environment_of(tenant_id))
        inputs: list[Dataset] = []
        if isinstance(kind, ReadsDatasets):

            def find(name: str) -> Dataset:
                inputs.append(granted_datasets.reading().get(tenant_id, name))
                return inputs[-1]

            config = kind.resolved(config, find)
        if isinstance(kind, Connects):
            kind.check_addresses(config, self.environment_of(tenant_id))
        secrets = {member: config.pop(member) for member in sorted(kind.secrets) if member in config}
        dataset = self._dataset(granted_datasets, definition)
        if dataset is not None:
            inputs.append(dataset)
            refuse_derived(dataset)
            check_watermark(definition.create, dataset)
            check_options(definition.operation_on(dataset.definition), definition.options, dataset.definition)
        if definition.transform is not None:
            _check_transform(definition, definition.transform, dataset)
        if definition.ends_partitions_since is not None:
            definition = _ending_partitions(definition, dataset)
        return self.sources.create(
            tenant_id,
            NewSource(
                id=new_id(),
                name=name,
                dataset_id=None if dataset is None else dataset.id,
                definition=msgspec.structs.replace(definition, config=config),
                secrets=secrets,
                position=position,
                schemas={each.id: each.definition.schema.id for each in inputs},
            ),
        )

    def get(self, tenant_id: str, reference: str) -> DataSource:
        """`reference` is an id or a name. Raises NotFound."""
        return self.sources.get(tenant_id, reference)

    def list(
        self,
        granted_datasets: GrantedDatasets,
        reference: str | None,
        *,
        page_size: int,
        page_token: str | None,
        dataset_ids: Collection[str] | None = None,
    ) -> Page:
        """Sources by name, of datasets that the principal sees whole; of one dataset, unless None. Raises NotFound.

        `dataset_ids`: those only that write to one of these datasets, and those without a dataset yet.
        """
        principal = granted_datasets.principal
        page = self.sources.list(
            principal.tenant_id,
            None if reference is None else granted_datasets.get(principal.tenant_id, reference).id,
            page_size=page_size,
            page_token=page_token,
            patterns=principal.patterns(KeyScope.READ),
            dataset_ids=dataset_ids,
        )
        return page.filtered(lambda source: not principal.access(source.dataset_name).restricted)

    def dataset_edges(self, tenant_id: str) -> Sequence[tuple[str, str]]:
        """Datasets that sources and views read, each with one that is written with it, by id."""
        return self.sources.dataset_edges(tenant_id)

    def change(self, tenant_id: str, reference: str, change: SourceChange) -> DataSource:
        """Raises NotFound, PreconditionFailed, InvalidSource."""
        if not isinstance(change.position, msgspec.UnsetType):
            check_position(self.sources.get(tenant_id, reference).definition.kind, change.position)
        if change.state in _FINAL_STATES:
            raise refused_source("/state", "expected active or paused; a source finishes and fails by itself")
        return self.sources.change(tenant_id, reference, change)

    def delete(self, tenant_id: str, reference: str, *, revision: int | None) -> None:
        """Ends a source and its round; its dataset stays. Raises NotFound, PreconditionFailed."""
        self.sources.delete(tenant_id, reference, revision=revision)
        self.wake()

    def start(
        self, source: DataSource, idempotency_key: str | None = None, actor: str | None = None
    ) -> Accepted:
        """Queues a round, or returns the one that is queued already.

        Raises NotFound, SourceEmpty, IdempotencyMismatch, QuotaExceeded, and what `RegisterDataset.run` raises.
        """
        dataset_id = source.dataset_id or self.register.run(source)
        if isinstance(dataset_id, WithoutRows):
            raise dataset_id.error(source, self.kinds[source.definition.kind])
        new = msgspec.structs.replace(
            new_round(source, dataset_id, actor=actor),
            idempotency_key=idempotency_key,
            request_hash=f"round {source.id}",
        )
        round_job = self.sources.start(source.tenant_id, source.id, new)
        self.wake()
        return round_job

    def _dataset(self, granted_datasets: GrantedDatasets, definition: SourceDefinition) -> Dataset | None:
        """The dataset; None if the source is going to register it. Raises NotFound, Forbidden."""
        try:
            return granted_datasets.get(granted_datasets.principal.tenant_id, definition.dataset)
        except NotFound:
            if definition.create is None:
                raise
        granted_datasets.check_new(definition.dataset)
        return None


def environment(
    roots: tuple[str, ...], allow: tuple[str, ...], *, plain_http: bool
) -> Callable[[str], SourceEnvironment]:
    """What the operator admits to each tenant."""

    def of(tenant_id: str) -> SourceEnvironment:
        own = roots_of_tenant(roots, tenant_id)
        return SourceEnvironment(roots=own, allow=allow, plain_http=plain_http)

    return of


def _check_transform(
    definition: SourceDefinition, transform: SourceTransform, dataset: Dataset | None
) -> None:
    """Raises InvalidSource, InvalidDataset."""
    if definition.merge_schema:
        raise refused_source("/merge_schema", "the columns are those of transform.sql: leave it out")
    bound = bind_transform(transform)
    if dataset is not None:
        bound.check(dataset.definition, definition.operation_on(dataset.definition))
    elif definition.create is not None:
        define_dataset(definition.create.named(definition.dataset, schema_of(bound.types)))


def _ending_partitions(definition: SourceDefinition, dataset: Dataset | None) -> SourceDefinition:
    """The definition of a source that ends partitions, as of the present version. Raises InvalidSource."""
    if definition.mode is not SourceMode.ONCE:
        raise refused_source(
            "/partition_done", "a source of mode continuous has no end: use mode once, or leave it out"
        )
    if dataset is None:
        raise refused_source(
            "/partition_done", "the dataset needs services.partition_done: register it first"
        )
    for _, detail in partition_done_faults(dataset.definition):
        raise refused_source("/partition_done", detail)
    return msgspec.structs.replace(definition, ends_partitions_since=dataset.version)

"""Reads the timeline: entries of the catalogue first, then those of the archives, in one order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from app.core.catalog.service import GrantedDatasets
from app.core.catalog.values import Dataset
from app.core.timeline.files import TimelineFileStore
from app.core.timeline.instants import EVERY_INSTANT, InstantFilter, InstantRecord
from app.core.timeline.repository.archives import TimelineArchiveStore
from app.core.timeline.repository.timeline import TimelineStore, instant_tokens
from app.kernel.paging import Page

# The most archives that one page reads. A page that they do not fill ends there, with a token for the rest.
ARCHIVES_MAX: Final = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadTimeline:
    """Pages of a dataset's timeline."""

    timeline: TimelineStore
    archives: TimelineArchiveStore
    files: TimelineFileStore

    def shown(
        self,
        granted_datasets: GrantedDatasets,
        dataset: Dataset,
        instant_filter: InstantFilter,
        *,
        page_size: int,
        page_token: str | None,
    ) -> Page:
        """`page`, as the principal may see it: why a refresh failed may quote rows of the view's inputs.

        Which inputs it has is not shown either.
        """
        page = self.page(dataset, page_size=page_size, page_token=page_token, instant_filter=instant_filter)
        if not dataset.is_view or granted_datasets.sees_inputs(dataset.id):
            return page
        return page.mapped(_without_values)

    def page(
        self,
        dataset: Dataset,
        *,
        page_size: int,
        page_token: str | None,
        instant_filter: InstantFilter = EVERY_INSTANT,
    ) -> Page:
        """InstantRecord items, latest request first; fewer than `page_size` where many archives have no matching ones.

        Raises InvalidRequest for a token that is not valid, CorruptFile.
        """
        tokens = instant_tokens(dataset.id, instant_filter)
        before = None if page_token is None else tokens.position(page_token)
        # The catalogue first: entries that are archived meanwhile are then found in both, and listed once.
        page = self.timeline.instants(
            dataset.tenant_id,
            dataset.id,
            page_size=page_size,
            page_token=page_token,
            instant_filter=instant_filter,
        )
        archives = self.archives.before(dataset.tenant_id, dataset.id, before, ARCHIVES_MAX + 1)
        records: dict[str, InstantRecord] = {record.id: record for record in page.items}
        following = page_size if page.next_token is None else page_size - 1
        for number, archive in enumerate(archives):
            latest = sorted(records, reverse=True)
            if len(latest) > following and latest[following] > archive.last_instant:
                break
            if number == ARCHIVES_MAX:
                # All later entries have been read.
                items = [records[each] for each in latest if each > archive.last_instant][:page_size]
                return Page(items=items, next_token=tokens.encode(_just_after(archive.last_instant)))
            for record in self.files.read(archive, before, instant_filter, page_size + 1):
                records.setdefault(record.id, record)
        latest = sorted(records, reverse=True)
        more = len(latest) > page_size or page.next_token is not None
        return Page(
            items=[records[each] for each in latest[:page_size]],
            next_token=tokens.encode(latest[page_size - 1]) if more else None,
        )


def _without_values(record: InstantRecord) -> InstantRecord:
    parameters = {name: value for name, value in record.parameters.items() if name != "inputs"}
    return replace(record, error=record.error and record.error.without_values(), parameters=parameters)


def _just_after(instant: str) -> str:
    """A position after an instant's id, and before those of all later ones."""
    return f"{instant}~"

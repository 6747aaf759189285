"""Finds and lists the objects of the table that a key is for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hmac import compare_digest
from typing import Final

from app.access.errors import NotFound, scope_missing
from app.access.tenants.values import ActorKind, KeyScope, Principal
from app.core.catalog.values import Dataset
from app.features.objects.errors import KeyRefusal, TableKeyRefused
from app.features.objects.ports import ObjectContent, ObjectTree, ServedTable
from app.features.objects.service.keys import TableKey
from app.features.objects.values import (
    ListedObject,
    ObjectEntry,
    ObjectPage,
    object_address,
    table_prefix,
)
from app.kernel.sql.conditions.row_access import EVERYTHING, access_digest

# Of a page: each may be a query. A page that ends before it is full is followed by others.
_READS_MAX: Final = 50
# After every text with the same beginning.
_LAST: Final = "\U0010ffff"


@dataclass(frozen=True, kw_only=True, slots=True)
class TableObjects:
    """The objects of tables. `trees`: by the first segment of a path below a table."""

    trees: Mapping[str, ObjectTree]

    def check_key(self, key: TableKey, principal: Principal, dataset: Dataset) -> ServedTable:
        """The table of a key, as the principal sees it now. Raises Forbidden, TableKeyRefused if that has changed since
        the key was made.

        A token is not stored, so what it may do is not known any more: it saw the whole dataset, which must have the
        name with which the key was made.
        """
        name = dataset.definition.name
        access = EVERYTHING
        if key.kind is ActorKind.TOKEN:
            if not key.names(dataset):
                raise TableKeyRefused(
                    KeyRefusal.DENIED, "the dataset was renamed since the key was made: get another key"
                )
        elif KeyScope.READ in principal.scopes_on(name):
            access = principal.access(name)
        elif key.kind is ActorKind.RECIPIENT:
            raise TableKeyRefused(KeyRefusal.DENIED, "the share has the table no longer for this recipient")
        else:
            raise scope_missing(KeyScope.READ.value)
        if not compare_digest(key.access, access_digest(access)):
            raise TableKeyRefused(
                KeyRefusal.DENIED,
                "the rows or columns that are granted have changed since the key was made: get another key",
            )
        return ServedTable(dataset=dataset, variant=key.variant, access=access)

    def find(self, table: ServedTable, object_key: bytes) -> ObjectContent:
        """The object with a key, decoded. Raises TableKeyRefused for one of another table, NotFound."""
        address = object_address(object_key)
        if address is None:
            raise _no_object()
        _check_table(table, f"{address.dataset_id}/{address.variant}/")
        tree = self.trees.get(address.segment)
        if tree is None:
            raise _no_object()
        return tree.find(table, address.path)

    def page(
        self, table: ServedTable, *, prefix: str, delimiter: str, after: str, keys_max: int
    ) -> ObjectPage:
        """The first objects after `after` whose keys begin with `prefix`; those that have the delimiter behind it as
        one common prefix for each text up to the delimiter.

        Raises TableKeyRefused for a prefix that other tables have, too.
        """
        _check_table(table, prefix if prefix.endswith("/") else f"{prefix}/")
        page = ObjectPage(objects=[], common_prefixes=[], next_after=None)
        if keys_max:
            listing = _Listing(self.trees, table, prefix)
            page = _filled(page, listing, prefix, delimiter, after, keys_max)
        return page


class _Listing:
    """The objects of a table by key, those of all trees after each other."""

    def __init__(self, trees: Mapping[str, ObjectTree], table: ServedTable, prefix: str) -> None:
        self._table = table
        self._prefix = prefix
        base = table_prefix(table.dataset.id, table.variant)
        self._trees = [(f"{base}{segment}/", trees[segment]) for segment in sorted(trees)]

    def read(self, after: str, limit: int) -> list[ListedObject]:
        """The first objects after a key, from the first tree that has some."""
        for base, tree in self._trees:
            entries = self._of_tree(base, tree, after, limit)
            if entries:
                return [
                    ListedObject(key=base + each.path, size_bytes=each.size_bytes, etag=each.etag)
                    for each in entries
                ]
        return []

    def _of_tree(self, base: str, tree: ObjectTree, after: str, limit: int) -> list[ObjectEntry]:
        if not (base.startswith(self._prefix) or self._prefix.startswith(base)):
            return []
        if not after.startswith(base) and after.encode() > base.encode():
            return []
        path_prefix = self._prefix[len(base) :]
        path_after = after[len(base) :] if after.startswith(base) else ""
        return list(tree.listing(self._table, path_prefix, path_after, limit))


def _filled(
    page: ObjectPage, listing: _Listing, prefix: str, delimiter: str, after: str, keys_max: int
) -> ObjectPage:
    objects, prefixes = page.objects, page.common_prefixes
    for _ in range(_READS_MAX):
        # One more, which shows whether there is a next page.
        entries = listing.read(after, keys_max - len(objects) - len(prefixes) + 1)
        if not entries:
            return page
        for entry in _from_groups(entries, prefix, delimiter):
            if len(objects) + len(prefixes) == keys_max:
                return ObjectPage(objects=objects, common_prefixes=prefixes, next_after=after)
            if isinstance(entry, str):
                prefixes.append(entry)
                after = entry + _LAST
            else:
                objects.append(entry)
                after = entry.key
    return ObjectPage(objects=objects, common_prefixes=prefixes, next_after=after)


def _from_groups(entries: list[ListedObject], prefix: str, delimiter: str) -> Iterator[ListedObject | str]:
    """The objects, and the common prefix of those that have the delimiter, once."""
    group = ""
    for entry in entries:
        if group and entry.key.startswith(group):
            continue
        rest, end, _ = entry.key[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
        group = f"{prefix}{rest}{end}" if end else ""
        yield group or entry


def _check_table(table: ServedTable, text: str) -> None:
    if not text.startswith(table_prefix(table.dataset.id, table.variant)):
        raise TableKeyRefused(KeyRefusal.DENIED, "the key is for another table: get a key with each table")


def _no_object() -> NotFound:
    return NotFound("the table has no such object")

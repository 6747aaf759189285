"""Finds and lists the objects of the table that a key is for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from app.access.errors import NotFound, scope_missing
from app.access.tenants.values import KeyScope, Principal, seen_in_part
from app.core.catalog.values import Dataset
from app.features.objects.errors import KeyRefusal, TableKeyRefused
from app.features.objects.ports import ObjectContent, ObjectTree
from app.features.objects.service.keys import TableKey
from app.features.objects.values import (
    ListedObject,
    ObjectEntry,
    ObjectPage,
    object_address,
    table_prefix,
)

# Of a page: each may be a query. A page that ends before it is full is followed by others.
_READS_MAX: Final = 50
# After every text with the same beginning.
_LAST: Final = "\U0010ffff"


@dataclass(frozen=True, kw_only=True, slots=True)
class TableObjects:
    """The objects of tables. `trees`: by the first segment of a path below a table."""

    trees: Mapping[str, ObjectTree]

    def check_key(self, key: TableKey, principal: Principal, dataset: Dataset) -> None:
        """Raises TableKeyRefused, Forbidden or RestrictedGrant unless the principal still sees the whole dataset.

        A token is not stored, so what it may do is not known any more: the dataset must have the name with which the
        key was made.
        """
        name = dataset.definition.name
        if key.of_token:
            if not key.names(dataset):
                raise TableKeyRefused(
                    KeyRefusal.DENIED, "the dataset was renamed since the key was made: get another key"
                )
        elif KeyScope.READ not in principal.scopes_on(name):
            raise scope_missing(KeyScope.READ.value)
        elif not principal.sees_whole(name):
            raise seen_in_part(name)

    def find(self, key: TableKey, dataset: Dataset, object_key: bytes) -> ObjectContent:
        """The object with a key, decoded. Raises TableKeyRefused for one of another table, NotFound."""
        address = object_address(object_key)
        if address is None:
            raise _no_object()
        _check_table(key, f"{address.dataset_id}/{address.variant}/")
        tree = self.trees.get(address.segment)
        if tree is None:
            raise _no_object()
        return tree.find(dataset, key.variant, address.path)

    def page(
        self, key: TableKey, dataset: Dataset, *, prefix: str, delimiter: str, after: str, keys_max: int
    ) -> ObjectPage:
        """The first objects after `after` whose keys begin with `prefix`; those that have the delimiter behind it as
        one common prefix for each text up to the delimiter.

        Raises TableKeyRefused for a prefix that other tables have, too.
        """
        _check_table(key, prefix if prefix.endswith("/") else f"{prefix}/")
        page = ObjectPage(objects=[], common_prefixes=[], next_after=None)
        if keys_max:
            listing = _Listing(self.trees, dataset, key.variant, prefix)
            page = _filled(page, listing, prefix, delimiter, after, keys_max)
        return page


class _Listing:
    """The objects of a table by key, those of all trees after each other."""

    def __init__(self, trees: Mapping[str, ObjectTree], dataset: Dataset, variant: str, prefix: str) -> None:
        self._dataset = dataset
        self._variant = variant
        self._prefix = prefix
        base = table_prefix(dataset.id, variant)
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
        return list(tree.listing(self._dataset, self._variant, path_prefix, path_after, limit))


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


def _check_table(key: TableKey, text: str) -> None:
    if not text.startswith(table_prefix(key.dataset_id, key.variant)):
        raise TableKeyRefused(KeyRefusal.DENIED, "the key is for another table: get a key with each table")


def _no_object() -> NotFound:
    return NotFound("the table has no such object")

"""Readers that see a part of a dataset: API keys with a random filter and mask, and recipients of a share."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

import httpx2

from tests.open.datasets import Json, OpenDataset, answered
from tests.open.engines import Address

_CONDITIONS: Final = (
    "id < 2", "id IN (0, 3)", "id IS NOT NULL AND p = 'a'", "p = 'b'", "p != 'a' OR n > 0", "n IS NULL OR n >= 1",
    "name = 'x'", "name IS NULL", "name >= 'u'", "seen > 2", "NOT (far = 1)", "gone = FALSE OR gone IS NULL",
    "day = DATE '2026-01-01'", "id > 100",
)  # fmt: skip
_COLUMNS: Final = (
    "p",
    "id",
    "ts",
    "meta",
    "seen",
    "far",
    "name",
    "n",
    "total",
    "tags",
    "marks",
    "gone",
    "day",
)
_numbers = count(1)


@dataclass(frozen=True, kw_only=True)
class Restriction:
    """A filter, and the columns that are masked."""

    where: str | None = None
    mask: tuple[str, ...] = ()

    def grant(self, dataset: str) -> Json:
        """The members that registrations of keys and recipients have in common, and the dataset."""
        filtered = {} if self.where is None else {"where": self.where}
        return {"dataset": dataset, **filtered, **({"mask": list(self.mask)} if self.mask else {})}


def restriction(dice: random.Random, columns: Sequence[str]) -> Restriction:
    """A random one. `columns`: those of the dataset beside the columns of the laws."""
    where = dice.choice(_CONDITIONS) if dice.random() < 0.75 else None
    masked = dice.sample([*_COLUMNS, *columns], dice.choice((0, 1, 1, 2, 4)))
    if where is None and not masked:
        masked = [dice.choice(_COLUMNS)]
    return Restriction(where=where, mask=tuple(masked))


@dataclass(kw_only=True)
class NarrowDataset(OpenDataset):
    """A dataset as a key sees it."""

    seen: Restriction
    key_id: str

    @classmethod
    def of(cls, dataset: OpenDataset, seen: Restriction) -> NarrowDataset:
        """A new key with the restriction."""
        grant = seen.grant(dataset.name)
        grants = [{"datasets": grant.pop("dataset"), "scopes": ["read"], **grant}]
        new = {"name": f"narrow {next(_numbers)}", "scopes": ["read"], "grants": grants}
        made = answered(dataset.client.post("/keys", json=new), 201).json()
        service = dataset.tenant.service
        tenant = replace(dataset.tenant, api_key=made["api_key"], client=service.client(made["api_key"]))
        return cls(
            tenant=tenant,
            name=dataset.name,
            path=dataset.path,
            registration=dataset.registration,
            seen=seen,
            key_id=made["id"],
        )

    def refuses(self, version: int) -> bool:
        """Whether the grant does not fit the schema of a version, so that nothing of it is shown."""
        answer = self.client.get(f"{self.path}/rows", params={"version": version, "limit": 1})
        return answer.status_code == 403


@dataclass(kw_only=True)
class SharedDataset(NarrowDataset):
    """A dataset as a recipient sees it, whose rows are those of a key with the same restriction."""

    profile: Json
    table: str
    recipient: str
    """The path of the recipient."""

    @classmethod
    def with_recipient(cls, dataset: OpenDataset, seen: Restriction | None = None) -> SharedDataset:
        """A new share of the dataset, with one recipient."""
        number = next(_numbers)
        share, alias = f"share{number}", f"table_{number}"
        shared = {"name": share, "datasets": [{"name": dataset.name, "as": alias}]}
        answered(dataset.client.post("/shares", json=shared), 201)
        new = {"name": f"recipient {number}"} | (
            {} if seen is None else {"grants": [seen.grant(dataset.name)]}
        )
        made = answered(dataset.client.post(f"/shares/{share}/recipients", json=new), 201).json()
        key = dataset if seen is None else NarrowDataset.of(dataset, seen)
        return cls(
            tenant=key.tenant,
            name=dataset.name,
            path=dataset.path,
            registration=dataset.registration,
            seen=seen or Restriction(),
            key_id=key.key_id if isinstance(key, NarrowDataset) else "",
            profile=made["profile"],
            table=f"{share}.default.{alias}",
            recipient=f"/shares/{share}/recipients/{made['id']}",
        )

    @property
    def address(self) -> Address:
        url = self.profile["endpoint"].removesuffix("/").removesuffix("/delta-sharing")
        return Address(url=url, api_key=self.profile["bearerToken"], table=self.table)

    def bearer(self) -> httpx2.Client:
        """A client of the protocol with the token of the recipient."""
        return httpx2.Client(
            base_url=self.profile["endpoint"],
            headers={"Authorization": f"Bearer {self.profile['bearerToken']}"},
            trust_env=False,
            timeout=60,
        )

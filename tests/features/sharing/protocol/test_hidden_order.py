"""What readers see of a table with a masked partition is in an order that does not depend on the hidden values."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from itertools import chain
from typing import Any

import httpx2
import msgspec
import pytest
from sqlalchemy import text

from app.access.tenants.values import Grant, KeyScope
from tests.features.sharing.protocol.conftest import Reader, World, rows_of, table_of

COUNT = 12
MASK = {"mask": ("region",)}
NAMES = ("ascending", "descending")


@pytest.fixture
def worlds(world: World) -> World:
    """Two datasets that differ in the values of the masked column only, whose order is that of `id`, or its reverse."""
    for name, step in zip(NAMES, (1, -1), strict=True):
        world.dataset(
            {
                "name": name,
                "schema": {
                    "fields": [
                        {"name": "id", "type": "int64"},
                        {"name": "region", "type": "string"},
                        {"name": "tags", "type": "list<string>"},
                    ]
                },
                "record_key": ["id", "region"],
                "partition_by": ["region"],
            }
        )
        values = [f"r{at:02d}" for at in range(COUNT)][::step]
        rows = [{"id": at, "region": value, "tags": [str(at)]} for at, value in enumerate(values)]
        world.write(name, *rows)
    return world


def test_files_and_changes_come_in_an_order_of_what_is_shown(worlds: World) -> None:
    share = worlds.share(*NAMES)
    with worlds.reader(share, dict.fromkeys(NAMES, MASK)) as reader:
        files = [[line["file"] for line in reader.query(name)[2:]] for name in NAMES]
        shown = [[[row["id"] for row in rows_of(file)] for file in each] for each in files]
        assert shown[0] == shown[1]
        assert sorted(shown[0]) == [[at] for at in range(COUNT)] != shown[0]
        assert [each["id"] for each in files[0]] == [each["id"] for each in files[1]]
        changes = [ids_of_changes(reader, name) for name in NAMES]
        assert changes[0] == changes[1]
        assert sorted(changes[0]) == list(range(COUNT)) != changes[0]
        limited = reader.query(NAMES[0], limitHint=3)[2:]
        assert len(limited) == 3
    with worlds.reader(share, name="whole") as whole:
        assert ids_of_changes(whole, NAMES[0]) == list(range(COUNT))


def test_query_of_few_rows_renders_few_files(worlds: World) -> None:
    share = worlds.share(NAMES[0])
    with worlds.reader(share, {NAMES[0]: MASK}) as reader:
        assert len(reader.query(NAMES[0], limitHint=1)[2:]) == 1
        assert file_count(worlds) == 4
        assert len(reader.query(NAMES[0], limitHint=COUNT)[2:]) == COUNT
        assert file_count(worlds) == COUNT


def file_count(world: World) -> int:
    """How many files of the tenant are rendered."""
    with world.service.database.tenant(world.tenant_id) as connection:
        return int(connection.execute(text("SELECT count(*) FROM rendered_files")).scalar_one())


def ids_of_changes(reader: Reader, name: str) -> list[int]:
    [file] = [line["cdf"] for line in reader.changes(name, startingVersion=1)[2:]]
    ids: list[int] = table_of(file).column("id").to_pylist()
    return ids


@pytest.fixture
def limited(worlds: World) -> Iterator[httpx2.Client]:
    grants = [Grant(datasets=name, scopes=(KeyScope.READ,), mask=("region",)) for name in NAMES]
    key = worlds.service.tenants.make_key(worlds.tenant_id, {KeyScope.READ}, grants=grants)
    with worlds.service.client(key.api_key) as client:
        yield client


def test_pages_of_rows_come_in_no_order_of_hidden_values(limited: httpx2.Client) -> None:
    for name in NAMES:
        first = pages(limited, name, limit=COUNT)[0]
        assert sorted(first) == list(range(COUNT))
        assert first not in (list(range(COUNT)), list(range(COUNT))[::-1])
        assert [*chain.from_iterable(pages(limited, name, limit=1))] == first
        assert [*chain.from_iterable(pages(limited, name, limit=5))] == first


def test_tokens_and_parts_show_nothing_of_hidden_rows(limited: httpx2.Client, worlds: World) -> None:
    path = f"/datasets/{NAMES[0]}"
    tokens = []
    token = limited.get(f"{path}/rows", params={"limit": 1}).json()["next_page_token"]
    while token is not None:
        tokens.append(token)
        token = limited.get(f"{path}/rows", params={"limit": 1, "page_token": token}).json()[
            "next_page_token"
        ]
    assert len(tokens) == COUNT - 1
    assert len({len(each) for each in tokens}) == 1
    for token in tokens:
        position, _ = msgspec.msgpack.decode(decoded(token))
        assert {name for name, value in msgspec.json.decode(position).items() if value} == {
            "version",
            "seal",
        }
        assert b"region" not in decoded(msgspec.json.decode(position)["seal"])
    # Neither a token of another dataset, nor one of a reader that sees all.
    other = limited.get(f"/datasets/{NAMES[1]}/rows", params={"limit": 1, "page_token": tokens[0]})
    whole = worlds.client.get(f"{path}/rows", params={"limit": 1}).json()["next_page_token"]
    foreign = limited.get(f"{path}/rows", params={"limit": 1, "page_token": whole})
    changed = limited.get(f"{path}/rows", params={"limit": 1, "page_token": tokens[0][:-9] + "A" * 9})
    assert [each.status_code for each in (other, foreign, changed)] == [400] * 3


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def pages(client: httpx2.Client, name: str, limit: int) -> list[list[int]]:
    found: list[list[int]] = []
    parameters: dict[str, Any] = {"limit": limit}
    while True:
        answer = client.get(f"/datasets/{name}/rows", params=parameters)
        assert answer.status_code == 200, answer.text
        found.append([row["id"] for row in answer.json()["rows"]])
        if answer.json()["next_page_token"] is None:
            return found
        parameters["page_token"] = answer.json()["next_page_token"]

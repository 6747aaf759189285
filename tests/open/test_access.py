"""Keys of tables open only their table, as long as their credential stands; hostile requests get clear refusals."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final

import httpx2
import pytest

from tests.open.datasets import OpenDataset, Tenant, answered
from tests.open.engines import Address
from tests.open.facade import VendedTable, path_of
from tests.support.service import Service
from tests.support.waiting import until

_FEW: Final = {"fields": [{"name": "id", "type": "int64"}, {"name": "note", "type": "string"}]}
# The standing of a credential is looked up again after two seconds.
_STANDING_SECONDS_MAX: Final = 30


@pytest.fixture(scope="module")
def own(service: Service) -> Iterator[Tenant]:
    """A tenant of this module."""
    found = Tenant.new(service)
    yield found
    found.client.close()


@pytest.fixture(scope="module")
def notes(own: Tenant) -> OpenDataset:
    dataset = own.dataset("notes", schema=_FEW, record_key=["id"])
    dataset.upsert(*({"id": number, "note": f"note {number}"} for number in range(50)))
    dataset.delete({"id": 7})
    return dataset


@pytest.fixture(scope="module")
def loaded(own: Tenant, notes: OpenDataset) -> VendedTable:
    return VendedTable.loaded(own.client, notes.address)


@pytest.fixture(scope="module")
def data_file(loaded: VendedTable) -> str:
    """The location of a data file."""
    return next(_data_files(loaded))


def _data_files(table: VendedTable) -> Iterator[str]:
    for entry in table.entries(table.snapshots()[-1]):
        if entry["data_file"]["content"] == 0:
            yield entry["data_file"]["file_path"]


def _code(answer: httpx2.Response) -> tuple[int, str]:
    """The status, and the code of an error in S3's form."""
    return answer.status_code, answer.text.partition("<Code>")[2].partition("</Code>")[0]


def test_key_opens_all_objects_of_its_table(loaded: VendedTable, data_file: str) -> None:
    listing = {*loaded.listing(), *loaded.objects()}
    assert data_file in set(loaded.listing())
    assert all(place.startswith(loaded.location + "/") for place in listing)
    for place in listing:
        head, content = loaded.object(place, method="HEAD"), loaded.content(place)
        assert int(answered(head).headers["content-length"]) == len(content)
        assert not head.content


@pytest.mark.parametrize(
    ("start", "end"), [(0, 3), (0, 0), (4, 11), (None, 8), (None, 10**9), (5, None), (0, 10**12)]
)
def test_range_is_that_part_of_the_object(
    loaded: VendedTable, data_file: str, start: int | None, end: int | None
) -> None:
    whole = loaded.content(data_file)
    text = f"bytes={'' if start is None else start}-{'' if end is None else end}"
    answer = loaded.object(data_file, headers={"Range": text})
    first = max(0, len(whole) - (end or 0)) if start is None else start
    last = len(whole) - 1 if start is None or end is None else min(end, len(whole) - 1)
    if first == 0 and last == len(whole) - 1 and answer.status_code == 200:
        assert answer.content == whole
        return
    assert answered(answer, 206).content == whole[first : last + 1]
    assert answer.headers["content-range"] == f"bytes {first}-{last}/{len(whole)}"


@pytest.mark.parametrize("text", ["bytes=1000000000-", "bytes=-0"])
def test_range_behind_the_end_is_refused(loaded: VendedTable, data_file: str, text: str) -> None:
    assert loaded.object(data_file, headers={"Range": text}).status_code == 416


def test_key_of_another_table_opens_nothing(own: Tenant, loaded: VendedTable, data_file: str) -> None:
    own.dataset("others", schema=_FEW)
    other = VendedTable.loaded(own.client, Address(url=own.service.url, api_key=own.api_key, table="others"))
    assert _code(other.object(data_file)) == (403, "AccessDenied")
    assert _code(other.object(data_file.replace("/v3/", "/v2/")))[0] == 403


def test_key_of_one_warehouse_opens_nothing_of_the_other(loaded: VendedTable, data_file: str) -> None:
    assert _code(loaded.object(data_file.replace("/v3/", "/v2/")))[0] == 403


def _changes(config: dict[str, str]) -> Iterator[dict[str, str]]:
    """Keys that differ in a character, or lack something."""
    dice = random.Random(1)
    for name in ("access-key-id", "secret-access-key"):
        text = config[f"s3.{name}"]
        for _ in range(10):
            place = dice.randrange(2, len(text))
            other = dice.choice([each for each in "ABCxyz019" if each != text[place]])
            yield {name.replace("-", "_"): text[:place] + other + text[place + 1 :]}
    yield {"access_key_id": "AKIAIOSFODNN7EXAMPLE"}
    yield {"access_key_id": config["s3.access-key-id"] * 40}
    yield {"secret_access_key": "x"}


def test_changed_keys_open_nothing(loaded: VendedTable, data_file: str) -> None:
    for change in _changes(loaded.config):
        status, code = _code(loaded.object(data_file, **change))
        assert status == 403, change
        assert code in ("InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied", "ExpiredToken"), change


def test_request_without_a_signature_is_refused(loaded: VendedTable, data_file: str) -> None:
    url = loaded.config["s3.endpoint"] + data_file.removeprefix("s3://")
    with httpx2.Client(trust_env=False) as client:
        assert client.get(url).status_code in (401, 403)
        bearer = {"Authorization": f"Bearer {loaded.address.api_key}"}
        assert client.get(url, headers=bearer).status_code in (400, 401, 403)


def test_hostile_paths_open_nothing(own: Tenant, loaded: VendedTable, data_file: str) -> None:
    base = loaded.location.removeprefix("s3://")
    name = data_file.removeprefix(loaded.location + "/")
    paths = [
        f"{base}/../{base.split('/', 1)[1]}/{name}",
        f"{base}/data/%2e%2e/{name}",
        f"{base}/data/..%2f..%2f..%2fetc%2fpasswd",
        f"{base}//{name}",
        f"{base}/{name}/",
        f"{base}/{name}%00",
        f"{base}/data/0/%ff%fe",
        f"{base}/data/{'a' * 5_000}",
        f"{base}/metadata/snap-1-0000.avro",
        f"{base}/metadata/v99999999999999999999-0.metadata.json",
        f"{base}/metadata/m-1-x.avro",
        f"{base}/deletes/2/{'x' * 300}.puffin",
        f"{base}/changes/0/{name}",
        f"{base.rsplit('/', 1)[0]}/v9/{name}",
        base.split("/", 1)[0] + "/?list-type=2",
        base.split("/", 1)[0] + "/?list-type=2&prefix=",
    ]
    for path in paths:
        answer = loaded.signed(path)
        assert answer.status_code in (400, 403, 404), (path, answer.status_code, answer.text[:200])
        assert b"PAR1" not in answer.content


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_nothing_is_written(loaded: VendedTable, data_file: str, method: str) -> None:
    assert loaded.object(data_file, method=method).status_code in (403, 405)
    assert loaded.content(data_file)


def _revoked(service: Service, own: Tenant, table: str) -> tuple[VendedTable, Callable[[], None]]:
    """A table that was loaded with a key of its own, and what revokes the key."""
    made = answered(own.client.post("/keys", json={"name": "r", "scopes": ["read"]}), 201).json()
    address = Address(url=service.url, api_key=made["api_key"], table=table)
    client = service.client(made["api_key"])
    loaded = VendedTable.loaded(client, address)

    def revoke() -> None:
        answered(own.client.delete(f"/keys/{made['id']}"), 204)

    return loaded, revoke


def test_revoked_key_opens_nothing_more(service: Service, own: Tenant, notes: OpenDataset) -> None:
    loaded, revoke = _revoked(service, own, notes.name)
    place = next(_data_files(loaded))
    assert loaded.object(place).status_code == 200
    revoke()
    until(
        lambda: loaded.object(place).status_code in (401, 403), "refusal", seconds_max=_STANDING_SECONDS_MAX
    )
    assert loaded.client.get(path_of(notes.name)).status_code == 401


def test_dataset_that_was_deleted_is_gone(service: Service, own: Tenant) -> None:
    dataset = own.dataset("gone", schema=_FEW)
    dataset.succeed("writes", operation="insert", source={"kind": "rows", "rows": [{"id": 1}]})
    loaded = VendedTable.loaded(own.client, dataset.address)
    place = next(_data_files(loaded))
    answered(own.client.delete(dataset.path), 204)
    until(lambda: loaded.object(place).status_code in (403, 404), "end", seconds_max=_STANDING_SECONDS_MAX)
    assert own.client.get(path_of("gone")).status_code == 404


def test_other_tenants_see_nothing(service: Service, notes: OpenDataset) -> None:
    other = Tenant.new(service)
    assert other.client.get(path_of(notes.name)).status_code == 404
    names = answered(other.client.get("/iceberg/v1/v3/namespaces/headwater/tables")).json()["identifiers"]
    assert names == []

"""Lists of Delta Sharing, and its errors."""

from __future__ import annotations

import httpx2
import pytest

from tests.features.sharing.protocol.conftest import ITEMS, TABLE, World


def test_recipient_lists_its_share_and_tables_in_pages(world: World) -> None:
    names = [f"t{number}" for number in range(5)]
    for name in names:
        world.dataset({**ITEMS, "name": name})
    share = world.share(*names)
    with world.reader(share) as reader:
        assert reader.get("/shares").json() == {"items": [{"name": "sales", "id": share.id}]}
        assert reader.get("/shares/SALES").json() == {"share": {"name": "sales", "id": share.id}}
        schemas = reader.get("/shares/sales/schemas").json()
        assert schemas == {"items": [{"name": "default", "share": "sales"}]}
        for path in ("/shares/sales/all-tables", "/shares/sales/schemas/Default/tables"):
            found, token = [], ""
            while True:
                page = reader.get(path, params={"maxResults": 2, "pageToken": token}).json()
                found += [item["name"] for item in page["items"]]
                assert all(
                    item["shareId"] == share.id and item["schema"] == "default" for item in page["items"]
                )
                token = page.get("nextPageToken", "")
                if not token:
                    break
            assert found == names


@pytest.mark.parametrize(
    "path",
    ["/shares", "/shares/sales/schemas", "/shares/sales/schemas/default/tables", "/shares/sales/all-tables"],
)
def test_parameters_of_pages_are_checked_in_every_list(world: World, path: str) -> None:
    world.dataset(ITEMS)
    with world.reader(world.share("items")) as reader:
        for parameters in (
            {"maxResults": "-1"},
            {"maxResults": "many"},
            {"maxResults": "1.5"},
            {"pageToken": "x"},
            {"pageToken": "a\0"},
        ):
            answer = reader.get(path, params=parameters)
            assert (answer.status_code, answer.json()["errorCode"]) == (400, "INVALID_PARAMETER_VALUE"), (
                parameters
            )
            assert next(iter(parameters)) in answer.json()["message"]
        assert reader.get(path, params={"maxResults": 0}).json() == {"items": []}
        assert len(reader.get(path, params={"maxResults": 1, "pageToken": ""}).json()["items"]) == 1


def test_recipient_whose_grant_no_longer_fits_gets_one_answer(world: World) -> None:
    world.dataset(ITEMS)
    world.dataset({**ITEMS, "name": "others"})
    world.write("items", {"id": 1, "region": "EU"})
    share = world.share("items", "others")
    grants = {"items": {"mask": ("price",)}, "others": {}}
    with world.reader(share, grants) as reader:
        world.change("items", cascade=True, kind="drop", name="price")
        refused = [
            reader.get(f"{TABLE.format('items')}/version"),
            reader.get(
                f"{TABLE.format('items')}/version", params={"startingTimestamp": "2020-01-01T00:00:00Z"}
            ),
            reader.get(f"{TABLE.format('items')}/metadata"),
            reader.get(f"{TABLE.format('items')}/changes", params={"startingVersion": 1}),
            reader.client.post(f"/delta-sharing{TABLE.format('items')}/query", json={}),
        ]
        assert [each.status_code for each in refused] == [403] * 5
        assert len({each.json()["message"] for each in refused}) == 1
        listed = reader.get("/shares/sales/all-tables").json()["items"]
        assert [each["name"] for each in listed] == ["others"]
        assert reader.get(f"{TABLE.format('others')}/version").status_code == 200


def test_errors_have_the_form_of_the_protocol(world: World) -> None:
    world.dataset(ITEMS)
    share = world.share("items")
    with world.reader(share) as reader:
        for path in (
            "/shares/other",
            "/shares/sales/schemas/other/tables",
            TABLE.format("other") + "/version",
            TABLE.format("items").replace("default", "other") + "/metadata",
            "/nothing",
        ):
            answer = reader.get(path)
            assert (answer.status_code, answer.json()["errorCode"]) == (404, "RESOURCE_DOES_NOT_EXIST"), path
            assert set(answer.json()) == {"errorCode", "message"}
        invalid = reader.get("/shares/sales/all-tables", params={"pageToken": "x"})
        assert (invalid.status_code, invalid.json()["errorCode"]) == (400, "INVALID_PARAMETER_VALUE")
        headers = {"delta-sharing-capabilities": "responseformat=iceberg"}
        refused = reader.get(TABLE.format("items") + "/metadata", headers=headers)
        assert (refused.status_code, refused.json()["errorCode"]) == (400, "INVALID_PARAMETER_VALUE")
    with world.service.client("hw_none") as client:
        answer = client.get("/delta-sharing/shares")
        assert (answer.status_code, answer.json()["errorCode"]) == (401, "UNAUTHENTICATED")


def test_api_keys_are_no_credentials_of_the_protocol(world: World) -> None:
    assert world.client.get("/delta-sharing/shares").json()["errorCode"] == "UNAUTHENTICATED"


def test_recipient_sees_only_the_datasets_of_its_grants(world: World) -> None:
    world.dataset(ITEMS)
    world.dataset({**ITEMS, "name": "others"})
    share = world.share("items", "others")
    with world.reader(share, {"items": {}}) as reader:
        tables = reader.get("/shares/sales/all-tables").json()["items"]
        assert [table["name"] for table in tables] == ["items"]
        assert reader.get(TABLE.format("others") + "/version").status_code == 404


def test_profile_of_a_recipient_is_all_that_a_client_needs(world: World) -> None:
    world.dataset({**ITEMS, "name": "odd.name"})
    body = {"name": "sales", "datasets": [{"name": "odd.name", "as": "items"}]}
    assert world.client.post("/shares", json=body).status_code == 201
    made = world.client.post("/shares/sales/recipients", json={"name": "acme"})
    assert made.status_code == 201, made.text
    profile = made.json()["profile"]
    headers = {"Authorization": f"Bearer {profile['bearerToken']}"}
    with httpx2.Client(trust_env=False, headers=headers, timeout=30) as client:
        tables = client.get(f"{profile['endpoint']}/shares/sales/all-tables").json()["items"]
        assert [(table["schema"], table["name"]) for table in tables] == [("default", "items")]
        assert client.get(f"{profile['endpoint']}{TABLE.format('items')}/version").status_code == 200

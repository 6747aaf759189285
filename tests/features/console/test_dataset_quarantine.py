"""Bad records: what is wrong with each, repaired in place, written again alone or with all like it, discarded."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from app.features.console.page import ConsoleForm
from app.features.console.pages.history.quarantine import repair
from tests.support.pages import PageElement, checked_page, page, submit
from tests.support.service import Service

PATH = "/console/datasets/orders/quarantine"
HOSTILE = '<script>alert("x")</script>'
NDJSON = {"Content-Type": "application/x-ndjson"}


def send(client: httpx2.Client, service: Service, path: str, body: str, **headers: str) -> str:
    """Writes records, of which bad ones are quarantined. Returns the id of the job."""
    answer = client.post(
        f"{path}/writes", params={"on_error": "quarantine"}, content=body, headers={**NDJSON, **headers}
    )
    assert answer.status_code == 202, answer.text
    service.work()
    return str(answer.json()["id"])


def lines(*records: Any) -> str:
    return "".join(json.dumps(each) + "\n" for each in records)


@pytest.fixture
def bad(client: httpx2.Client, service: Service, orders: str) -> str:
    """The path of a dataset with two records that fail at `id`, one at `note` and one good row."""
    records = ({"id": "x", "note": HOSTILE}, {"id": 1, "note": "a"}, {"id": "y"}, {"id": 2, "note": [1]})
    send(client, service, orders, lines(*records))
    return orders


def records_of(root: PageElement) -> list[PageElement]:
    return root.all("section", class_="record")


def test_records_are_shown_beside_the_schema(bad: str, visitor: httpx2.Client) -> None:
    first = records_of(page(visitor, PATH))[0]
    rows = first.one("table").rows()[1:]
    assert rows[0][0] == "id int64"
    assert "expected" in rows[0][1]
    assert first.one("tr", class_="failing").one("input").attributes["value"] == '"x"'
    assert rows[1] == ["note string", json.dumps(HOSTILE)]


def test_a_record_is_repaired_in_place_and_written(
    bad: str, visitor: httpx2.Client, service: Service, client: httpx2.Client
) -> None:
    root = page(visitor, PATH)
    with service.working():
        done = submit(visitor, root, f"{PATH}/redrive", **{"value of id": "7"})
    assert done.status_code == 303, done.text
    after = page(visitor, PATH)
    assert after.one("p", class_="good", role="status").text == "1 written."
    assert len(records_of(after)) == 2
    assert {"id": 7, "note": HOSTILE} in client.get(f"{bad}/rows").json()["rows"]
    assert "Redriven" in after.text


def test_a_repair_that_is_wrong_again_comes_back(bad: str, visitor: httpx2.Client, service: Service) -> None:
    root = page(visitor, PATH)
    with service.working():
        submit(visitor, root, f"{PATH}/redrive", **{"value of id": "still wrong"})
    after = page(visitor, PATH)
    notice = after.one("p", role="alert")
    assert "bad" in notice.attributes["class"].split()
    assert "not done" in notice.text
    assert "0 written. 1 in quarantine again: id: expected int64" in notice.text
    assert len(records_of(after)) == 3
    assert not page(visitor, PATH).all("p", class_="notice")


def test_records_that_fail_alike_are_written_together(
    bad: str, visitor: httpx2.Client, service: Service, client: httpx2.Client
) -> None:
    send(client, service, bad, lines({"id": "z", "note": "of another write"}))
    root = page(visitor, PATH)
    groups = root.all("table")[0].rows()[1:]
    assert [(row[0], row[1]) for row in groups] == [("id", "3"), ("note", "1")]
    assert [row[2] for row in groups] == ["Redrive 3 at id as sent", "Redrive 1 at note as sent"]
    buttons = [each.text for each in root.all("button") if each.text.startswith("Redrive record")]
    assert len(buttons) == 4
    assert all(each.endswith("with this repair") for each in buttons)
    with service.working():
        assert submit(visitor, root, f"{PATH}/redrives").status_code == 303
    assert "3 in quarantine again" in page(visitor, PATH).one("p", class_="notice").text
    states = [each["state"] for each in client.get(f"{bad}/quarantine").json()["items"]]
    assert states.count("redriven") == 3
    redriven = page(visitor, PATH).all("table")[-1].rows()[1:]
    outcomes = sorted(row[2] for row in redriven)
    assert outcomes == [
        "job, put back as one of the records 0, 1 of that write",
        "job, put back as one of the records 0, 1 of that write",
        "job, put back as record 0 of that write",
    ]
    # The same form again: these records are taken.
    refused = submit(visitor, root, f"{PATH}/redrives")
    assert refused.status_code == 409
    assert "redriven" in checked_page(refused).all("div", class_="problem")[0].text


def test_a_form_names_a_limited_number_of_jobs(
    bad: str, visitor: httpx2.Client, client: httpx2.Client
) -> None:
    root = page(visitor, PATH)
    ids = " ".join(f"{uuid4()}/{uuid4()}" for _ in range(26))
    audited = len(client.get("/audit").json()["items"])
    refused = submit(visitor, root, f"{PATH}/redrives", ids=ids)
    assert refused.status_code == 400
    assert "at most 25 jobs" in checked_page(refused).all("div", class_="problem")[0].text
    assert len(client.get("/audit").json()["items"]) == audited


def test_a_form_sends_a_limited_number_of_requests(
    bad: str, visitor: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = page(visitor, PATH)
    monkeypatch.setattr("app.features.console.visit._CALLS_MAX", 3)
    ids = " ".join(f"{uuid4()}/{uuid4()}" for _ in range(4))
    refused = submit(visitor, root, f"{PATH}/redrives", ids=ids)
    assert refused.status_code == 400
    assert "at most 3 requests" in checked_page(refused).one("div", class_="problem").text


def test_records_of_csv_have_their_cells(
    client: httpx2.Client, service: Service, orders: str, visitor: httpx2.Client
) -> None:
    body = "id,note\nx,a\n"
    send(client, service, orders, body, **{"Content-Type": "text/csv"})
    root = page(visitor, PATH)
    [record] = records_of(root)
    failing, good = record.one("table").rows()[1:]
    assert failing[0] == "id int64"
    assert failing[1].startswith("xexpected int64")
    assert good == ["note string", "a"]
    with service.working():
        done = submit(visitor, root, f"{PATH}/redrive", payload="5,a")
    assert done.status_code == 303
    assert client.get(f"{orders}/rows").json()["rows"] == [{"id": 5, "note": "a"}]


def test_what_is_no_object_is_shown_as_text(
    client: httpx2.Client, service: Service, orders: str, visitor: httpx2.Client
) -> None:
    send(client, service, orders, '{"id": 1,\n[1, 2]\n"text"\n')
    for record in records_of(page(visitor, PATH)):
        assert record.one("details").attributes.get("open") == ""
        assert not record.all("table")
        faults = [each.text for each in record.all("p", class_="fault")]
        assert len(faults) == 1


def test_a_write_is_selected_and_discarded(
    bad: str, visitor: httpx2.Client, service: Service, client: httpx2.Client
) -> None:
    other = send(client, service, bad, lines({"id": "z"}))
    root = page(visitor, f"{PATH}?job={other}")
    assert len(records_of(root)) == 1
    assert submit(visitor, root, f"{PATH}/discard").status_code == 303
    assert client.get(f"{bad}/quarantine", params={"job": other}).json()["items"] == []
    assert len(records_of(page(visitor, PATH))) == 3
    assert submit(visitor, root, f"{PATH}/discard").status_code == 404


def test_long_records_do_not_make_the_page_large(
    client: httpx2.Client, service: Service, orders: str, visitor: httpx2.Client
) -> None:
    send(client, service, orders, lines(*({"id": "x", "note": HOSTILE * 200} for _ in range(30))))
    root = page(visitor, PATH)
    assert len(records_of(root)) == 25
    alone = page(visitor, records_of(root)[0].link("show it alone"))
    assert alone.one("textarea", name="payload").text == json.dumps({"id": "x", "note": HOSTILE * 200})
    assert len(records_of(page(visitor, root.link("Next page")))) == 5


def test_an_empty_quarantine_explains_itself(orders: str, visitor: httpx2.Client) -> None:
    empty = page(visitor, PATH).one("div", class_="empty").text
    assert "--on-error quarantine" in empty
    assert "Quarantine keeps records that a write could not use" in empty
    assert "No record here" in page(visitor, f"{PATH}?job=01a1fc66-ec58-712b-a89d-806d9bf2aa3c").text


def test_keys_without_the_right_see_no_forms(bad: str, restricted: Any) -> None:
    root = page(restricted({"datasets": "orders"}), PATH)
    assert len(records_of(root)) == 3
    assert not [each for each in root.all("button") if "Redrive" in each.text or "Discard" in each.text]
    part = page(restricted({"datasets": "orders", "where": "id = 1"}), PATH)
    assert "The quarantine cannot be shown" in part.text


@pytest.mark.parametrize(
    ("original", "fields", "payload"),
    [
        ('{"id": "x"}', {"value of id": '"x"'}, None),
        ('{"id": "x", "n": 1.10}', {"value of id": "7"}, '{"id": 7, "n": 1.10}'),
        ('{"id": "x"}', {"value of id": "yes, it is"}, '{"id": "yes, it is"}'),
        ('{"id": 1}', {"value of day": "2026-11-21"}, '{"id": 1, "day": "2026-11-21"}'),
        ('{"id": 1, "day": 3}', {"value of day": " "}, '{"id": 1}'),
        ('{"id": 1}', {"value of id": "2", "payload": '{"id": 3}'}, '{"id": 3}'),
        ('{"id": "x\\n"}', {"payload": '{"id": "x\\n"}'}, None),
    ],
)
def test_values_are_repaired_and_others_stay_as_they_were_sent(
    original: str, fields: dict[str, str], payload: str | None
) -> None:
    """Numbers keep their digits: other values are not read."""
    form = ConsoleForm(
        {name: (value,) for name, value in {"original": original, "payload": original, **fields}.items()}
    )
    assert repair(form) == payload

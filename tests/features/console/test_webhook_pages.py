"""Pages of webhooks: why one stands, its messages, and what forms do."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import httpx2

from app.features.console.pages.pipelines.webhooks import latencies
from tests.support.http import upsert
from tests.support.pages import PageElement, checked_page, page, submit
from tests.support.receiver import Receiver
from tests.support.service import Service
from tests.support.webhooks import Register, deliveries, make_due, state_of, work_until, write

HOSTILE = "<script>alert(\"x\")</script> & 'quotes'"


def figures(root: PageElement) -> dict[str, str]:
    return {each.one("dt").text: each.all("dd")[0].text for each in root.all("div", class_="figure")}


def messages(root: PageElement) -> list[list[str]]:
    return root.one("div", id="messages").one("table").rows()[1:]


def write_and_fail(client: httpx2.Client, service: Service, receiver: Receiver) -> None:
    """A write whose message is tried until the receiver has given its answers, and not again."""
    assert client.post("/datasets/orders/writes", json=upsert({"id": 1})).status_code == 202
    assert service.run_waiting_writes()
    # Not until nothing is due: on a busy machine the next attempt is due before that.
    while receiver.answers:
        assert service.run_followers()


def given_up(client: httpx2.Client, service: Service, receiver: Receiver, register: Register) -> str:
    """The id of a webhook that the service has paused, since its messages were given up."""
    webhook = register(batch_changes_max=1)
    receiver.answer(*[500] * 30, body=b"<b>no disk</b>")
    write(client, service, {"id": 1, "note": "a"}, {"id": 2, "note": "b"}, {"id": 3, "note": "c"})

    def paused() -> bool:
        make_due(client, service)
        return bool(state_of(client, webhook)["state"] == "paused")

    work_until(service, paused)
    receiver.answers.clear()
    return str(webhook["id"])


def test_a_webhook_that_is_paused_is_named_where_it_needs_attention(
    client: httpx2.Client, visitor: httpx2.Client, register: Register, receiver: Receiver, service: Service
) -> None:
    register(description="in order")
    path = f"/console/webhooks/{given_up(client, service, receiver, register)}"
    words = f"the webhook {urlsplit(receiver.url).netloc} is paused because deliveries failed"
    assert page(visitor, "/console").link(f"orders: {words}") == path
    assert page(visitor, "/console/datasets/orders").link(words) == path
    items = client.get("/webhooks", params={"state": "paused"}).json()["items"]
    assert [each["name"] for each in items] == [urlsplit(receiver.url).netloc]
    active = client.get("/webhooks", params={"state": "active"}).json()["items"]
    assert [each["name"] for each in active] == ["in order"]


def test_the_list_has_state_position_and_what_is_pending(
    client: httpx2.Client, visitor: httpx2.Client, register: Register, receiver: Receiver, service: Service
) -> None:
    register(description=HOSTILE)
    write(client, service, {"id": 1})
    root = page(visitor, "/console/webhooks")
    name, dataset, state, position, pending, failures, error = root.one("table").rows()[1]
    assert name == f"{HOSTILE}{receiver.url}"
    assert (dataset, state, position, pending, failures, error) == ("orders", "active", "1", "0", "0", "")
    assert page(visitor, "/console/webhooks?dataset=orders").one("table")
    assert page(visitor, "/console/webhooks?dataset=lost", status=404).one("div", role="alert")


def test_a_webhook_that_fails_has_the_same_state_on_every_page(
    client: httpx2.Client, visitor: httpx2.Client, receiver: Receiver, register: Register, service: Service
) -> None:
    webhook = register(description="billing")
    path = f"/console/webhooks/{webhook['id']}"
    receiver.answer(500)
    write_and_fail(client, service, receiver)

    def states() -> list[tuple[str, str]]:
        lineage = page(visitor, "/console/lineage?dataset=orders")
        note = lineage.one("g", class_="webhook").one("text", class_="note")
        [feeds] = [
            each for each in page(visitor, "/console/datasets/orders").all("li") if "billing" in each.text
        ]
        elements = [
            page(visitor, path).one("div", id="webhook").all("p")[0].all("span", class_="state")[0],
            page(visitor, "/console/webhooks").one("table").all("span", class_="state")[0],
            feeds.one("span", class_="state"),
            lineage.one("table").all("span", class_="state")[-1],
            note,
        ]
        return [(each.attributes["class"].split()[1], each.text) for each in elements]

    assert set(states()) == {("warning", "failing, 1 attempt")}
    assert receiver.url in page(visitor, path).one("main").all("p")[0].text
    submit(visitor, page(visitor, path), f"{path}/state")
    assert set(states()) == {("warning", "paused")}


def test_without_webhooks_the_list_leads_to_the_first(stranger: httpx2.Client) -> None:
    root = page(stranger, "/console/webhooks")
    assert "headwater webhooks create" in root.one("div", class_="empty").text
    assert root.one("form", action="/console/webhooks", method="post")


def test_the_form_registers_a_webhook_and_shows_its_secret_once(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, receiver: Receiver
) -> None:
    root = page(visitor, "/console/webhooks")
    fields = {
        "dataset": "orders",
        "url": receiver.url,
        "where": "id > 1",
        "columns": "id, note",
        "form": "upsert",
    }
    answer = submit(visitor, root, "/console/webhooks", **fields)
    assert answer.status_code == 200
    made = checked_page(answer)
    [webhook] = client.get("/webhooks").json()["items"]
    assert (webhook["where"], webhook["columns"], webhook["form"]) == ("id > 1", ["id", "note"], "upsert")
    secret = made.all("code")[0].text
    assert secret.startswith("whsec_")
    detail = page(visitor, made.link("To the webhook"))
    assert secret not in detail.text
    client.delete(f"/webhooks/{webhook['id']}")


def test_the_form_registers_alerts_of_all_datasets(
    client: httpx2.Client, visitor: httpx2.Client, receiver: Receiver
) -> None:
    root = page(visitor, "/console/webhooks")
    fields = {"dataset": "", "url": receiver.url, "events": "alerts", "form": "two_event"}
    answer = submit(visitor, root, "/console/webhooks", **fields)
    assert answer.status_code == 200, answer.text
    made = checked_page(answer)
    [webhook] = client.get("/webhooks").json()["items"]
    assert (webhook["dataset"], webhook["events"]) == (None, "alerts")
    assert page(visitor, "/console/webhooks").one("table").rows()[1][1] == "all alerts"
    detail = page(visitor, made.link("To the webhook"))
    assert (figures(detail)["Dataset"], figures(detail)["Sends"]) == ("all", "alerts")
    assert "The next alert that is fired makes one." in detail.text
    assert detail.all("select", name="form") == []
    client.delete(f"/webhooks/{webhook['id']}")
    refused = checked_page(submit(visitor, root, "/console/webhooks", **(fields | {"events": "changes"})))
    assert "are of a dataset: name it" in refused.one("p", class_="fault").text


def test_what_is_refused_stays_in_the_form_with_its_reason(visitor: httpx2.Client, orders: str) -> None:
    root = page(visitor, "/console/webhooks")
    fields = {
        "dataset": "orders",
        "url": "ftp://example.com/<x>",
        "batch_changes_max": "many",
        "form": "upsert",
    }
    answer = submit(visitor, root, "/console/webhooks", **fields)
    assert answer.status_code == 400
    shown = checked_page(answer)
    form = shown.one("form", action="/console/webhooks", method="post")
    assert form.one("input", name="url").attributes["value"] == "ftp://example.com/<x>"
    assert "expected a whole number" in form.one("p", class_="fault").text
    assert [each.text for each in form.one("select", name="form").all("option", selected="")] == ["upsert"]
    answer = submit(visitor, root, "/console/webhooks", **(fields | {"batch_changes_max": ""}))
    assert answer.status_code == 422
    form = checked_page(answer).one("form", action="/console/webhooks", method="post")
    assert "characters that a URL cannot contain" in form.one("p", class_="fault").text


def test_why_it_is_paused_stands_at_the_top(
    client: httpx2.Client, visitor: httpx2.Client, receiver: Receiver, register: Register, service: Service
) -> None:
    path = f"/console/webhooks/{given_up(client, service, receiver, register)}"
    root = page(visitor, path)
    top = root.one("div", id="webhook").all("p")[0].text
    assert top.startswith("paused ")
    assert ". The service has paused it." in top
    assert figures(root)["Given up in a row"] == "3"
    assert {row[1] for row in messages(root)} == {"dead"}
    assert {(row[4], row[5]) for row in messages(root)} == {("3", "500")}
    assert "no disk" in messages(root)[0][6]
    assert root.all("b") == []
    assert [row[1] for row in messages(page(visitor, f"{path}?state=dead"))] == ["dead"] * 3
    assert "No such message" in page(visitor, f"{path}?state=delivered").text


def test_the_list_says_why_and_since_when_one_is_paused(
    client: httpx2.Client, visitor: httpx2.Client, receiver: Receiver, register: Register, service: Service
) -> None:
    webhook = register()
    receiver.answer(410)
    write(client, service, {"id": 1, "note": "a"})
    state, *_, error = page(visitor, "/console/webhooks").one("table").rows()[1][2:]
    assert state.startswith("paused ")
    assert state.endswith(("ago", "now"))
    assert "the receiver answered 410 Gone" in error
    tag = {"If-Match": f'"{state_of(client, webhook)["revision"]}"'}
    client.patch(f"/webhooks/{webhook['id']}", json={"state": "active"}, headers=tag).raise_for_status()
    tag = {"If-Match": f'"{state_of(client, webhook)["revision"]}"'}
    client.patch(f"/webhooks/{webhook['id']}", json={"state": "paused"}, headers=tag).raise_for_status()
    *_, error = page(visitor, "/console/webhooks").one("table").rows()[1]
    assert error == "its users have paused it"


def test_given_up_messages_are_sent_again(
    client: httpx2.Client, visitor: httpx2.Client, receiver: Receiver, register: Register, service: Service
) -> None:
    webhook = given_up(client, service, receiver, register)
    path = f"/console/webhooks/{webhook}"
    root = page(visitor, path)
    assert submit(visitor, root, f"{path}/state").status_code == 303
    assert client.get(f"/webhooks/{webhook}").json()["state"] == "active"
    first = deliveries(client, {"id": webhook})[-1]["id"]
    one = submit(visitor, root, f"{path}/redeliveries", delivery=first)
    assert (one.status_code, one.headers["location"]) == (303, path)
    service.work()
    states = {each["id"]: each["state"] for each in deliveries(client, {"id": webhook})}
    assert states[first] == "delivered"
    assert submit(visitor, root, f"{path}/redeliveries").status_code == 303
    assert "Messages that are sent again: 2." in page(visitor, path).text
    service.work()
    assert {each["state"] for each in deliveries(client, {"id": webhook})} == {"delivered"}


def test_a_user_pauses_and_resumes_it(
    client: httpx2.Client, visitor: httpx2.Client, register: Register
) -> None:
    path = f"/console/webhooks/{register()['id']}"
    submit(visitor, page(visitor, path), f"{path}/state")
    root = page(visitor, path)
    assert "Its users have paused it" in root.text
    assert "The webhook is paused." in root.text
    submit(visitor, root, f"{path}/state")
    assert "Everything is sent" in page(visitor, path).text


def test_a_message_of_a_paused_webhook_waits_until_it_is_resumed(
    client: httpx2.Client, visitor: httpx2.Client, receiver: Receiver, register: Register, service: Service
) -> None:
    webhook = register()
    path = f"/console/webhooks/{webhook['id']}"
    receiver.answer(500)
    write_and_fail(client, service, receiver)
    root = page(visitor, path)
    assert "The next attempt is" in root.one("div", id="webhook").text
    assert "the next attempt is" in messages(root)[0][1]
    submit(visitor, root, f"{path}/state")
    paused = page(visitor, path)
    assert "It waits until the webhook is resumed" in paused.one("div", id="webhook").text
    assert messages(paused)[0][1] == "pending waits until the webhook is resumed"
    assert "next attempt" not in paused.text
    submit(visitor, paused, f"{path}/redeliveries")
    assert "once the webhook is resumed: 0." in page(visitor, path).one("p", role="status").text


def test_a_webhook_is_deleted_by_a_checked_box(
    client: httpx2.Client, visitor: httpx2.Client, register: Register, service: Service
) -> None:
    webhook = register(since="now")
    path = f"/console/webhooks/{webhook['id']}"
    root = page(visitor, path)
    assert "The dataset stays" in root.one("details", class_="deletion").text
    refused = submit(visitor, root, f"{path}/delete")
    assert refused.status_code == 400
    deletion = checked_page(refused).one("details", class_="deletion")
    assert "open" in deletion.attributes
    assert "check the box" in deletion.one("p", class_="fault").text
    assert client.get(f"/webhooks/{webhook['id']}").status_code == 200
    deleted = submit(visitor, root, f"{path}/delete", confirm="yes")
    assert (deleted.status_code, deleted.headers["location"]) == (303, "/console/webhooks")
    assert client.get(f"/webhooks/{webhook['id']}").status_code == 404
    assert "The webhook is deleted." in page(visitor, "/console/webhooks").text


def test_a_test_message_shows_its_result(
    visitor: httpx2.Client, register: Register, receiver: Receiver
) -> None:
    path = f"/console/webhooks/{register()['id']}"
    root = page(visitor, path)
    sent = submit(visitor, root, f"{path}/test")
    assert (sent.status_code, sent.headers["location"]) == (303, path)
    assert "was delivered, with status 200, after" in page(visitor, path).one("p", role="status").text
    receiver.answer(503, body=("<u>closed</u>" + "€" * 1_000).encode())
    assert submit(visitor, root, f"{path}/test").status_code == 303
    bad = page(visitor, path).one("p", role="status")
    assert "was not delivered, with status 503" in bad.text
    assert "<u>closed</u>€€" in bad.text
    assert bad.all("u") == []
    assert page(visitor, path).all("p", role="status") == []


def test_the_latest_attempts_have_latency_and_answer(
    client: httpx2.Client,
    visitor: httpx2.Client,
    receiver: Receiver,
    register: Register,
    service: Service,
    restricted: Callable[..., httpx2.Client],
) -> None:
    webhook = register()
    path = f"/console/webhooks/{webhook['id']}"
    root = page(visitor, path)
    assert "Latency" not in figures(root)
    assert "Latest attempts" not in root.text
    receiver.answer(500, body=f"{HOSTILE}\n{'x' * 2_000}".encode())
    write_and_fail(client, service, receiver)
    submit(visitor, root, f"{path}/test")
    root = page(visitor, path)
    test, first = root.one("div", id="attempts").one("table").rows()[1:]
    assert (test[1], test[2], test[3], test[5]) == ("test", "taken", "200", "no text")
    assert (first[2], first[3]) == ("failed", "500")
    assert float(first[4]) < 15_000
    answer = root.one("div", id="attempts").one("pre").text
    assert answer.startswith(HOSTILE)
    assert len(answer) <= 1_024
    assert len(root.all("script")) == 1
    assert figures(root)["Latency"].endswith("s")
    reader = page(restricted({"datasets": "orders"}), path)
    assert "Latest attempts" not in reader.text
    assert "Latency" not in figures(reader)


def test_percentiles_of_latencies() -> None:
    assert latencies([]) is None
    assert latencies([{"seconds": 2.0}]) == (2.0, 2.0)
    assert latencies([{"seconds": float(each)} for each in (9, 1, 3, 2)]) == (2.0, 9.0)
    assert latencies([{"seconds": float(each)} for each in range(1, 11)]) == (5.0, 10.0)


def test_a_new_secret_is_shown_once(visitor: httpx2.Client, register: Register) -> None:
    webhook = register()
    path = f"/console/webhooks/{webhook['id']}"
    made = checked_page(submit(visitor, page(visitor, path), f"{path}/secret"))
    secret = made.all("code")[0].text
    assert secret.startswith("whsec_")
    assert secret != webhook["secret"]
    assert "24 hours" in made.text


def test_settings_and_position_change_under_the_etag_of_the_page(
    client: httpx2.Client, visitor: httpx2.Client, register: Register, receiver: Receiver, service: Service
) -> None:
    webhook = register()
    path = f"/console/webhooks/{webhook['id']}"
    write(client, service, {"id": 1}, {"id": 2})
    root = page(visitor, path)
    answer = submit(visitor, root, f"{path}/settings", where="id = 2", description="two", columns="id")
    assert answer.status_code == 303, answer.text
    changed = state_of(client, webhook)
    assert (changed["where"], changed["description"], changed["columns"]) == ("id = 2", "two", ["id"])
    late = submit(visitor, root, f"{path}/position", place="earliest")
    assert late.status_code == 412
    assert "precondition-failed" in late.text
    receiver.messages.clear()
    assert submit(visitor, page(visitor, path), f"{path}/position", place="earliest").status_code == 303
    service.work()
    assert [each["row"] for each in receiver.changes] == [{"id": 2}]
    refused = submit(visitor, page(visitor, path), f"{path}/position", place="yesterday")
    assert refused.status_code == 400
    assert checked_page(refused).one("input", name="place").attributes["value"] == "yesterday"


def test_a_key_sees_and_does_what_it_may(
    client: httpx2.Client, register: Register, restricted: Callable[..., httpx2.Client]
) -> None:
    webhook = register()
    reader = restricted({"datasets": "orders"})
    assert "orders" in page(reader, "/console/webhooks").one("table").text
    root = page(reader, f"/console/webhooks/{webhook['id']}")
    assert [each.text for each in root.all("button")] == ["Sign out"]
    assert page(restricted({"datasets": "x"}), f"/console/webhooks/{webhook['id']}", status=404)
    part = restricted({"datasets": "orders", "where": "id = 1"})
    assert "No webhook posts changes yet" in page(part, "/console/webhooks").text
    assert page(part, f"/console/webhooks/{webhook['id']}", status=404).one("div", role="alert")
    token = root.all("input", name="token")[0].attributes["value"]
    answer = reader.post(f"/console/webhooks/{webhook['id']}/secret", data={"token": token})
    assert answer.status_code == 403
    assert "manage" in answer.text

"""Pages, long polls and server-sent events deliver the same feed, byte for byte, also while it is being written."""

import json
import random
import threading

import msgspec
import pytest

from app.kernel.changelog.delivery_forms import ChangeForm
from tests.support.http import upsert
from tests.support.shares import share
from tests.support.streams import blocks

NDJSON = {"Accept": "application/x-ndjson"}
WRITES = 12


class Page(msgspec.Struct):
    """A page whose changes stay the text that they are."""

    changes: list[msgspec.Raw]
    next_since: int


def write(client, orders, service, seed):
    """Random inserts, updates and deletes, some of them committed as a group."""
    chance = random.Random(seed)
    for number in range(WRITES):
        rows = [
            {"id": chance.randrange(9), "note": f"é{number}\n" * (number % 3)}
            for _ in range(chance.randint(1, 5))
        ]
        body = upsert(*rows)
        if number % 4 == 3:
            keys = [{"id": row["id"]} for row in rows]
            body = {"operation": "delete", "source": {"kind": "rows", "rows": keys}}
        assert client.post(f"{orders}/writes", json=body).status_code == 202
        if chance.random() < 0.6:
            service.work()
    service.work()
    # The end of the feed, which readers know by its key: a commit of its own.
    client.post(f"{orders}/writes", json=upsert({"id": 99, "note": "end"}))
    service.work()


def is_end(change):
    return b'"id":99' in bytes(change)


def by_pages(client, orders, form, chance, **parameters):
    """The changes to the end, which is waited for with long polls, in pages of any size."""
    found, since = [], 0
    while not (found and is_end(found[-1])):
        query = {"since": since, "limit": chance.randint(1, 6), "form": form, **parameters}
        page = msgspec.json.decode(client.get(f"{orders}/changes", params=query).content, type=Page)
        found += [bytes(change) for change in page.changes]
        since = page.next_since
    return found


def by_lines(client, orders, form, chance):
    found, since = [], 0
    while not (found and is_end(found[-1])):
        query = {"since": since, "limit": chance.randint(1, 6), "form": form, "feed": "longpoll"}
        answer = client.get(f"{orders}/changes", params=query, headers=NDJSON)
        found += answer.content.splitlines()
        since = int(answer.headers["headwater-next-since"])
    return found


def by_events(client, orders, form, chance):
    """The changes as events, from a stream that breaks again and again."""
    found, last_id = [], None
    while not (found and is_end(found[-1])):
        headers = {} if last_id is None else {"Last-Event-ID": last_id}
        most = chance.randint(1, 9)
        with client.stream(
            "GET", f"{orders}/changes/events", params={"form": form}, headers=headers
        ) as stream:
            for line in stream.iter_lines():
                if line.startswith("id: "):
                    last_id = line[4:]
                elif line.startswith("data: "):
                    found.append(line[6:].encode())
                    most -= 1
                    if is_end(found[-1]) or (most <= 0 and not _opens_a_pair(found[-1], form)):
                        break
    return found


def _opens_a_pair(change, form):
    event = json.loads(change)
    if form == ChangeForm.DELTA.value:
        return event["_change_type"] == "update_preimage"
    return event.get("op") in ("-C", "-R") and form != ChangeForm.UPSERT.value


@share(2)
@pytest.mark.parametrize("form", [form.value for form in ChangeForm])
def test_all_readers_get_the_same_bytes_while_the_feed_is_written(client, orders, service, form):
    found = {}
    ways = {
        "long polls": lambda by: by_pages(by, orders, form, random.Random(1), feed="longpoll", timeout=20),
        "lines": lambda by: by_lines(by, orders, form, random.Random(2)),
        "events": lambda by: by_events(by, orders, form, random.Random(3)),
    }
    key = client.headers["authorization"].split()[1]

    def read(name):
        with service.client(key) as own:
            found[name] = ways[name](own)

    readers = [threading.Thread(target=read, args=(name,)) for name in ways]
    for reader in readers:
        reader.start()
    write(client, orders, service, seed=form)
    for reader in readers:
        reader.join(30)
    whole = by_pages(client, orders, form, random.Random(4))
    answer = client.get(f"{orders}/changes", params={"form": form, "limit": 10_000})
    assert [bytes(change) for change in msgspec.json.decode(answer.content, type=Page).changes] == whole
    assert len(whole) > WRITES
    assert found == dict.fromkeys(ways, whole)
    streamed = client.get(
        f"{orders}/changes/events", params={"form": form, "until": answer.json()["next_since"]}
    )
    assert [change for _, change in blocks(streamed.text)] == [json.loads(change) for change in whole]

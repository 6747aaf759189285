"""Workers cut feeds by themselves, behind the consumers that read them, and the files go."""

from tests.support.http import problem
from tests.support.waiting import until


def test_workers_expire_old_and_consumed_changes(deployment, client, new_table):
    table = new_table(changelog={"retention": {"changes": 1}})
    path = f"{table.path}/consumers/reader"
    assert client.put(path, json={"offset": "earliest"}).status_code == 201
    for number in range(3):
        table.write("upsert", [{"id": number, "note": "a"}])
    before = table.changes()
    kept = table.stored()

    def beginning():
        return client.get(table.path).json()["earliest_offset"]

    page = client.get(f"{table.path}/changes", params={"consumer": "reader", "limit": 2}).json()
    assert beginning() == 0, "the reader has committed nothing yet"
    client.put(path, json={"offset": page["next_since"]}, headers={"If-Match": '"1"'})
    until(lambda: beginning() == 2, "workers to cut the feed")
    problem(client.get(f"{table.path}/changes"), 410, "offset-expired")
    rest = client.get(f"{table.path}/changes", params={"consumer": "reader"}).json()
    assert rest["changes"] == before[2:]
    # Their rows go with the next round, and then nothing refers to the files.
    gone = until(table.orphans, "the files to be forgotten")
    assert len(gone) == 2
    deployment.reap()
    assert table.stored() == kept - gone
    assert len(table.rows()) == 3

"""Recipients of shares read what the grant allows, for as long as it stands, and their changes fold to it."""

from __future__ import annotations

import io
import json
import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import httpx2
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from sqlalchemy import func, select

from app.features.rendered_files.tables import rendered_files
from tests.open.comparison import check_equal, check_folds
from tests.open.conftest import Readers
from tests.open.crawl import by_sharing
from tests.open.datasets import OpenDataset, Tenant, answered
from tests.open.engines import SHARING, Engine, EngineError, Reader
from tests.open.grants import Restriction, SharedDataset
from tests.open.histories import played
from tests.open.planted import marks, planted, restriction, visible_marks
from tests.open.test_grants import narrowed
from tests.open.test_hidden_values import check_unseen
from tests.support.commit_seed import commit_seed
from tests.support.left_out import left_out
from tests.support.service import Service
from tests.support.waiting import until

_SCHEMA: Final = {
    "fields": [
        {"name": "id", "type": "int64"},
        {"name": "level", "type": "int32"},
        {"name": "email", "type": "string"},
    ]
}
_DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "sharing.md"
_EXAMPLE: Final = re.compile(r"<!-- read with pandas -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PYTHON: Final = Engine(name="python", program="document_example.py")
_LOW: Final = Restriction(where="level < 3", mask=("email",))
_STANDING_SECONDS_MAX: Final = 30
_OF_A_TENANT: Final = 50
_REMOVED: Final = ("delete", "update_preimage")


@pytest.fixture(scope="module")
def own(service: Service) -> Iterator[Tenant]:
    """A tenant of this module."""
    found = Tenant.new(service)
    yield found
    found.client.close()


def people(tenant: Tenant, name: str) -> OpenDataset:
    """Rows of which some change, come into sight of `_LOW`, go out of it, and are deleted."""
    dataset = tenant.dataset(name, schema=_SCHEMA, record_key=["id"])
    dataset.upsert(*({"id": each, "level": each % 6, "email": f"{each}@x"} for each in range(30)))
    dataset.upsert(*({"id": each, "level": 5 - each % 6, "email": f"{each}@y"} for each in range(0, 30, 3)))
    dataset.delete({"id": 1}, {"id": 5})
    return dataset


def links(shared: SharedDataset, version: int) -> list[str]:
    """The files of a query in the format `parquet`."""
    share, schema, table = shared.table.split(".")
    with shared.bearer() as client:
        path = f"/shares/{share}/schemas/{schema}/tables/{table}/query"
        lines = answered(client.post(path, json={"version": version})).text.splitlines()
    return [each["file"]["url"] for each in map(json.loads, lines) if "file" in each]


def is_carried(shared: SharedDataset, version: int) -> bool:
    """Whether the format `parquet` has the types of a version: it has no times without a zone."""
    kinds = [str(field.type) for field in shared.rows(version)[:0].schema]
    return not any(kind.startswith("timestamp") and "tz=" not in kind for kind in kinds)


def fetched(link: str) -> httpx2.Response:
    """The answer to a link, which needs nothing else."""
    with httpx2.Client(trust_env=False, timeout=60) as client:
        return client.get(link)


def rows_of(shared: SharedDataset, version: int) -> pa.Table:
    """The rows of the files of a version."""
    found = [pq.read_table(io.BytesIO(answered(fetched(link)).content)) for link in links(shared, version)]
    empty = shared.rows(version)[:0]
    # A file that has not a column is one from before it: clients read nulls.
    columns = pa.table({name: pa.nulls(0) for name in empty.column_names})
    return pa.concat_tables([columns, *found], promote_options="permissive") if found else empty


def test_files_have_what_recipients_see_of_a_few_histories(few_histories: Sequence[OpenDataset]) -> None:
    for dataset in few_histories:
        for narrow in narrowed(dataset, dataset.name):
            shared = SharedDataset.with_recipient(dataset, narrow.seen)
            for version in shared.kept_versions():
                if not shared.refuses(version) and is_carried(shared, version):
                    check_equal(SHARING, rows_of(shared, version), shared.rows(version))


def test_answers_to_recipients_have_no_hidden_value(service: Service) -> None:
    dataset = planted(Tenant.new(service), commit_seed())
    seen = restriction(random.Random(f"recipients {commit_seed()}"))
    shared = SharedDataset.with_recipient(dataset, seen)
    assert check_unseen(by_sharing(shared), visible_marks(shared)) > 20
    whole = SharedDataset.with_recipient(dataset)
    found = set[int]().union(*(marks(answer.content) for _, answer in by_sharing(whole)))
    assert marks(repr(dataset.rows().to_pylist()).encode()) <= found


def _refused(link: str) -> bool:
    return fetched(link).status_code in (401, 403, 404)


def test_recipient_that_is_deleted_reads_nothing_more(own: Tenant) -> None:
    shared = SharedDataset.with_recipient(people(own, "deleted"), _LOW)
    link = links(shared, 3)[0]
    assert answered(fetched(link)).content
    answered(own.client.delete(shared.recipient), 204)
    until(lambda: _refused(link), "refusal of the link", seconds_max=_STANDING_SECONDS_MAX)
    with shared.bearer() as client:
        assert client.get("/shares").status_code == 401


def test_grant_that_is_narrowed_holds_for_links_of_before(own: Tenant) -> None:
    dataset = people(own, "narrowed")
    shared = SharedDataset.with_recipient(dataset, Restriction(where="level < 5"))
    link = links(shared, 3)[0]
    assert answered(fetched(link)).content
    tag = answered(own.client.get(shared.recipient)).headers["etag"]
    change = {"grants": [_LOW.grant(dataset.name)]}
    answered(own.client.patch(shared.recipient, json=change, headers={"If-Match": tag}))
    until(lambda: _refused(link), "refusal of the link", seconds_max=_STANDING_SECONDS_MAX)
    found = rows_of(shared, 3)
    assert max(found.column("level").to_pylist()) < 3
    assert found.column("email").null_count == found.num_rows


def test_table_that_leaves_the_share_is_gone(own: Tenant) -> None:
    dataset = people(own, "left")
    shared = SharedDataset.with_recipient(dataset)
    link = links(shared, 1)[0]
    share = f"/shares/{shared.table.split('.')[0]}"
    tag = answered(own.client.get(share)).headers["etag"]
    answered(own.client.patch(share, json={"datasets": []}, headers={"If-Match": tag}))
    until(lambda: _refused(link), "refusal of the link", seconds_max=_STANDING_SECONDS_MAX)


def test_recipients_of_one_grant_share_the_files(service: Service, own: Tenant) -> None:
    dataset = people(own, "twice")
    first, second = (SharedDataset.with_recipient(dataset, _LOW) for _ in range(2))

    def rendered() -> int:
        tenant = own.client.get("/me").json()["tenant"]["id"]
        with service.database.tenant(tenant) as connection:
            of_dataset = rendered_files.c.dataset_id == dataset.client.get(dataset.path).json()["id"]
            return connection.scalar(select(func.count()).select_from(rendered_files).where(of_dataset)) or 0

    found = rows_of(first, 3)
    count = rendered()
    assert count > 0
    assert rows_of(second, 3).equals(found)
    assert rendered() == count
    # The links of one are of no use to whom the other's are refused.
    answered(own.client.delete(first.recipient), 204)
    assert rows_of(second, 3).equals(found)


def _carried(expected: pa.Table, found: pa.Table) -> pa.Table:
    """The expected columns that are carried: the format `delta` leaves those with a uuid out."""
    left_out_names = set(expected.column_names) - set(found.column_names)
    assert all("uuid" in str(expected.schema.field(name).type) for name in left_out_names), left_out_names
    return expected.drop_columns(sorted(left_out_names))


def _check_rows(running: Reader, shared: SharedDataset) -> int:
    """The rows of each version are those of a key with the same restriction. Returns the number of reads."""
    reads = 0
    for version in shared.kept_versions():
        expected = None if shared.refuses(version) else shared.rows(version)
        for warehouse in SHARING.warehouses:
            reads += 1
            if expected is None:
                with pytest.raises(EngineError):
                    running.read(shared.address, warehouse=warehouse, version=version)
                continue
            found = running.read(shared.address, warehouse=warehouse, version=version)
            check_equal(SHARING, found, _carried(expected, found))
    return reads


def _check_changes(running: Reader, shared: SharedDataset) -> int:
    """The changes up to each version fold to its rows. Returns the number of folds."""
    folds = 0
    for version in shared.kept_versions():
        if not _gives_changes(shared, version):
            continue
        rows = shared.rows(version)
        for warehouse in SHARING.warehouses:
            changes = running.read(shared.address, warehouse=warehouse, changes=0, until=version)
            kinds = changes.column("_change_type")
            is_removal = pc.is_in(kinds.cast(pa.string()), pa.array(_REMOVED))
            values = changes.drop_columns(["_change_type", "_commit_version", "_commit_timestamp"])
            added, removed = values.filter(pc.invert(is_removal)), values.filter(is_removal)
            check_folds(SHARING, added, removed, _carried(rows, values))
            folds += 1
    return folds


def _gives_changes(shared: SharedDataset, version: int) -> bool:
    """Whether all changes up to a version are there, and the grant fits all versions with them."""
    share, schema, table = shared.table.split(".")
    path = f"/shares/{share}/schemas/{schema}/tables/{table}/changes"
    headers = {"delta-sharing-capabilities": "responseformat=delta,parquet"}
    parameters = {"startingVersion": 0, "endingVersion": version}
    with shared.bearer() as client:
        while (answer := client.get(path, params=parameters, headers=headers)).status_code == 503:
            time.sleep(0.2)
    assert answer.status_code in (200, 403, 410), answer.text
    return answer.status_code == 200


@left_out("OPEN", "test-open")
def test_example_of_the_document_reads_what_the_grant_allows(
    reader: Readers, service: Service, tmp_path: Path
) -> None:
    fields = [{"name": "id", "type": "int64"}, {"name": "note", "type": "string"}]
    dataset = Tenant.new(service).dataset("orders", schema={"fields": fields}, record_key=["id"])
    dataset.upsert({"id": 1, "note": "a"}, {"id": 2, "note": "b"}, {"id": 3, "note": None})
    dataset.delete({"id": 2})
    dataset.upsert({"id": 4, "note": "later"})
    shared = SharedDataset.with_recipient(dataset, Restriction(where="id < 3", mask=("note",)))
    (tmp_path / "acme.share").write_text(json.dumps(shared.profile), encoding="utf-8")
    [text] = _EXAMPLE.findall(_DOCUMENT.read_text(encoding="utf-8"))
    text = text.replace("acme.share", str(tmp_path / "acme.share"))
    text = text.replace("sales.default.orders", shared.table)
    found = reader(_PYTHON).read(shared.address, language="python", text=text)
    assert found.to_pydict() == {"id": [1], "note": [None]}


@left_out("OPEN", "test-open")
@pytest.mark.parametrize(
    "seen", [None, _LOW, Restriction(mask=("id",)), Restriction(where="level > 3")], ids=str
)
def test_delta_sharing_reads_rows_and_changes(
    reader: Readers, service: Service, seen: Restriction | None
) -> None:
    shared = SharedDataset.with_recipient(people(Tenant.new(service), "people"), seen)
    running = reader(SHARING)
    for version in shared.kept_versions():
        found = running.read(shared.address, warehouse="parquet", version=version)
        check_equal(SHARING, found, shared.rows(version))
    assert _check_rows(running, shared) == 6
    assert _check_changes(running, shared) == 6


@left_out("OPEN", "test-open")
def test_delta_sharing_reads_what_recipients_see_of_many_histories(
    reader: Readers, service: Service, record_property: Callable[[str, object], None]
) -> None:
    """`OPEN_HISTORIES`: how many. `OPEN_SEED`: the first one. Each failure names its seed and grant."""
    first, many = int(os.environ.get("OPEN_SEED", "0")), int(os.environ.get("OPEN_HISTORIES", "20"))
    running = reader(SHARING)
    faults: list[str] = []
    counts = Counter[str]()
    tenant = Tenant.new(service)
    for number in range(first, first + many):
        if number % _OF_A_TENANT == 0:
            tenant = Tenant.new(service)
        dataset = played(tenant, number)
        for seen in (None, *(narrow.seen for narrow in narrowed(dataset, number))):
            shared = SharedDataset.with_recipient(dataset, seen)
            try:
                counts["reads"] += _check_rows(running, shared)
                if not dataset.has_logs:
                    counts["folds"] += _check_changes(running, shared)
            except Exception as error:
                faults.append(f"history {number}, {seen}: {type(error).__name__}: {str(error)[:400]}")
    record_property("open", f"{many} histories from {first}: {dict(counts)}, {len(faults)} faults")
    assert not faults, "\n".join(faults[:50])
    assert counts["reads"]

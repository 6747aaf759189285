"""The error for a JSON body that does not fit: where, and what would."""

from __future__ import annotations

import pytest

from app.core.consumers.schemas import CreateLease, PutConsumer
from app.features.reads.jobs import CreateRead
from app.features.writes.schemas import CreateWrite
from app.http.json_body import decode_json
from app.kernel.format.definition.new_dataset import CreateDataset
from app.kernel.format.errors import InvalidRequest, MalformedBody

ROWS = '{"operation":"upsert","source":{"kind":"rows","rows":[%s]}}'
URI = '{"operation":"upsert","source":{"kind":"uri"}}'
DATASET = '{"name":"x","schema":{"fields":[]},%s}'


@pytest.mark.parametrize(
    ("body", "type_", "pointer", "detail"),
    [
        (ROWS % '{"a":1},{"b":[NaN]}', CreateWrite, "/source/rows/1/b/0", "NaN is no JSON number"),
        (ROWS % '{"a/b":-Infinity}', CreateWrite, "/source/rows/0/a~1b", "-Infinity is no JSON number"),
        (ROWS % '{"a/b":"x\\ud83d."}', CreateWrite, "/source/rows/0/a~1b", "the text has the escape \\ud83d"),
        (
            ROWS % '{"a":{"\\uDC00":1}}',
            CreateWrite,
            "/source/rows/0/a",
            "a member's name has the escape \\udc00",
        ),
        ('{"operation":"\\ud800"}', CreateWrite, "/operation", "half of a surrogate pair"),
        (URI, CreateWrite, "/source/kind", "one of rows, upload, uploads"),
        (
            DATASET % '"merge_mode":"newest"',
            CreateDataset,
            "/merge_mode",
            "one of aggregate, commit_time, event_time, first, partial",
        ),
        (
            DATASET % '"bucket":{"mode":"round"}',
            CreateDataset,
            "/bucket/mode",
            "one of dynamic, fixed, key_dynamic, postpone, unaware",
        ),
        (DATASET % '"record_key":[1]', CreateDataset, "/record_key/0", "expected a string, got an integer"),
        ('{"operation":7}', CreateWrite, "/operation", "expected a string, got an integer"),
        ('{"operation":"upsert","rows":[]}', CreateWrite, "/rows", "unknown member; send it in /source/rows"),
        ('{"offset":"begin"}', PutConsumer, "/offset", "expected an offset, `earliest`, `now`, `snapshot`"),
        ('{"offset":-1}', PutConsumer, "/offset", "expected an offset, `earliest`, `now`, `snapshot`"),
        ('{"since_version":-1}', PutConsumer, "/since_version", "expected an integer >= 0"),
        ('{"reset":"yes"}', PutConsumer, "/reset", "expected a boolean, got a string"),
        ('{"max_lag":[]}', PutConsumer, "/max_lag", "expected an object or null, got an array"),
        ('{"member":"","seconds":1}', CreateLease, "/member", "1–255 characters"),
        ("[]", PutConsumer, "", "expected an object, got an array"),
        (
            '{"order_by":["id"]}',
            CreateRead,
            "/order_by/0",
            'an object such as {"column": "amount"}, got a string',
        ),
        (
            DATASET % '"colour":1',
            CreateDataset,
            "/colour",
            "unknown member; expected one of aggregates, bucket,",
        ),
        (DATASET % '"key":[]', CreateDataset, "/key", "in /bucket/key, or did you mean 'record_key'?"),
        ('{"id":1}', CreateWrite, "/id", "expected one of batch_id, combine, create,"),
        (DATASET % '"merg_mode":"first"', CreateDataset, "/merg_mode", "did you mean 'merge_mode'?"),
        (
            DATASET % '"bucket":{"mode":"fixed","cuont":4}',
            CreateDataset,
            "/bucket/cuont",
            "did you mean 'count'?",
        ),
        ('{"name":"x"}', CreateDataset, "/schema", "required"),
        (
            DATASET % '"record_key":["id"],"aggregates":{"a":"sum","b.c":"median","d":1}',
            CreateDataset,
            "/aggregates/b.c",
            "one of bool_and, bool_or, collect, count, first, last,",
        ),
        ('{"max_lag":{},"metadata":{"a":1}', PutConsumer, "/metadata", "unknown member"),
    ],
)
def test_error_has_a_pointer_and_the_expected_value(
    body: str, type_: type[object], pointer: str, detail: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode_json(body.encode(), type_)
    (error,) = caught.value.facts["errors"]
    assert error["pointer"] == pointer
    assert detail in error["detail"]


@pytest.mark.parametrize("body", [b"", b"{", b'{"name":"x",}', b'{"name":"\xff"}', b"NaN"])
def test_invalid_json_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedBody):
        decode_json(body, CreateDataset)

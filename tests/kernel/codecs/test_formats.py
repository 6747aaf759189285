"""Which media types name which form of rows."""

from __future__ import annotations

import pytest

from app.kernel.codecs import Format
from app.kernel.format.errors import UnsupportedMediaType


@pytest.mark.parametrize(
    ("content_type", "form"),
    [
        ("application/x-ndjson", Format.NDJSON),
        ("Application/X-NDJSON; Charset=UTF-8", Format.NDJSON),
        ("application/jsonl", Format.NDJSON),
        ("text/csv", Format.CSV),
        ('text/csv; header=present; charset="utf-8"', Format.CSV),
        ("application/vnd.apache.arrow.stream", Format.ARROW),
        ("application/vnd.apache.parquet", Format.PARQUET),
    ],
)
def test_media_type_selects_its_format(content_type, form):
    assert Format.from_content_type(content_type) is form


@pytest.mark.parametrize(
    ("content_type", "reason"),
    [
        ("", "rows cannot be read from ''"),
        ("csv", "rows cannot be read from 'csv'"),
        ("application/json", "send one of application/x-ndjson"),
        ("text/plain", "send one of"),
        ("text/csv; charset=latin-1", "text must be UTF-8, not latin-1"),
        ("application/x-ndjson; charset=utf-16", "text must be UTF-8, not utf-16"),
        ("text/csv; header=absent", "CSV needs a header line"),
    ],
)
def test_unknown_media_type_is_refused_with_the_accepted_ones(content_type, reason):
    with pytest.raises(UnsupportedMediaType) as caught:
        Format.from_content_type(content_type)
    assert reason in caught.value.detail
    assert "text/csv" in caught.value.facts["accepted"]

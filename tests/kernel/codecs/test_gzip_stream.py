"""gzip bodies: members, damage at every byte, bombs."""

from __future__ import annotations

import gzip
import random
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kernel.codecs import gunzip_stream
from app.kernel.format.errors import BodyTooLarge, MalformedBody
from tests.support.examples import a_third_of

PLAIN = random.Random(1).randbytes(3000) + b"a" * 3000
BODY = gzip.compress(PLAIN)


def unpacked(*chunks: bytes, limit: int = 1 << 30) -> bytes:
    return b"".join(gunzip_stream(iter(chunks), expanded_bytes_max=limit))


def unpacked_or_refused(data: bytes) -> bytes | type[MalformedBody]:
    try:
        return unpacked(data)
    except MalformedBody:
        return MalformedBody


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=4), st.integers(1, 40))
@settings(max_examples=a_third_of(100), deadline=None)
def test_gzip_members_are_read_across_any_pieces(members, size):
    data = b"".join(gzip.compress(member) for member in members)
    assert unpacked(*(data[start : start + size] for start in range(0, len(data), size))) == b"".join(members)


def test_large_gzip_body_is_read_in_steps():
    plain = b"0123456789" * 1_000_000
    pieces = list(gunzip_stream(iter([gzip.compress(plain)]), expanded_bytes_max=len(plain)))
    assert b"".join(pieces) == plain
    assert max(map(len, pieces)) <= 1 << 20


def test_truncated_gzip_is_refused():
    for length in range(1, len(BODY), 7):
        with pytest.raises(MalformedBody, match="truncated"):
            unpacked(BODY[:length])
        with pytest.raises(MalformedBody, match="truncated"):
            unpacked(BODY + BODY[:length])


def test_damaged_gzip_is_refused_or_unchanged():
    randomness = random.Random(2)
    # The time, the flags for the level and the system in the header say nothing about the content.
    places = [place for place in range(len(BODY)) if not 4 <= place < 10]
    for _ in range(300):
        damaged = bytearray(BODY)
        damaged[randomness.choice(places)] ^= 1 << randomness.randrange(8)
        assert unpacked_or_refused(bytes(damaged)) in (PLAIN, MalformedBody)


def test_gzip_with_a_wrong_checksum_is_refused():
    damaged = bytearray(BODY)
    damaged[-8] ^= 1
    with pytest.raises(MalformedBody, match=r"the gzip body is corrupt: .*incorrect data check"):
        unpacked(bytes(damaged))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the body is empty"),
        (b"plain text", "the body is not gzip"),
        (zlib.compress(b"x"), "the body is not gzip"),
        (BODY + b"plain text", "the gzip body is followed by bytes that are not gzip"),
        (BODY + b"\x00" * 512, "the gzip body is followed by bytes that are not gzip"),
    ],
)
def test_body_of_another_format_is_named(data, reason):
    with pytest.raises(MalformedBody) as caught:
        unpacked(data)
    assert reason in caught.value.detail


def test_gzip_bomb_is_stopped_at_the_limit():
    bomb = gzip.compress(b"\x00" * 50_000_000)
    expanded: list[bytes] = []
    with pytest.raises(BodyTooLarge) as caught:
        expanded.extend(gunzip_stream(iter([bomb]), expanded_bytes_max=3_000_000))
    assert caught.value.facts == {"limit_bytes": 3_000_000}
    assert sum(map(len, expanded)) <= 3_000_000
    assert unpacked(gzip.compress(b"x" * 100), limit=100) == b"x" * 100
    with pytest.raises(BodyTooLarge):
        unpacked(gzip.compress(b"x" * 100), limit=99)


def test_too_many_tiny_gzip_members_are_refused():
    with pytest.raises(MalformedBody, match="too many tiny members"):
        unpacked(gzip.compress(b"") * 5000)

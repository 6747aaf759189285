"""When the keys of an issuer are read again, and for how long they are used without that."""

from __future__ import annotations

import asyncio
import time
from functools import partial

import pytest

from app.access.oidc.download import download
from app.access.oidc.errors import TokenRefused
from app.access.oidc.key_cache import (
    FRESH_SECONDS,
    KEPT_SECONDS,
    RETRY_SECONDS,
    UNKNOWN_KEY_SECONDS,
    WAIT_AFTER_SECONDS,
    KeyCache,
)
from app.access.oidc.key_set import read_key_set
from app.infra.errors import Unavailable
from tests.support.issuer import LocalIssuer, private_key


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Keys:
    """The keys of an issuer under a clock that the test moves."""

    def __init__(self, issuer: LocalIssuer) -> None:
        self.clock = Clock()
        read = partial(read_key_set, issuer.issuer(jwks_url=f"{issuer.url}/keys"), download)
        self.cache = KeyCache(issuer.url, read, self.clock)
        self._issuer = issuer

    def has(self, key_id: str) -> bool:
        try:
            return asyncio.run(self.cache.key(key_id, "RS256")) is not None
        except TokenRefused:
            return False

    def _is_read(self) -> bool:
        return self.cache._reads.under_way(self._issuer.url) is not None

    def read_again(self) -> bool:
        """Whether the keys were read since the last call; waits for that a little."""
        deadline = time.monotonic() + 2
        while not self._issuer.gets and time.monotonic() < deadline and self._is_read():
            time.sleep(0.005)
        while self._is_read():
            time.sleep(0.005)
        read, self._issuer.gets[:] = bool(self._issuer.gets), []
        return read


@pytest.fixture
def keys(issuer: LocalIssuer) -> Keys:
    issuer.publish(first=private_key("RS256"))
    known = Keys(issuer)
    assert known.has("first")
    assert known.read_again()
    return known


def test_rotated_key_is_found_at_once_and_the_old_one_is_refused(issuer: LocalIssuer, keys: Keys) -> None:
    issuer.publish(second=private_key("RS256", 1))
    assert keys.has("second")
    assert not keys.has("first")


def test_unknown_keys_have_the_keys_read_again_once_in_a_while(issuer: LocalIssuer, keys: Keys) -> None:
    assert not any(keys.has(f"unknown {number}") for number in range(5))
    assert len(issuer.gets) == 1
    issuer.publish(second=private_key("RS256", 1))
    assert not keys.has("second")
    keys.clock.now += UNKNOWN_KEY_SECONDS
    assert keys.has("second")
    assert len(issuer.gets) == 2


def test_keys_are_read_again_beside_requests(issuer: LocalIssuer, keys: Keys) -> None:
    keys.clock.now += FRESH_SECONDS - 1
    assert keys.has("first")
    assert not keys.read_again()
    issuer.publish(second=private_key("RS256", 1))
    issuer.answering.clear()
    keys.clock.now += 1
    assert keys.has("first")
    issuer.answering.set()
    assert keys.read_again()
    keys.clock.now += UNKNOWN_KEY_SECONDS
    assert not keys.has("first")


def test_withdrawn_key_is_refused_after_a_pause_without_requests(issuer: LocalIssuer, keys: Keys) -> None:
    issuer.publish(second=private_key("RS256", 1))
    keys.clock.now += WAIT_AFTER_SECONDS
    assert not keys.has("first")


def test_known_keys_are_used_while_the_issuer_is_away(issuer: LocalIssuer, keys: Keys) -> None:
    issuer.status = 503
    keys.clock.now += WAIT_AFTER_SECONDS
    assert keys.has("first")
    assert keys.read_again()
    assert keys.has("first")
    assert not keys.read_again()
    keys.clock.now += RETRY_SECONDS
    assert keys.has("first")
    assert keys.read_again()
    keys.clock.now += KEPT_SECONDS
    with pytest.raises(Unavailable):
        keys.has("first")
    issuer.status = 200
    keys.clock.now += RETRY_SECONDS
    assert keys.has("first")

"""What a cache of values keeps in its memory."""

from __future__ import annotations

from app.infra.sharing.byte_cache import ByteCache


def test_cache_stays_within_its_bytes() -> None:
    """An entry has some bytes beside its value."""
    cache = ByteCache[str, int](3_000)
    for number, name in enumerate("abc"):
        cache.put(name, number, 900)
    assert cache.take("a") is None
    assert (cache.get("b"), cache.get("c")) == (1, 2)
    assert cache.take("c") == 2
    assert cache.take("c") is None
    for _ in range(5):
        cache.put("d", 3, 900)
    assert cache.get("b") == 1
    cache.put("e", 4, 3_000)
    assert (cache.get("e"), cache.get("d")) == (None, 3)
    cache.put("f", 5, 900)
    assert (cache.get("b"), cache.get("d"), cache.get("f")) == (None, 3, 5)
    assert 2_000 < cache.size_bytes <= 3_000


def test_value_that_is_replaced_or_evicted_is_dropped_once_and_one_that_is_taken_is_not() -> None:
    dropped: list[int] = []
    cache = ByteCache[str, int](3_000, on_drop=dropped.append)
    cache.put("a", 1, 900)
    cache.put("a", 2, 900)
    assert dropped == [1]
    cache.put("b", 3, 900)
    assert cache.get("a") == 2
    cache.put("c", 4, 900)
    assert dropped == [1, 3]
    assert cache.take("a") == 2
    # It is too large, and replaces the value before all the same.
    cache.put("c", 5, 3_000)
    assert dropped == [1, 3, 4, 5]
    assert (len(cache), cache.size_bytes) == (0, 0)


def test_last_value_is_kept_however_large_it_is() -> None:
    cache = ByteCache[str, int](3_000, keeps_last=True)
    cache.put("a", 1, 900)
    cache.put("b", 2, 10_000)
    assert (cache.get("a"), cache.get("b")) == (None, 2)
    cache.put("b", 3, 20_000)
    assert cache.get("b") == 3
    cache.put("c", 4, 900)
    cache.put("d", 5, 900)
    assert (cache.get("b"), cache.get("c"), cache.get("d")) == (None, 4, 5)

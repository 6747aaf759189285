"""Places in a version, for readers that see a part of it: sealed texts that show nothing of hidden rows.

The name of a file group has values of its rows, and its number says how many others there are. So tokens have them
encrypted, with a secret of the deployment, and padded to a length that does not depend on them.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import numpy as np
import numpy.typing as npt
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from app.features.objects.service.secrets import KnownSecrets

_GENERATION_BYTES: Final = 4
_KEY_BYTES: Final = 64
_RANK_BYTES: Final = 8
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX: Final = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
# Nearly all names are shorter. The length of a text shows how many such blocks a longer one has.
_BLOCK_BYTES: Final = 256
_END: Final = b"\x80"
_PURPOSE: Final = b"places in part"


class NotSealed(ValueError):
    """The text was not sealed for this scope, or its secret is gone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlaceKey:
    """Seals places. `generation`: of the secret that `key` is derived from."""

    generation: int
    key: bytes

    def seal(self, scope: str, content: bytes) -> str:
        """The text of a content, the same each time: URL-safe base64."""
        blocks = content + _END
        blocks += bytes(-len(blocks) % _BLOCK_BYTES)
        ciphertext = AESSIV(self.key).encrypt(blocks, [scope.encode()])
        return (
            urlsafe_b64encode(self.generation.to_bytes(_GENERATION_BYTES) + ciphertext).decode().rstrip("=")
        )

    def rank(self, text: str) -> bytes:
        """Where a text comes in an order that shows nothing of the texts."""
        return blake2b(text.encode(), key=self.key, digest_size=_RANK_BYTES).digest()

    def row_ranks(self, file_group: str, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """Where rows of a file group, by their numbers in it, come in an order that shows nothing of their values."""
        # The finalizer of SplitMix64, from a start that only holders of the key know.
        mixed = np.uint64(int.from_bytes(self.rank(file_group))) + rows.astype(np.uint64) * _STEP
        for shift, factor in _MIX:
            mixed = (mixed ^ (mixed >> shift)) * factor
        return mixed ^ (mixed >> np.uint64(31))


@dataclass(frozen=True, kw_only=True, slots=True)
class SealedPlaces:
    """Seals and opens places. May be called by many threads at once."""

    secrets: KnownSecrets

    def latest(self) -> PlaceKey:
        """What seals new places. Raises Unavailable."""
        return _key(*self.secrets.latest())

    def open(self, scope: str, text: str) -> tuple[PlaceKey, bytes]:
        """The content of a text, and what sealed it. Raises NotSealed, Unavailable."""
        try:
            raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        except ValueError:
            raise NotSealed from None
        key = self._known(int.from_bytes(raw[:_GENERATION_BYTES]))
        try:
            blocks = AESSIV(key.key).decrypt(raw[_GENERATION_BYTES:], [scope.encode()])
        except (InvalidTag, ValueError):
            raise NotSealed from None
        return key, blocks[: blocks.rindex(_END)]

    def _known(self, generation: int) -> PlaceKey:
        secret = self.secrets.known(generation)
        if secret is None:
            self.secrets.refresh()
            secret = self.secrets.known(generation)
        if secret is None:
            raise NotSealed
        return _key(generation, secret)


def _key(generation: int, secret: bytes) -> PlaceKey:
    key = blake2b(_PURPOSE, key=secret[:_KEY_BYTES], digest_size=_KEY_BYTES).digest()
    return PlaceKey(generation=generation, key=key)

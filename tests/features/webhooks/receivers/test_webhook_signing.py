"""Signatures are those of the Standard Webhooks specification."""

from __future__ import annotations

import base64
import re

import pytest

from app.features.webhooks.receivers.signing import signed_headers
from app.infra.outbound.signing_secret import key_of, new_secret

# The example that the specification's reference libraries are tested with.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID, TIMESTAMP, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_signature_equals_the_published_example() -> None:
    assert signed_headers([key_of(SECRET)], ID, TIMESTAMP, BODY) == {
        "webhook-id": ID,
        "webhook-timestamp": str(TIMESTAMP),
        "webhook-signature": SIGNATURE,
    }


def test_every_key_signs() -> None:
    other = key_of(new_secret())
    signature = signed_headers([other, key_of(SECRET)], ID, TIMESTAMP, BODY)["webhook-signature"].split(" ")
    assert signature == [signed_headers([other], ID, TIMESTAMP, BODY)["webhook-signature"], SIGNATURE]


@pytest.mark.parametrize(
    ("message_id", "timestamp", "body"),
    [("msg_other", TIMESTAMP, BODY), (ID, TIMESTAMP + 1, BODY), (ID, TIMESTAMP, BODY + b" ")],
)
def test_signature_depends_on_id_timestamp_and_body(message_id: str, timestamp: int, body: bytes) -> None:
    signature = signed_headers([key_of(SECRET)], message_id, timestamp, body)["webhook-signature"]
    assert re.fullmatch(r"v1,[A-Za-z0-9+/]{43}=", signature)
    assert signature != SIGNATURE


def test_new_secrets_are_long_and_unique() -> None:
    secrets = {new_secret() for _ in range(10)}
    assert len(secrets) == 10
    assert {len(key_of(secret)) for secret in secrets} == {32}


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        "whsec_short",
        "whsec_" + base64.b64encode(b"k" * 23).decode(),
        "whsec_" + base64.b64encode(b"k" * 65).decode(),
        base64.b64encode(b"k" * 32).decode(),
        "whsec_" + "*" * 32,
        "whsec_" + "ä" * 32,
    ],
)
def test_malformed_secret_is_refused(secret: str) -> None:
    with pytest.raises(ValueError, match="24–64 random bytes"):
        key_of(secret)

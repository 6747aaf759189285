"""The client verifies messages that the service has signed, and no others."""

from __future__ import annotations

import time
from http.client import HTTPMessage

import pytest

from app.features.webhooks.receivers.signing import signed_headers
from app.infra.outbound.signing_secret import key_of, new_secret
from headwater_client import InvalidSignature, verify_webhook

# The example that the reference libraries of Standard Webhooks are tested with.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HEADERS = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
BODY = b'{"test": 2432232314}'


def headers(*secrets: str, body: bytes = BODY, seconds: int = 0) -> dict[str, str]:
    """The headers of a message that is sent a number of seconds from now."""
    return signed_headers([key_of(each) for each in secrets], "msg_1", int(time.time()) + seconds, body)


def test_the_published_example_is_verified() -> None:
    assert verify_webhook(SECRET, HEADERS, BODY, tolerance_seconds=float("inf")) == {"test": 2432232314}


def test_messages_are_verified_with_each_secret_of_a_rotation() -> None:
    new, old = new_secret(), new_secret()
    for secret in (new, old, [new, old], [new_secret(), old]):
        assert verify_webhook(secret, headers(new, old), BODY) == {"test": 2432232314}
    assert verify_webhook([new, old], headers(old), BODY) == {"test": 2432232314}


def test_names_of_headers_have_any_case() -> None:
    received = HTTPMessage()
    for name, value in headers(SECRET).items():
        received[name.title()] = value
    assert verify_webhook(SECRET, received, BODY) == {"test": 2432232314}


@pytest.mark.parametrize("seconds", [-400, 400])
def test_old_and_future_messages_are_refused(seconds: int) -> None:
    with pytest.raises(InvalidSignature, match=r"at most 300 s"):
        verify_webhook(SECRET, headers(SECRET, seconds=seconds), BODY)
    assert verify_webhook(SECRET, headers(SECRET, seconds=seconds), BODY, tolerance_seconds=500)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"webhook-id": "msg_2"}, "no signature"),
        ({"webhook-signature": "v1,AAAA"}, "no signature"),
        ({"webhook-signature": "v1,ä"}, "no signature"),
        ({"webhook-signature": " " * 100_000}, "no signature"),
        ({"webhook-signature": ""}, "webhook-signature is missing"),
        ({"webhook-timestamp": "now"}, "no number"),
        ({"webhook-timestamp": "٣"}, "no number"),
        ({"webhook-timestamp": "9" * 5_000}, "no number"),
        ({"webhook-timestamp": "-1"}, "no number"),
    ],
)
def test_other_headers_are_refused(change: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidSignature, match=text):
        verify_webhook(SECRET, headers(SECRET) | change, BODY)


@pytest.mark.parametrize("missing", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_missing_headers_are_named(missing: str) -> None:
    rest = {name: value for name, value in headers(SECRET).items() if name != missing}
    with pytest.raises(InvalidSignature, match=missing):
        verify_webhook(SECRET, rest, BODY)


def test_another_body_and_another_secret_are_refused() -> None:
    with pytest.raises(InvalidSignature, match="no signature"):
        verify_webhook(SECRET, headers(SECRET), BODY + b" ")
    with pytest.raises(InvalidSignature, match="no signature"):
        verify_webhook(new_secret(), headers(SECRET), BODY)
    with pytest.raises(InvalidSignature, match="no signature"):
        verify_webhook([], headers(SECRET), BODY)


@pytest.mark.parametrize(("body", "text"), [(b"{", "no JSON"), (b"[1]", "no JSON object")])
def test_a_signed_body_that_is_no_object_is_refused(body: bytes, text: str) -> None:
    with pytest.raises(InvalidSignature, match=text):
        verify_webhook(SECRET, headers(SECRET, body=body), body)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_*", SECRET.removeprefix("whsec_")])
def test_a_malformed_secret_is_a_mistake_of_the_caller(secret: str) -> None:
    with pytest.raises(ValueError, match="expected a secret") as mistake:
        verify_webhook(secret, headers(SECRET), BODY)
    assert not isinstance(mistake.value, InvalidSignature)


def test_a_decoded_body_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(TypeError, match="received bytes"):
        verify_webhook(SECRET, headers(SECRET), BODY.decode())  # type: ignore[arg-type]

"""The sign-in at an issuer: what its documents and replies must be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from app.access.oidc.code_flow import CodeFlow, SignInFailed
from app.access.oidc.download import IssuerReply
from app.access.oidc.issuers import Issuer

URL = "https://login.example"
BACK = "https://lake.example/console/oidc/callback"
DOCUMENT = {
    "issuer": URL,
    "authorization_endpoint": f"{URL}/authorize?tenant=1",
    "token_endpoint": f"{URL}/token",
}
TOKENS = {"access_token": "a.b.c", "id_token": "d.e.f"}


class Answers:
    """What an issuer answers, and what it was sent."""

    def __init__(self, document: Any = None, reply: IssuerReply | None = None) -> None:
        self.document = DOCUMENT if document is None else document
        self.reply = reply or IssuerReply(200, json.dumps(TOKENS).encode())
        self.reads = 0
        self.now = 0.0
        self.headers: Mapping[str, str] = {}
        self.form: dict[str, list[str]] = {}

    def get(self, _: str) -> Any:
        self.reads += 1
        if isinstance(self.document, Exception):
            raise self.document
        return self.document

    def send(self, _: str, __: str, body: bytes, headers: Mapping[str, str]) -> IssuerReply:
        self.form, self.headers = parse_qs(body.decode()), headers
        return self.reply

    def flow(self, **more: Any) -> CodeFlow:
        entry = {"issuer": URL, "audience": "headwater", "tenant": "acme", "client_id": "console", **more}
        return CodeFlow(Issuer(**entry), self.get, self.send, lambda: self.now)


def test_address_keeps_the_query_of_the_endpoint_and_each_sign_in_is_another_one() -> None:
    flow = Answers().flow()
    (first, one), (second, other) = flow.begin(BACK, "/console"), flow.begin(BACK, "/console")
    query = parse_qs(urlsplit(first).query)
    assert (query["tenant"], query["redirect_uri"], query["state"]) == (["1"], [BACK], [one.state])
    assert first != second
    assert not {one.state, one.nonce, one.verifier} & {other.state, other.nonce, other.verifier}
    assert one.verifier not in first
    assert one.verifier not in repr(one)


@pytest.mark.parametrize(
    "document",
    [
        [],
        DOCUMENT | {"issuer": "https://evil.example"},
        DOCUMENT | {"token_endpoint": "http://login.example/token"},
        DOCUMENT | {"authorization_endpoint": "http://127.0.0.1/authorize"},
        DOCUMENT | {"token_endpoint": 3},
        {"issuer": URL},
        OSError("away"),
        ValueError("no JSON"),
    ],
    ids=str,
)
def test_documents_that_cannot_be_used_fail_the_sign_in(document: Any) -> None:
    answers = Answers(document)
    flow = answers.flow()
    for _ in range(2):
        with pytest.raises(SignInFailed, match=r"login\.example cannot be reached"):
            flow.begin(BACK, "/console")
    assert answers.reads == 1, "a fault is remembered for a while"
    answers.document, answers.now = DOCUMENT, 10.0
    assert flow.begin(BACK, "/console")


def test_document_is_read_again_after_five_minutes() -> None:
    answers = Answers()
    flow = answers.flow()
    for now in (0.0, 299.0, 300.0):
        answers.now = now
        flow.begin(BACK, "/console")
    assert answers.reads == 2


@pytest.mark.parametrize(
    ("methods", "basic"),
    [(None, True), (["client_secret_basic", "client_secret_post"], True), (["client_secret_post"], False)],
)
def test_secret_is_sent_as_the_issuer_takes_it(methods: list[str] | None, basic: bool) -> None:
    more = {} if methods is None else {"token_endpoint_auth_methods_supported": methods}
    answers = Answers(DOCUMENT | more)
    flow = answers.flow(client_secret="s&c:ret")
    _, sign_in = flow.begin(BACK, "/console")
    flow.tokens("code", sign_in, BACK)
    assert answers.form["code_verifier"] == [sign_in.verifier]
    assert ("Authorization" in answers.headers) == basic
    assert answers.form.get("client_secret") == (None if basic else ["s&c:ret"])


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (IssuerReply(400, b'{"error": "invalid_grant"}'), "refuses the sign-in: invalid_grant"),
        (IssuerReply(500, b"{}"), "refuses the sign-in: 500"),
        (IssuerReply(302, b"[]"), "refuses the sign-in: 302"),
        (IssuerReply(200, b"<html>"), "cannot be reached"),
        (IssuerReply(200, b"\xff"), "cannot be reached"),
        (IssuerReply(200, b'{"access_token": 1, "id_token": "x"}'), "gives no access token and ID token"),
    ],
    ids=str,
)
def test_replies_that_are_no_tokens_fail_the_sign_in(reply: IssuerReply, words: str) -> None:
    flow = Answers(reply=reply).flow()
    _, sign_in = flow.begin(BACK, "/console")
    with pytest.raises(SignInFailed, match=words):
        flow.tokens("code", sign_in, BACK)

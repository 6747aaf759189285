"""An OpenID Connect issuer on a loopback port, with real keys."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from app.access.oidc.issuers import Issuer
from app.infra.runtime.loopback import LOOPBACK

AUDIENCE = "headwater"
ALGORITHMS = ("RS256", "ES256", "EdDSA")
_JWKS = {"RS256": RSAAlgorithm, "ES256": ECAlgorithm, "EdDSA": OKPAlgorithm}


@cache
def private_key(algorithm: str, number: int = 0) -> Any:
    """A key of the algorithm, the same for the same number."""
    if algorithm == "RS256":
        return rsa.generate_private_key(65537, 2048)
    return (
        ec.generate_private_key(ec.SECP256R1())
        if algorithm == "ES256"
        else ed25519.Ed25519PrivateKey.generate()
    )


def public_pem(key: Any) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def jwk(algorithm: str, key_id: str, key: Any) -> dict[str, Any]:
    members = json.loads(_JWKS[algorithm].to_jwk(key.public_key()))
    return members | {"kid": key_id, "use": "sig", "alg": algorithm}


def signed(claims: dict[str, Any], key: Any, algorithm: str = "RS256", **header: Any) -> str:
    return jwt.encode(claims, key, algorithm, headers={"kid": "RS256"} | header)


@dataclass
class LocalIssuer:
    """Publishes one key for each algorithm, whose id is the name of the algorithm.

    It answers with `status`, while `answering` is set. `gets`: the paths of the requests.
    """

    url: str
    keys: dict[str, Any] = field(default_factory=lambda: {"keys": []})
    status: int = 200
    gets: list[str] = field(default_factory=list)
    discovery: dict[str, Any] = field(default_factory=dict)
    answering: threading.Event = field(default_factory=threading.Event)
    client_secret: str | None = None
    """What its client must send with a code, as HTTP Basic; None for a public client."""
    access_claims: dict[str, Any] = field(default_factory=dict)
    """Claims of the access tokens that it gives for codes, beside or instead of valid ones."""
    identity_claims: dict[str, Any] = field(default_factory=dict)
    """Those of its ID tokens."""
    reply: dict[str, Any] | None = None
    """What the token endpoint answers instead of tokens."""
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def authorize(self, query: dict[str, str]) -> str:
        """Where it sends the browser that comes with this query: back, with a code that can be used once."""
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        code = f"code-{len(self._codes)}-{time.monotonic_ns()}"
        self._codes[code] = query
        back = urlencode({"code": code, "state": query["state"], "iss": self.url, "session_state": "x"})
        return f"{query['redirect_uri']}?{back}"

    def redeem(self, form: dict[str, str], authorization: str | None) -> tuple[int, dict[str, Any]]:
        """The status and the body of the token endpoint."""
        if self.reply is not None:
            return 200, self.reply
        query = self._codes.pop(form["code"], None)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (
            query is None
            or query["code_challenge"] != challenge
            or query["redirect_uri"] != form["redirect_uri"]
        ):
            return 400, {"error": "invalid_grant"}
        if self.client_secret is None:
            known = form["client_id"] == query["client_id"]
        else:
            pair = f"{query['client_id']}:{self.client_secret}".encode()
            known = authorization == f"Basic {base64.b64encode(pair).decode()}"
        if not known:
            return 401, {"error": "invalid_client"}
        identity = {"aud": query["client_id"], "nonce": query["nonce"], "tenant": None, "scope": None}
        return 200, {
            "access_token": self.token(**self.access_claims),
            "id_token": self.token(**{**identity, **self.identity_claims}),
            "token_type": "Bearer",
            "expires_in": 300,
        }

    def publish(self, **keys: Any) -> None:
        """Publishes keys of RS256 by their id, instead of those before."""
        self.keys["keys"] = [jwk("RS256", key_id, key) for key_id, key in keys.items()]

    def entry(self, **more: Any) -> dict[str, Any]:
        """The issuer in the settings."""
        return {
            "issuer": self.url,
            "audience": AUDIENCE,
            "tenant_claim": "tenant",
            "tenants": ("*",),
            **more,
        }

    def issuer(self, **more: Any) -> Issuer:
        return Issuer(**self.entry(**more))

    def claims(self, **more: Any) -> dict[str, Any]:
        """Valid claims, without those that are None."""
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "ada",
            "iat": now,
            "exp": now + 300,
            "tenant": "acme",
        }
        return {
            name: value
            for name, value in (claims | {"scope": "read write"} | more).items()
            if value is not None
        }

    def token(self, algorithm: str = "RS256", **more: Any) -> str:
        """A token with these claims besides or instead of the valid ones."""
        return signed(self.claims(**more), private_key(algorithm), algorithm, kid=algorithm)


@contextmanager
def running_issuer() -> Iterator[LocalIssuer]:
    """An issuer that answers until the context is left."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.gets.append(self.path)
            issuer.answering.wait(20)
            parts = urlsplit(self.path)
            if parts.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", issuer.authorize(dict(parse_qsl(parts.query))))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            found = {"/.well-known/openid-configuration": issuer.discovery, "/keys": issuer.keys}[self.path]
            self._answer(issuer.status, found)

        def do_POST(self) -> None:
            issuer.answering.wait(20)
            form = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            self._answer(*issuer.redeem(form, self.headers["Authorization"]))

        def _answer(self, status: int, document: dict[str, Any]) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    server.daemon_threads = True
    issuer = LocalIssuer(f"http://{LOOPBACK}:{server.server_port}")
    issuer.keys["keys"] = [jwk(algorithm, algorithm, private_key(algorithm)) for algorithm in ALGORITHMS]
    issuer.discovery = {
        "issuer": issuer.url,
        "jwks_uri": f"{issuer.url}/keys",
        "authorization_endpoint": f"{issuer.url}/authorize",
        "token_endpoint": f"{issuer.url}/token",
    }
    issuer.answering.set()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield issuer
    finally:
        issuer.answering.set()
        server.shutdown()
        server.server_close()
        thread.join()

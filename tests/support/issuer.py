"""An OpenID Connect issuer on a loopback port, with real keys."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

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
            found = {"/.well-known/openid-configuration": issuer.discovery, "/keys": issuer.keys}[self.path]
            body = json.dumps(found).encode()
            self.send_response(issuer.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    server.daemon_threads = True
    issuer = LocalIssuer(f"http://{LOOPBACK}:{server.server_port}")
    issuer.keys["keys"] = [jwk(algorithm, algorithm, private_key(algorithm)) for algorithm in ALGORITHMS]
    issuer.discovery = {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"}
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

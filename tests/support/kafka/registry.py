"""A schema registry: the part of Confluent's REST API that clients use, over HTTP, as it is documented.

https://docs.confluent.io/platform/current/schema-registry/develop/api.html

A Protobuf schema is registered as the Base64 text of its serialized file, as Confluent's clients for Python do, and is
returned so for `format=serialized`.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from app.runtime.loopback import LOOPBACK

_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"


@dataclass(kw_only=True)
class Registry:
    """A registry. `failures`: the statuses of the next answers. `credentials`: `user:password` to require."""

    url: str
    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    subjects: dict[str, list[int]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)
    credentials: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def register(
        self, subject: str, schema: str, kind: str = "AVRO", references: Sequence[dict[str, Any]] = ()
    ) -> int:
        """The id of the schema, which gets a version of the subject unless it has one."""
        document = {"schema": schema, "schemaType": kind, "references": list(references)}
        with self.lock:
            number = next(
                (known for known, each in self.schemas.items() if each == document), len(self.schemas) + 1
            )
            self.schemas[number] = document
            versions = self.subjects.setdefault(subject, [])
            if number not in versions:
                versions.append(number)
        return number

    def register_avro(self, subject: str, schema: dict[str, Any] | str, **more: Any) -> int:
        """The same for an Avro schema."""
        return self.register(subject, json.dumps(schema), **more)

    def register_protobuf(self, subject: str, file: bytes, **more: Any) -> int:
        """The same for a serialized Protobuf file."""
        return self.register(subject, base64.b64encode(file).decode(), "PROTOBUF", **more)

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """The status and the document for a request."""
        match method, [unquote(part) for part in urlsplit(target).path.strip("/").split("/")]:
            case "GET", ["schemas", "ids", number]:
                if int(number) not in self.schemas:
                    return 404, {"error_code": 40403, "message": f"Schema {number} not found"}
                return 200, _shown(self.schemas[int(number)])
            case "GET", ["subjects", subject, "versions", version]:
                versions = self.subjects.get(subject)
                if versions is None:
                    return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
                place = len(versions) if version == "latest" else int(version)
                if not 1 <= place <= len(versions):
                    return 404, {"error_code": 40402, "message": f"Version {version} not found."}
                number = versions[place - 1]
                about = {"subject": subject, "version": place, "id": number}
                return 200, about | _shown(self.schemas[number])
            case "POST", ["subjects", subject, "versions"]:
                sent = json.loads(body)
                kind, references = sent.get("schemaType", "AVRO"), sent.get("references", ())
                return 200, {"id": self.register(subject, sent["schema"], kind, references)}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}


def _shown(document: dict[str, Any]) -> dict[str, Any]:
    """A schema as it is returned: what is a default is left out."""
    shown = {"schema": document["schema"]}
    if document["schemaType"] != "AVRO":
        shown["schemaType"] = document["schemaType"]
    return shown | ({"references": document["references"]} if document["references"] else {})


@contextmanager
def running_registry() -> Iterator[Registry]:
    """Answers on a free port until the context is left."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._respond(b"")

        def do_POST(self) -> None:
            self._respond(self.rfile.read(int(self.headers["Content-Length"])))

        def _respond(self, body: bytes) -> None:
            registry.requests.append(f"{self.command} {self.path}")
            if registry.failures:
                status, document = (
                    registry.failures.pop(0),
                    {"error_code": 50001, "message": "Error in the backend"},
                )
            elif not self._is_known():
                status, document = 401, {"error_code": 401, "message": "Unauthorized"}
            else:
                status, document = registry.answer(self.command, self.path, body)
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", _MEDIA_TYPE)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _is_known(self) -> bool:
            if registry.credentials is None:
                return True
            expected = "Basic " + base64.b64encode(registry.credentials.encode()).decode()
            return self.headers.get("Authorization") == expected

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer((LOOPBACK, 0), Handler) as server:
        registry = Registry(url=f"http://{LOOPBACK}:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()

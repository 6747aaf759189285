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

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from app.infra.runtime.loopback import LOOPBACK
from tests.support.kafka.compatibility import LEVELS, is_compatible

_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"


@dataclass(kw_only=True)
class Registry:
    """A registry. `failures`: the statuses of the next answers. `credentials`: `user:password` to require.

    `subjects`: the ids of the versions, 0 for one that was deleted. `levels`: of compatibility by subject, and with
    the name "" of all others. `register` checks neither the schema nor its compatibility; requests do.
    """

    url: str
    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    subjects: dict[str, list[int]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)
    credentials: str | None = None
    levels: dict[str, str] = field(default_factory=lambda: {"": "BACKWARD"})
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

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, Any]:
        """The status and the document for a request."""
        parts = urlsplit(target)
        path = [unquote(part) for part in parts.path.strip("/").split("/")]
        try:
            return 200, self._answer(method, path, json.loads(body or b"{}"))
        except Refused as error:
            return error.status, {"error_code": error.code, "message": error.message}

    def _answer(self, method: str, path: list[str], sent: dict[str, Any]) -> Any:
        match method, path:
            case "GET", ["schemas", "types"]:
                return ["JSON", "PROTOBUF", "AVRO"]
            case "GET", ["schemas", "ids", number]:
                return _shown(self._schema(number))
            case "GET", ["schemas", "ids", number, "versions"]:
                self._schema(number)
                return [
                    {"subject": subject, "version": place}
                    for subject, versions in self.subjects.items()
                    for place, known in enumerate(versions, 1)
                    if known == int(number)
                ]
            case "GET", ["subjects"]:
                return [subject for subject, versions in self.subjects.items() if any(versions)]
            case _, ["config", *_]:
                return self._config(method, path[1:], sent)
            case "POST", ["compatibility", "subjects", subject, "versions", *version]:
                # A subject without versions is compatible with everything; a version that is absent is an error.
                if version or self._versions(subject, required=False):
                    earlier = [self._version(subject, version[0])[1]] if version else self._versions(subject)
                    return {"is_compatible": self._is_compatible(subject, sent, earlier)}
                return {"is_compatible": True}
            case _, ["subjects", subject, *rest]:
                return self._subject(method, subject, rest, sent)
        raise Refused(404, 404, "HTTP 404 Not Found")

    def _subject(self, method: str, subject: str, path: list[str], sent: dict[str, Any]) -> Any:
        match method, path:
            case "GET", ["versions"]:
                self._versions(subject)
                return [place for place, number in enumerate(self.subjects[subject], 1) if number]
            case "GET", ["versions", version]:
                place, number = self._version(subject, version)
                return {"subject": subject, "version": place, "id": number} | _shown(self.schemas[number])
            case "POST", ["versions"]:
                document = self._document(sent)
                known = self._versions(subject, required=False)
                if known and not self._is_compatible(subject, sent, known):
                    raise Refused(
                        409,
                        409,
                        "Schema being registered is incompatible with an earlier schema for subject "
                        f'"{subject}"',
                    )
                return {
                    "id": self.register(
                        subject, document["schema"], document["schemaType"], document["references"]
                    )
                }
            case "POST", []:
                versions = self._versions(subject)
                document = self._document(sent)
                found = [number for number in versions if self.schemas[number] == document]
                if not found:
                    raise Refused(404, 40403, "Schema not found")
                place = self.subjects[subject].index(found[0]) + 1
                return {"subject": subject, "version": place, "id": found[0]} | _shown(document)
            case "DELETE", []:
                self._versions(subject)
                return self._delete(subject, range(1, len(self.subjects[subject]) + 1))
            case "DELETE", ["versions", version]:
                return self._delete(subject, [self._version(subject, version)[0]])[0]
        raise Refused(404, 404, "HTTP 404 Not Found")

    def _delete(self, subject: str, places: Sequence[int]) -> list[int]:
        """Soft deletion: the numbers of versions are not used again, and the ids stay readable."""
        with self.lock:
            versions = self.subjects[subject]
            found = [place for place in places if versions[place - 1]]
            for place in found:
                versions[place - 1] = 0
        return found

    def _config(self, method: str, subject: list[str], sent: dict[str, Any]) -> dict[str, str]:
        match method:
            case "PUT":
                level = sent.get("compatibility", "")
                if level not in LEVELS:
                    raise Refused(
                        422, 42203, f"Invalid compatibility level. Valid values are {', '.join(LEVELS)}"
                    )
                self.levels["".join(subject)] = level
                return {"compatibility": level}
            case "GET" if not subject or subject[0] in self.levels:
                return {"compatibilityLevel": self.levels["".join(subject)]}
            case "GET":
                raise Refused(
                    404, 40408, f"Subject '{subject[0]}' does not have subject-level compatibility configured"
                )
        raise Refused(404, 404, "HTTP 404 Not Found")

    def _schema(self, number: str) -> dict[str, Any]:
        if not number.isdigit() or int(number) not in self.schemas:
            raise Refused(404, 40403, f"Schema {number} not found")
        return self.schemas[int(number)]

    def _versions(self, subject: str, *, required: bool = True) -> list[int]:
        """The ids of the versions that were not deleted."""
        found = [number for number in self.subjects.get(subject, ()) if number]
        if required and not found:
            raise Refused(404, 40401, f"Subject '{subject}' not found.")
        return found

    def _version(self, subject: str, version: str) -> tuple[int, int]:
        """The number and the id of a version."""
        self._versions(subject)
        versions = self.subjects[subject]
        if version == "latest":
            return max((place, number) for place, number in enumerate(versions, 1) if number)
        if not version.isdigit() or not 1 <= int(version) < 2**31:
            raise Refused(
                422,
                42202,
                f"The specified version '{version}' is not a valid version id. Allowed values are between [1, 2^31-1] "
                'and the string "latest"',
            )
        if int(version) > len(versions) or not versions[int(version) - 1]:
            raise Refused(404, 40402, f"Version {version} not found.")
        return int(version), versions[int(version) - 1]

    def _document(self, sent: dict[str, Any]) -> dict[str, Any]:
        """The schema of a request."""
        kind = sent.get("schemaType") or "AVRO"
        document = {
            "schema": sent.get("schema", ""),
            "schemaType": kind,
            "references": list(sent.get("references") or ()),
        }
        if kind == "AVRO":
            self._check_avro(document)
        return document

    def _check_avro(self, document: dict[str, Any]) -> None:
        try:
            names: dict[str, Any] = {}
            for reference in document["references"]:
                number = self._version(reference["subject"], str(reference["version"]))[1]
                fastavro.parse_schema(json.loads(self.schemas[number]["schema"]), named_schemas=names)
            fastavro.parse_schema(json.loads(document["schema"]), named_schemas=names)
        except (ValueError, KeyError, TypeError, AttributeError, SchemaParseException, UnknownType) as error:
            raise Refused(422, 42201, f"Invalid schema {document!r}: {error}") from None

    def _is_compatible(self, subject: str, sent: dict[str, Any], earlier: Sequence[int]) -> bool:
        """By the level of the subject. Of other kinds than Avro, all schemas are compatible."""
        document = self._document(sent)
        level = self.levels.get(subject, self.levels[""])
        if document["schemaType"] != "AVRO" or level == "NONE":
            return True
        schemas = [json.loads(self.schemas[number]["schema"]) for number in earlier]
        return is_compatible(json.loads(document["schema"]), schemas, level)


class Refused(Exception):
    """The answer to a request that is refused."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


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

        def do_DELETE(self) -> None:
            self._respond(b"")

        def do_POST(self) -> None:
            self._respond(self.rfile.read(int(self.headers["Content-Length"])))

        def do_PUT(self) -> None:
            self.do_POST()

        def _respond(self, body: bytes) -> None:
            registry.requests.append(f"{self.command} {self.path}")
            if registry.failures:
                status = registry.failures.pop(0)
                document: Any = {"error_code": 50001, "message": "Error in the backend"}
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

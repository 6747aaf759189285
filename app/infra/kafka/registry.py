"""A schema registry with Confluent's REST API.

https://docs.confluent.io/platform/current/schema-registry/develop/api.html
"""

from __future__ import annotations

import base64
import binascii
import http.client
import json
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

from app.infra.kafka.errors import SourceFailed, SourceUnavailable
from app.infra.outbound.addresses import AddressRefused, Rules
from app.infra.outbound.connector import Connector
from app.infra.outbound.foreign import foreign_text
from app.kernel.codecs.messages.avro_schema import AvroSchema
from app.kernel.codecs.messages.proto_schema import ProtoSchema
from app.kernel.codecs.messages.reading import BadMessage, MessageSchema, UnsupportedSchema
from app.kernel.codecs.messages.records import MessageFormat

_ANSWER_BYTES_MAX: Final = 2 * 1024 * 1024
_ANSWER_SECONDS_MAX: Final = 15.0
_REFERENCES_MAX: Final = 50
_SCHEMAS_MAX: Final = 256
_REGISTRIES_MAX: Final = 32
_UNKNOWN_MAX: Final = 100
_RETRY_SECONDS: Final = (0.2, 0.5)
_IDS: Final = 2**32
# It is not compatible with those before it, or not valid there.
_REFUSED: Final = frozenset({http.client.CONFLICT, http.client.UNPROCESSABLE_ENTITY})
_CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json"
_TYPES: Final = {"AVRO": MessageFormat.AVRO, "PROTOBUF": MessageFormat.PROTOBUF, "JSON": MessageFormat.JSON}


@dataclass(frozen=True, kw_only=True, slots=True)
class RegistryAddress:
    """Where a registry is, and how to identify oneself to it."""

    url: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)


class SchemaRegistry:
    """The schemas of a registry. A schema never changes, so the last ones that were read are kept."""

    def __init__(self, address: RegistryAddress, rules: Rules) -> None:
        self._address = address
        self._connector = Connector(rules=rules)
        self._schemas: OrderedDict[tuple[int, MessageFormat], MessageSchema] = OrderedDict()
        self._ids: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._lock = threading.Lock()

    def schema(self, number: int, form: MessageFormat) -> MessageSchema:
        """The schema with an id, which must be of this format.

        Raises BadMessage if there is none, or if it is not supported, SourceUnavailable, SourceFailed.
        """
        place = (number, form)
        with self._lock:
            message_schema = self._schemas.get(place)
            if message_schema is not None:
                self._schemas.move_to_end(place)
                return message_schema
        document = self._get(f"/schemas/ids/{number}", form)
        if document is None:
            raise BadMessage(f"the schema registry has no schema {number}")
        try:
            message_schema = self._parsed(document, form)
        except UnsupportedSchema as error:
            raise BadMessage(f"its schema {number} is not supported: {error}") from None
        with self._lock:
            self._schemas[place] = message_schema
            while len(self._schemas) > _SCHEMAS_MAX:
                self._schemas.popitem(last=False)
        return message_schema

    def register(self, subject: str, schema: str, seconds_max: float) -> int:
        """The id of an Avro schema, which gets a version of the subject unless it has one.

        Raises SourceUnavailable, and SourceFailed if the registry does not accept it.
        """
        place = (subject, schema)
        with self._lock:
            schema_id = self._ids.get(place)
            if schema_id is not None:
                self._ids.move_to_end(place)
                return schema_id
        path = f"/subjects/{quote(subject, safe='')}/versions"
        content = json.dumps({"schema": schema, "schemaType": "AVRO"}).encode()
        document = self._request("POST", path, content, min(seconds_max, _ANSWER_SECONDS_MAX))
        schema_id = None if document is None else document.get("id")
        if not isinstance(schema_id, int) or isinstance(schema_id, bool) or not 0 <= schema_id < _IDS:
            raise self._unusable(f"no id for the schema of subject {subject!r}")
        with self._lock:
            self._ids[place] = schema_id
            while len(self._ids) > _SCHEMAS_MAX:
                self._ids.popitem(last=False)
        return schema_id

    def _parsed(self, document: dict[str, Any], form: MessageFormat) -> MessageSchema:
        """Raises UnsupportedSchema, BadMessage, SourceUnavailable, SourceFailed."""
        kind = document.get("schemaType", "AVRO")
        if _TYPES.get(kind) is not form:
            raise UnsupportedSchema(f"it is of type {kind}, but the messages are read as {form.value}")
        references: dict[str, str] = {}
        self._collect(document, form, references)
        text = _text_of(document)
        if form is MessageFormat.AVRO:
            return AvroSchema(text, list(references.values()))
        files = [(name, _file(each)) for name, each in references.items()]
        return ProtoSchema(_file(text), files)

    def _collect(self, document: dict[str, Any], form: MessageFormat, texts: dict[str, str]) -> None:
        """Adds the schemas that a schema refers to, by the names that it uses, each after its own references."""
        references = document.get("references") or []
        if not isinstance(references, list):
            raise self._unusable("references that are no list")
        for reference in references:
            try:
                name, subject, version = reference["name"], reference["subject"], int(reference["version"])
            except (TypeError, KeyError, ValueError):
                raise self._unusable("a reference without name, subject and version") from None
            if name in texts:
                continue
            if len(texts) >= _REFERENCES_MAX:
                raise UnsupportedSchema(f"it refers to more than {_REFERENCES_MAX} schemas")
            inner = self._get(f"/subjects/{quote(str(subject), safe='')}/versions/{version}", form)
            if inner is None:
                raise UnsupportedSchema(
                    f"it refers to version {version} of {subject!r}, which does not exist"
                )
            # Its place is taken first, so that references in a circle end.
            texts[name] = ""
            self._collect(inner, form, texts)
            del texts[name]
            texts[name] = _text_of(inner)

    def _get(self, path: str, form: MessageFormat) -> dict[str, Any] | None:
        """A document; None if there is none. Raises SourceUnavailable, SourceFailed."""
        query = "?format=serialized" if form is MessageFormat.PROTOBUF else ""
        for seconds in (*_RETRY_SECONDS, None):
            try:
                return self._request("GET", path + query, None, _ANSWER_SECONDS_MAX)
            except SourceUnavailable:
                if seconds is None:
                    raise
                time.sleep(seconds)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _request(
        self, method: str, path: str, content: bytes | None, seconds_max: float
    ) -> dict[str, Any] | None:
        headers = {"Accept": _ACCEPT, "User-Agent": "Headwater"}
        if content is not None:
            headers["Content-Type"] = _CONTENT_TYPE
        if self._address.username is not None:
            credentials = f"{self._address.username}:{self._address.password or ''}"
            headers["Authorization"] = "Basic " + base64.b64encode(credentials.encode()).decode()
        try:
            target = self._connector.rules.target(self._address.url.rstrip("/") + path)
            with self._connector.connected(target, time.monotonic() + seconds_max) as connection:
                connection.request(method, target.path, content, headers)
                response = connection.getresponse()
                status, answer = response.status, response.read(_ANSWER_BYTES_MAX + 1)
        except AddressRefused as error:
            raise SourceFailed(f"the schema registry may not be connected to: {error}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise SourceUnavailable(f"the schema registry cannot be reached: {foreign_text(error)}") from None
        return self._document(status, answer)

    def _document(self, status: int, content: bytes) -> dict[str, Any] | None:
        """The document of an answer; None if there is none. Raises SourceUnavailable, SourceFailed."""
        if status == http.client.NOT_FOUND:
            return None
        if status in {http.client.UNAUTHORIZED, http.client.FORBIDDEN}:
            raise SourceFailed(f"the schema registry does not accept the credentials (status {status})")
        if status in _REFUSED:
            raise SourceFailed(f"the schema registry does not accept the schema: {_reason(status, content)}")
        if status != http.client.OK:
            raise SourceUnavailable(f"the schema registry answered with status {status}")
        if len(content) > _ANSWER_BYTES_MAX:
            raise self._unusable(f"an answer of more than {_ANSWER_BYTES_MAX} bytes")
        try:
            document = json.loads(content)
        except (ValueError, RecursionError):
            raise self._unusable("an answer that is not JSON") from None
        if not isinstance(document, dict):
            raise self._unusable("an answer that is not an object")
        return document

    @staticmethod
    def _unusable(what: str) -> SourceFailed:
        return SourceFailed(f"the schema registry returned {what}")


class SchemasOfRound:
    """The schemas of the messages of a round. Ids that are unknown are requested once, and there may be few of them."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._faults: dict[int, str] = {}

    def __call__(self, form: MessageFormat, number: int) -> MessageSchema:
        """The schema with an id. Raises BadMessage, SourceUnavailable, SourceFailed."""
        if number in self._faults:
            raise BadMessage(self._faults[number])
        try:
            return self._registry.schema(number, form)
        except BadMessage as error:
            if len(self._faults) >= _UNKNOWN_MAX:
                raise SourceFailed(
                    f"the messages name more than {_UNKNOWN_MAX} schemas that the registry does not have, or that are "
                    f"not supported; the last one: {error}"
                ) from None
            self._faults[number] = str(error)
            raise


@lru_cache(maxsize=_REGISTRIES_MAX)
def registry_of(address: RegistryAddress, rules: Rules) -> SchemaRegistry:
    """The registry at an address. It is the same one for the same address, credentials and rules."""
    return SchemaRegistry(address, rules)


def _reason(status: int, content: bytes) -> str:
    """What the registry says, or the status alone."""
    try:
        return foreign_text(json.loads(content[:_ANSWER_BYTES_MAX])["message"])
    except (ValueError, RecursionError, KeyError, TypeError):
        return f"status {status}"


def _text_of(document: dict[str, Any]) -> str:
    text = document.get("schema")
    if not isinstance(text, str):
        raise UnsupportedSchema("the registry returned no schema")
    return text


def _file(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise UnsupportedSchema(
            "the registry does not serialize Protobuf schemas (format=serialized)"
        ) from None

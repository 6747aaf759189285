"""The component schemas that become values of the Python client, and the module of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

Schema = Mapping[str, Any]

_REFERENCE: Final = "#/components/"
# Requests, and parts of them, that the client or its users create. For the others the client has a form of its own, or
# null and an absent member differ in them.
_REQUESTS: Final = frozenset(
    {
        "Aggregate",
        "CreateBucket",
        "CreateClean",
        "CreateClustering",
        "CreateCompaction",
        "CreateExport",
        "CreateField",
        "CreateLease",
        "CreateNamedVersion",
        "CreateRestore",
        "CreateRetention",
        "CreateRecipient",
        "CreateRecipientGrant",
        "CreateRollback",
        "CreateSchema",
        "CreateSequenceGroup",
        "CreateShare",
        "CreateSharedDataset",
        "CreateSource",
        "CreateTable",
        "CreateUploadLink",
        "CreateVerification",
        "CreateView",
        "CreateWebhook",
        "CreateWithRows",
        "DeliveryState",
        "EndPartitions",
        "ExportState",
        "FileCompression",
        "FileFormat",
        "Format",
        "IndexType",
        "MergeMode",
        "OnError",
        "Operation",
        "Overwrite",
        "QueryType",
        "ReadOrder",
        "ReadQuery",
        "SaveMode",
        "SchemaChange",
        "SourceMode",
    }
)
# Tags with a common module. They are neighbours in the document.
_MODULES: Final = {
    **dict.fromkeys(("savepoints", "tags", "restores", "comparisons"), "versions"),
    **dict.fromkeys(("cleans", "compactions", "clusterings", "analyses"), "maintenance"),
    "rows": "reads",
}
_OF_OPERATORS: Final = "health"


class Components:
    """The components of a document by name."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self.schemas: Mapping[str, Schema] = document["components"]["schemas"]
        self.responses: Final = self._reached(
            operation["responses"] for tags, operation in self._operations() if _OF_OPERATORS not in tags
        )
        self.requests: Final = self._reached(
            [{"$ref": f"{_REFERENCE}schemas/{name}"} for name in _REQUESTS & self.schemas.keys()]
        )

    def modules(self) -> dict[str, list[str]]:
        """The names of the components of each module.

        A component is in the module of the first tag whose operations use it. It is used with all that it refers to,
        so that modules import only modules of earlier tags.
        """
        names_by_component: dict[str, list[str]] = {}
        left = self.responses | self.requests
        for tag in (each["name"] for each in self._document["tags"]):
            used = self._reached(operation for tags, operation in self._operations() if tag in tags) & left
            names_by_component.setdefault(_MODULES.get(tag, tag), []).extend(used)
            left -= used
        return names_by_component

    def schema(self, reference: str) -> tuple[str, Schema]:
        """The component of a reference, with its name; of several forms of a value, the first, which is the default."""
        name = reference.removeprefix(f"{_REFERENCE}schemas/")
        schema = self.schemas[name]
        if "anyOf" in schema and "$ref" in schema["anyOf"][0]:
            return self.schema(schema["anyOf"][0]["$ref"])
        return name, schema

    def _operations(self) -> Iterator[tuple[list[str], Mapping[str, Any]]]:
        for path in self._document["paths"].values():
            for operation in path.values():
                yield operation["tags"], operation

    def _reached(self, nodes: Any) -> set[str]:
        """The schemas that nodes refer to, also through others, without those that become a mapping."""
        names_by_component: set[str] = set()
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if isinstance(node, list):
                waiting += node
            elif isinstance(node, dict):
                waiting += [each for key, each in node.items() if key not in ("$ref", "examples")]
                waiting += self._referred(node.get("$ref", ""), names_by_component)
        return names_by_component

    def _referred(self, reference: str, names_by_component: set[str]) -> list[Any]:
        kind, _, name = reference.removeprefix(_REFERENCE).partition("/")
        if kind == "schemas":
            name, schema = self.schema(reference)
            if name in names_by_component or is_mapping(schema):
                return []
            names_by_component.add(name)
            return [schema]
        # The others are examples.
        return [self._document["components"][kind][name]] if kind in ("parameters", "responses") else []


def is_mapping(schema: Schema) -> bool:
    """Whether an object may have any members."""
    return schema.get("type") == "object" and bool(schema.get("additionalProperties"))


def union_of(schema: Schema) -> list[Schema]:
    """The members of a union; none for another schema."""
    members: list[Schema] = schema.get("oneOf") or schema.get("anyOf") or []
    return members

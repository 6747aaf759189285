"""The pages can be followed one after another on one service, because each registers datasets of its own."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.docs.examples import examples

ROOT = Path(__file__).parents[2]
MARKDOWN = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DOCUMENTS = [document for document in MARKDOWN if examples(document)]
# Requests with curl or a function around it, and calls of Python clients. The name is the first member of a definition.
REGISTRATIONS = (
    r"""(?:/datasets|/views|\bregister)"? [^{\n]*\{\s*\\?"name\\?": \\?"('\$\w+'|\w+)""",
    r"""/datasets/(\w+)/writes\?create=true""",
    r"""\b(?:New|Create)(?:Dataset|View)\(\s*name="(\w+)""",
    r"""\bheadwater (?:create (\w+)|write (\w+) [^\n]*--create\b)""",
)


def commands(document):
    return "\n".join(example.command for example in examples(document))


def registered(text):
    """The names of the datasets and views that commands register, one by one or in a loop over names."""
    loops = {f"'${name}'": words.split() for name, words in re.findall(r"\bfor (\w+) in ([^;\n]+); do", text)}
    names = [
        next(filter(None, match.groups()))
        for pattern in REGISTRATIONS
        for match in re.finditer(pattern, text)
    ]
    return [each for name in names for each in loops.get(name, [name])]


def test_no_two_documents_register_the_same_dataset():
    documents = defaultdict(list)
    for document in DOCUMENTS:
        for name in registered(commands(document)):
            documents[name].append(str(document.relative_to(ROOT)))
    assert documents
    assert {name: found for name, found in documents.items() if len(found) > 1} == {}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(ROOT)))
def test_every_requested_dataset_is_registered_by_the_same_document(document):
    text = commands(document)
    requested = set(re.findall(r"/datasets/(\w+)", text)) | set(re.findall(r'get_dataset\("(\w+)"', text))
    assert requested - {"nowhere"} <= set(registered(text))


@pytest.mark.parametrize(
    "command",
    [
        'curl "$URL/datasets" -H "$AUTH" -d \'{\n  "name": "cups", "schema": {"fields": [{"name": "id"}]}}\'',
        'call POST /datasets \'{"name": "cups"}\'',
        "for NAME in cups; do\n  register '{\"name\": \"'$NAME'\"}'\ndone",
        'call POST /views "{\\"name\\": \\"cups\\"}"',
        'register \'{"name": "cups", "schema": {"fields": [{"name": "id"}]}}\'',
        'NewDataset(\n    name="cups", fields=(NewField(name="id", type="int64"),))',
        'CreateDataset(name="cups")',
        "headwater write cups cups.csv --create --key id",
        "headwater create cups --schema id:int64",
        'curl "$URL/datasets/cups/writes?create=true&record_key=id"',
    ],
)
def test_registration_is_found(command):
    assert registered(command) == ["cups"]

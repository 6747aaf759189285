"""Documentation, docstrings and comments are in plain technical English, and their lines are short."""

import ast
import io
import re
import subprocess
import tokenize

import pytest

from tests.architecture.syntax import ROOT, parsed

LINE_MAX = 120
README_WORDS_MAX = 1_500

# Code whose docstrings, comments and error messages are checked as well.
CODE = (
    "app",
    "bench",
    "clients/cli",
    "clients/demo",
    "clients/generator",
    "clients/python",
    "examples",
    "migrations",
    "requirements",
    "tests",
    "workers",
)

# A phrase that documentation does not use, and what it uses instead.
PHRASES = {
    r"tells?|told|telling": "return, report, emit, contain",
    r"whoever|nobody": "name the reader, the client or the operator",
    r"anew": "again",
    r"by and by": "later",
    r"of old": "old, archived",
    r"unless (it |that is )?said|unless (it says|given|asked)": "default",
    r"asks? for|asked for|is asked|are asked|asks": "request",
    r"so many": "this number of",
    r"as (it|they) (came|come)": "unchanged, unmerged",
    r"sets? aside": "quarantine",
    r"driven again|drives? again": "redrive",
    r"(?<!there )(is|are|be) none": "there is no; not a",
    r"(cannot|can) be had": "available",
    r"moot": "no-op",
    r"landmarks?": "starting position",
    r"stretch(es)?": "range",
    r"keepers?": "maintenance policy, reconciler",
    r"bells?": "notify",
    r"lanes?": "queue",
    r"findings": "error, result, difference",
    r"forgets?|forgotten|forgetting": "expire, delete",
    r"meets?|met": "match, join, exist",
    r"said|says (who|when|that)": "specified, documented",
    r"looks? (at|up and|for|on)|looked at": "check, poll, read",
    r"takes? (its|their) turns?|in its turn|taking turns": "in order, alternate",
    r"comes? (out|about)|came about": "result, happen",
    r"make of it|made of it|what (came|comes|became|becomes) of": "result",
}
BANNED = re.compile("|".join(rf"\b(?:{phrase})\b" for phrase in PHRASES), re.IGNORECASE)


def tracked(*patterns):
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--"]
    # `*` does not match a slash.
    patterns = [f":(glob){pattern}" if "*" in pattern else pattern for pattern in patterns]
    listing = subprocess.run([*command, *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(line for line in listing.stdout.splitlines() if (ROOT / line).is_file())


def documents():
    return tracked("**/*.md")


def modules():
    return [name for name in tracked(*CODE) if name.endswith(".py")]


def prose(name):
    """The lines outside of fenced blocks, with their numbers."""
    fenced = False
    for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def code_prose(source):
    """The lines of docstrings, of comments and of the messages in `raise` statements, with their numbers."""
    if any(BANNED.search(words(text)) for text in after_hashes(source)):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            texts = [node.value]
        elif isinstance(node, ast.Raise):
            texts = [each for each in ast.walk(node) if isinstance(each, ast.Constant)]
        else:
            continue
        for text in texts:
            if isinstance(text.value, str):
                for number, line in enumerate(text.value.splitlines(), text.lineno):
                    # None is a value of Python, not the word.
                    yield number, re.sub(r"\bNone\b", "", line)


def after_hashes(source):
    """What may be a comment: the rest of a line after each `#`. To cut all modules into tokens takes far longer."""
    for line in source.splitlines():
        for at, character in enumerate(line) if "#" in line else ():
            if character == "#":
                yield line[at:]


def words(line):
    """A line without code and the targets of links."""
    return re.sub(r"`[^`]*`|\]\([^)]*\)", " ", line)


def test_the_documents_are_found():
    assert {"README.md", "CHANGELOG.md", "docs/api.md", "docs/concepts.md"} <= set(documents())


@pytest.mark.parametrize("name", documents())
def test_lines_of_prose_are_short(name):
    # Cells of tables cannot be wrapped, nor can a word or a link.
    long = {
        f"{name}:{number}": len(line)
        for number, line in prose(name)
        if len(line) > LINE_MAX and not line.startswith("|") and " " in line.lstrip("#*- ")
    }
    assert not long, f"more than {LINE_MAX} characters"


def test_lines_of_comments_are_short():
    """In files that ruff does not check."""
    comments = re.compile(r"\s*(#|//|/?\*)")
    names = tracked(
        "Makefile", "Dockerfile", "**/*.ts", "**/*.toml", "**/*.yml", "**/*.yaml", "**/*.sh", "**/*.in"
    )
    assert {"Makefile", "clients/typescript/src/index.ts", "docker-compose.yml", "pyproject.toml"} <= set(
        names
    )
    long = {
        f"{name}:{number}": len(line)
        for name in names
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > LINE_MAX and comments.match(line)
    }
    assert not long, f"more than {LINE_MAX} characters"


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= README_WORDS_MAX


@pytest.mark.parametrize("name", documents())
def test_documents_use_the_usual_words(name):
    found = {}
    for number, line in prose(name):
        if match := BANNED.search(words(line)):
            found[f"{name}:{number} {match[0]}"] = replacement(match[0])
    assert not found


def test_modules_of_all_packages_are_found():
    found = set(modules())
    assert {
        "app/infra/settings.py",
        "app/kernel/format/dataset.py",
        "clients/python/headwater_client/client.py",
    } <= found
    assert all(any(name.startswith(each.partition("*")[0]) for name in found) for each in CODE)


@pytest.mark.parametrize("name", modules())
def test_code_uses_the_usual_words(name):
    found = {}
    for number, line in code_prose((ROOT / name).read_text(encoding="utf-8")):
        if match := BANNED.search(words(line)):
            found[f"{name}:{number} {match[0]}"] = replacement(match[0])
    assert not found


def replacement(found):
    return next(plain for phrase, plain in PHRASES.items() if re.fullmatch(phrase, found, re.IGNORECASE))


@pytest.mark.parametrize(
    "sentence",
    ["It is told what became of it.", "Those of old go by and by.", "1,000 unless said.", "It is none."],
)
def test_discouraged_phrase_is_found(sentence):
    assert BANNED.search(sentence)


@pytest.mark.parametrize(
    "source",
    [
        '"""What it is told."""',
        "x = 1  # so many",
        'def f():\n    """Summary.\n\n    Set aside.\n    """',
        'def f():\n    raise ValueError(f"{1} is asked for")',
    ],
)
def test_discouraged_phrase_in_code_is_found(source):
    assert any(BANNED.search(words(line)) for _, line in code_prose(source))


@pytest.mark.parametrize("source", ['x = "so many"', '"""It is None, `told`."""', "told = 1"])
def test_names_and_data_in_code_are_not_prose(source):
    assert not any(BANNED.search(words(line)) for _, line in code_prose(source))

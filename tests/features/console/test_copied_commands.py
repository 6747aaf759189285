"""The commands that pages show for copying: a value is never read as an option, nor as a key of a terminal."""

from __future__ import annotations

import subprocess

import httpx2
import pytest

from app.features.console.commands import curl_line, operands, shell
from app.features.console.visit import ApiCall
from tests.support.pages import PageElement, checked_page, page, submit

BASE = "/console/datasets/orders"
OPTION = "--url=http://example.com"


@pytest.mark.parametrize(
    ("address", "command"),
    [
        (f"rows/row?key={OPTION}", f"headwater get --history orders -- {OPTION}"),
        ("rows/row?key=1", "headwater get --history orders 1"),
        (f"rows?where={OPTION}", f"headwater rows orders --where={OPTION}"),
        (f"rows?columns={OPTION}", f"headwater rows orders --columns={OPTION}"),
        (f"rows?order_by={OPTION}", f"headwater rows orders --order-by={OPTION}"),
        (f"changes?since={OPTION}", f"headwater tail orders -f --since={OPTION}"),
        (f"changes?where={OPTION}", f"headwater tail orders -f --where={OPTION}"),
    ],
)
def test_a_value_is_no_option(visitor: httpx2.Client, orders: str, address: str, command: str) -> None:
    commands = [each.text for each in page(visitor, f"{BASE}/{address}").all("pre", class_="code")]
    assert command in [each.rstrip() for each in commands]


def test_the_label_of_a_list_is_no_option(visitor: httpx2.Client) -> None:
    commands = [each.text for each in page(visitor, "/console/datasets?label=team:ops").all("pre")]
    assert "headwater overview --label=team:ops" in commands


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("orders", "orders"),
        ("two words", "'two words'"),
        ("it's", """'it'"'"'s'"""),
        ("é\\n", "'é\\n'"),
        ("a\x03id\n", r"$'a\x03id\x0a'"),
        ("\x1b[2J", r"$'\x1b[2J'"),
        ("\x7f", r"$'\x7f'"),
        ("\x85é", r"$'\xc2\x85é'"),
        ("it's\t\\", r"$'it\'s\x09\\'"),
    ],
)
def test_control_characters_are_escaped(text: str, word: str) -> None:
    assert shell(text) == word
    printed = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True)
    assert printed.stdout.decode() == text


def test_operands_have_two_hyphens_before_them_if_one_could_be_an_option() -> None:
    assert operands(["a b", 7]) == "'a b' 7"
    assert operands(["7", "-1"]) == "-- 7 -1"


def arguments(line: str) -> list[str]:
    """The words that curl gets from a line in the plainest of shells."""
    script = f"HEADWATER_API_KEY=hw_1; curl() {{ printf '%s\\0' \"$@\"; }}; {line}"
    printed = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    return printed.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize(
    "body",
    ["{\"where\": \"name = 'it''s'\"}", "@/etc/passwd", "@id,note\n1,$HOME `id` \\\n", "-X", "é"],
)
def test_a_body_is_sent_as_it_is(body: str) -> None:
    call = ApiCall("POST", "/datasets/a%27b/writes?x=1&y=2", (("Content-Type", "text/csv"),), body)
    assert arguments(curl_line(call, "http://localhost:1")) == [
        *("-X", "POST", "-H", "Authorization: Bearer hw_1", "-H", "Content-Type: text/csv"),
        *("--data-raw", body, "http://localhost:1/datasets/a%27b/writes?x=1&y=2"),
    ]


@pytest.mark.parametrize("body", [None, "\x1b[2J", "a\r\n"])
def test_a_body_that_is_no_word_of_a_shell_is_a_file(body: str | None) -> None:
    call = ApiCall("POST", "/views", (("Content-Type", "application/json"),), body)
    assert arguments(curl_line(call, ""))[-3:] == ["--data-binary", "@body.json", "/views"]


def test_a_command_has_the_headers_of_its_request(visitor: httpx2.Client, orders: str) -> None:
    """A body needs its type, and a change its ETag."""
    fields = {"rows": "@id,note\n1,x", "format": "csv", "operation": "none"}
    refused = submit(visitor, page(visitor, f"{BASE}/write"), f"{BASE}/write", **fields)
    [line] = [each for each in curl_lines(checked_page(refused)) if "/writes?" in each]
    assert "-H 'Content-Type: text/csv'" in line
    assert "--data-raw '@id,note 1,x' " in line
    settings = page(visitor, f"{BASE}/settings")
    refused = submit(visitor, settings, f"{BASE}/settings", description="x" * 5_000)
    [line] = [each for each in curl_lines(checked_page(refused)) if "-X PATCH" in each]
    assert "-H 'If-Match: \"0\"'" in line


def curl_lines(root: PageElement) -> list[str]:
    return root.all("pre", class_="code")[-1].text.split("curl ")

"""The commands that pages show for copying: a value is never read as an option, nor as a key of a terminal."""

from __future__ import annotations

import subprocess

import httpx2
import pytest

from app.features.console.rendering import operands, shell
from tests.support.pages import page

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

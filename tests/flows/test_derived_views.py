"""Views computed by Spark, from the write to an input to the change in the view's feed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.docs.examples import check_answer, run
from tests.support.deployment import ROOT, Deployment
from tests.support.left_out import left_out
from tests.support.shares import share
from tests.support.table import Row, Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack

_numbers = count(1)
SCORES = {
    "fields": [
        {"name": "match_id", "type": "int64"},
        {"name": "player", "type": "string"},
        {"name": "score", "type": "int32"},
    ]
}
LEADERS = """
    SELECT ROW_NUMBER() OVER (ORDER BY score DESC, match_id, player) AS place, player, match_id, score
    FROM {scores} QUALIFY place <= 2
"""


@pytest.fixture
def scores(new_table: Callable[..., Table]) -> Table:
    return new_table(name=f"match_scores_{next(_numbers)}", schema=SCORES, record_key=["match_id", "player"])


def name_of(table: Table) -> str:
    return str(table.client.get(table.path).json()["name"])


def new_view(table: Table, sql: str, **settings: Any) -> Table:
    """A view of the table, which its SQL calls `{scores}`."""
    names = {"scores": name_of(table), "view": f"view_{next(_numbers)}"}
    body = {"name": names["view"], "sql": sql.format(**names), **settings}
    answer = table.client.post("/views", json=body)
    assert answer.status_code == 201, answer.text
    view = answer.json()
    return Table(
        deployment=table.deployment, client=table.client, id=view["id"], key=tuple(view["record_key"])
    )


def view_of(view: Table) -> Row:
    return view.client.get(f"/views/{view.id}").json()


def emitted(view: Table) -> list[tuple[int, str, Row]]:
    """The feed once the view has caught up with its inputs: version, op and row of each change."""

    def caught_up() -> bool:
        found = view_of(view)
        assert found["freshness"] != "failed", found["error"]
        return found["freshness"] == "current"

    until(caught_up, "the view to catch up", seconds_max=120)
    view.sound()
    return [(change["version"], change["op"], change["row"]) for change in view.changes()]


def score(match_id: int, player: str, score: int) -> Row:
    return {"match_id": match_id, "player": player, "score": score}


def led(place: int, match_id: int, player: str, score: int) -> Row:
    return {"place": place, "match_id": match_id, "player": player, "score": score}


# It takes half a minute.
@left_out("SECURITY_EXAMPLES", "security")
def test_ranking_view_emits_overtakings(scores: Table) -> None:
    """By place, what stands there is corrected; without a key, what is gone is retracted before new rows come."""
    placed = new_view(scores, LEADERS, record_key=["place"], bucket={"count": 1})
    loose = new_view(scores, LEADERS, record_key=[])
    assert view_of(placed)["mode"] == view_of(loose)["mode"] == "recompute"
    assert emitted(placed) == emitted(loose) == []
    scores.write("upsert", [score(1, "ann", 20), score(2, "bob", 15), score(2, "eve", 3)])
    ann, bob = led(1, 1, "ann", 20), led(2, 2, "bob", 15)
    assert emitted(placed) == emitted(loose) == [(1, "+A", ann), (1, "+A", bob)]
    # A match that was played earlier, and sent late.
    scores.write("upsert", [score(3, "cid", 18)])
    cid = led(2, 3, "cid", 18)
    assert emitted(placed)[2:] == [(2, "-C", bob), (2, "+C", cid)]
    assert emitted(loose)[2:] == [(2, "-R", bob), (2, "+A", cid)]
    # A score that does not reach the board changes nothing on it.
    scores.write("upsert", [score(4, "dan", 7)])
    assert len(emitted(placed)) == len(emitted(loose)) == 4
    assert view_of(placed)["inputs"][0]["lag"] == 0
    scores.write("delete", [{"match_id": 1, "player": "ann"}])
    first, second = led(1, 3, "cid", 18), led(2, 2, "bob", 15)
    assert emitted(placed)[4:] == [(3, "-C", ann), (3, "+C", first), (3, "-C", cid), (3, "+C", second)]
    changes = emitted(loose)[4:]
    assert [op for _, op, _ in changes] == ["-R", "-R", "+A", "+A"]
    assert by_place(changes) == by_place(
        [(3, "-R", ann), (3, "-R", cid), (3, "+A", first), (3, "+A", second)]
    )
    scores.run_write("delete", where="score < 18")
    assert emitted(placed)[8:] == emitted(loose)[8:] == [(4, "-R", second)]


def by_place(changes: list[tuple[int, str, Row]]) -> list[tuple[int, str, Row]]:
    """Of rows without a key, those of one version stand in no order of their own."""
    return sorted(changes, key=lambda change: (change[1], change[2]["place"]))


@share(4)
def test_row_by_row_view_follows_every_change(scores: Table) -> None:
    sql = (
        "SELECT player, match_id, upper(player) AS name, score * 10 AS points FROM {scores} WHERE score >= 10"
    )
    view = new_view(scores, sql, bucket={"count": 1})
    assert (view_of(view)["mode"], view.key) == ("row_by_row", ("match_id", "player"))
    scores.write("upsert", [score(1, "ann", 20), score(1, "bob", 5)])
    emitted(view)
    for written in (12, 13, 9):
        scores.write("upsert", [score(1, "bob", written)])
        changes = emitted(view)

    def row(player: str, points: int) -> Row:
        return {"player": player, "match_id": 1, "name": player.upper(), "points": points}

    assert changes == [
        (1, "+A", row("ann", 200)),
        (2, "+A", row("bob", 120)),
        (3, "-C", row("bob", 120)),
        (3, "+C", row("bob", 130)),
        (4, "-R", row("bob", 130)),
    ]
    items = view.client.get(f"{view.path}/timeline").json()["items"]
    assert {entry["operation"] for entry in items[:-1]} == {"changelog"}
    # The feed of the scores: ann, bob 5, bob 5 → 12, 12 → 13, 13 → 9.
    origins = view.client.get(f"/views/{view.id}/origins").json()["origins"]
    assert [each["origin"] for each in origins] == [0, 3, 4, 5, 6]


@share(4)
def test_grouping_view_corrects_its_groups(scores: Table) -> None:
    sql = "SELECT player, count(*) AS matches, sum(score) AS total FROM {scores} GROUP BY player"
    view = new_view(scores, sql, bucket={"count": 1})
    assert view.key == ("player",)
    scores.write("upsert", [score(1, "ann", 20), score(2, "ann", 1), score(2, "bob", 15)])
    emitted(view)
    scores.write("delete", [{"match_id": 1, "player": "ann"}, {"match_id": 2, "player": "bob"}])

    def row(player: str, matches: int, total: int) -> Row:
        return {"player": player, "matches": matches, "total": total}

    assert emitted(view) == [
        (1, "+A", row("ann", 2, 21)),
        (1, "+A", row("bob", 1, 15)),
        (2, "-C", row("ann", 2, 21)),
        (2, "+C", row("ann", 1, 1)),
        (2, "-R", row("bob", 1, 15)),
    ]


@share(8)
def test_join_view_reads_a_transaction_as_a_whole(scores: Table, new_table: Callable[..., Table]) -> None:
    players = new_table(record_key=["player"], schema={"fields": [
        {"name": "player", "type": "string"}, {"name": "team", "type": "string"}]})  # fmt: skip
    join = f"""
        SELECT s.match_id, s.player, s.score, p.team FROM {{scores}} AS s
        LEFT JOIN {name_of(players)} AS p ON s.player = p.player
    """
    view = new_view(scores, join, record_key=["match_id", "player"], bucket={"count": 1})
    for number in range(3):
        writes = [
            {"dataset": table.id, "operation": "upsert", "source": {"kind": "rows", "rows": rows}}
            for table, rows in (
                (scores, [score(number, f"p{number}", 1)]),
                (players, [{"player": f"p{number}", "team": "reds"}]),
            )
        ]
        assert scores.client.post("/transactions", json={"writes": writes}).status_code == 202
    until(lambda: scores.version == 3, "the transactions")
    changes = emitted(view)
    # Never is one seen with its score and without its team.
    assert [(op, row["team"]) for _, op, row in changes] == [("+A", "reds")] * 3


@share(4)
def test_view_reports_rows_that_cannot_be_computed_and_recovers(scores: Table) -> None:
    view = new_view(scores, "SELECT match_id, player, 100 / score AS share FROM {scores}")
    twice = new_view(scores, "SELECT player, score FROM {scores}", record_key=["player"])
    scores.write("upsert", [score(1, "ann", 0), score(2, "ann", 4)])
    for each, reason in ((view, "zero"), (twice, "same key")):
        failed = until(lambda each=each: _failed(each), "the view to fail", seconds_max=60)
        assert failed["type"] == "/problems/derivation-failed"
        assert reason in failed["detail"].lower()
    scores.write("delete", [{"match_id": 1, "player": "ann"}])
    assert [row["share"] for row in _healed(view)] == [25]
    assert [row["score"] for row in _healed(twice)] == [4]


def _failed(view: Table) -> Row | None:
    return view_of(view)["error"]


def _healed(view: Table) -> list[Row]:
    until(lambda: view_of(view)["freshness"] == "current", "the view to get over it", seconds_max=60)
    return view.rows()


@share(3)
def test_document_examples_return_the_documented_responses(deployment: Deployment, tmp_path: Path) -> None:
    document = ROOT / "docs" / "views.md"
    answered = list(run(document, tmp_path, deployment.url, deployment.api_key))
    assert answered
    for example, received in answered:
        if example.answer is not None:
            check_answer(example.answer, received)

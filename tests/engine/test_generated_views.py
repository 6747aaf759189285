"""Whatever the text of a view is, Spark gets a query over the inputs of the view with listed functions, or nothing."""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import SparkSession

from app.kernel.format.errors import InvalidView
from app.kernel.sql.queries import ViewPlan, parse_view, to_spark_sql
from app.kernel.sql.queries.functions.functions import FUNCTIONS
from tests.support.commit_seed import commit_seed
from tests.support.examples import examples
from tests.support.generated_views import MARKER, ViewTexts
from tests.support.view_inputs import DATASETS, planned
from workers.engine.spark_engine import SparkEngine

_RELATION: Final = re.compile(r"UnresolvedRelation \[([^\]]*)\]")
_CALL: Final = re.compile(r"'(\w+)\(")
_COMMAND: Final = re.compile(
    r"Command|TableValuedFunction|UnresolvedHint|InsertInto|CreateTable|DropTable|Generate "
)
# Calls that the writer makes by itself: the error of a number that is not finite, and elements of lists. And what
# Spark's parser makes of BETWEEN.
_OWN: Final = {"raise_error", "get", "between"}


def plan_or_none(text: str) -> ViewPlan | None:
    """The plan of a text that the service accepts."""
    try:
        # A dataset that does not exist is refused before the view is bound.
        return planned(text) if set(parse_view(text).inputs) <= set(DATASETS) else None
    except InvalidView:
        return None


def test_generated_texts_read_their_inputs_only(engine: SparkEngine) -> None:
    texts = ViewTexts(commit_seed())
    wanted = examples(300)
    accepted = 0
    session = SparkSession.getActiveSession()
    assert session is not None
    for _ in range(wanted):
        text = texts.text()
        plan = plan_or_none(text)
        if plan is not None:
            accepted += 1
            check(session, text, plan)
    # The generator is worth something only if many of its texts are views.
    assert accepted > wanted / 5


def check(session: SparkSession, text: str, plan: ViewPlan) -> None:
    relations = {name: f"view_input_{number}" for number, name in enumerate(plan.inputs)}
    written = to_spark_sql(plan, relations)
    assert MARKER not in written, text
    # What Spark's own parser makes of it, before any name is looked up.
    tree = session._jsparkSession.sessionState().sqlParser().parsePlan(written).toString()
    own = {f"in{number}" for number in range(1, len(plan.inputs) + 1)}
    read = set(_RELATION.findall(tree))
    assert {name for name in read if not re.fullmatch(r"withs\d+", name)} <= own | set(relations.values()), (
        text,
        written,
    )
    assert not _COMMAND.search(tree), (text, written)
    called = {name.lower() for name in _CALL.findall(tree)}
    assert called <= {name.lower() for name in FUNCTIONS} | _OWN, (text, written)

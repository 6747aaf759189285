"""The SQL of views: datasets whose rows are the result of a query over other datasets.

    tokens, expression_parser, parse        text to a syntax tree of our own (`tree`): nothing but what views may say
    kinds, functions                        which functions there are, what they take and give
    coercion, relation_types                types of values, and how they become one another
    scope, clause, values                   which columns can be named where, and what is known of a value
    calls, expressions, sources, queries    syntax tree and schemas to SQL for the engine, all types known
    bind, plan                              the whole of it: `ViewPlan`

The engine never sees the text of a user: what it runs is written from the tree, and all that is not in the tree does
not exist. A parser of the whole of SQL would read much more, only to have it refused again, and try ways through
hostile text whose number doubles with each of its parentheses; this one reads each token once.
"""

from app.lake.views.bind import bind_view
from app.lake.views.parse import ParsedView, parse_view
from app.lake.views.plan import ViewInput, ViewPlan, to_spark_sql
from app.lake.views.relation_types import relation_type

__all__ = ["ParsedView", "ViewInput", "ViewPlan", "bind_view", "parse_view", "relation_type", "to_spark_sql"]

"""The SQL of views: a query over datasets, bound to their schemas, and the SQL that the engine runs for it.

    language, call_parser, parse            words and signs of queries; text to syntax tree
    functions                               the functions, what they take and return
    coercion, relation_types, literals      types of values, and how one becomes another
    scope, clause, values, bound            which columns can be named where; what is known of a value and of a query
    calls, expressions, sources             syntax tree and schemas to SQL for the engine, all types known:
    selects, queries                        from one expression to the whole query
    cross_joins                             which joins compare all pairs of rows
    bind, keys, plan                        parsed view and schemas to `ViewPlan`

The engine never reads the text of a user: what it runs is written from the tree.
"""

from app.kernel.sql.queries.bind import bind_view
from app.kernel.sql.queries.parse import ParsedView, parse_view
from app.kernel.sql.queries.plan import ViewInput, ViewPlan, to_spark_sql
from app.kernel.sql.queries.relation_types import relation_type

__all__ = ["ParsedView", "ViewInput", "ViewPlan", "bind_view", "parse_view", "relation_type", "to_spark_sql"]

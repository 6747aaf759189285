"""SQL that users write: conditions on rows (`where`) and the queries of views. No text of a user reaches an engine.

    language                                what differs between the two: signs, reserved words, limits, errors
    lexer, reader                           text to tokens; how deep they nest, and a position among them
    expression_parser                       tokens to expressions, for both
    syntax                                  the nodes of the syntax tree
    names                                   hints on names that do not exist
    conditions                              a condition, bound to a schema: which rows match, which files can;
                                            row_access, bound_access: row filters and masks of grants
    read_order                              the order of the rows of a read: sorted runs, and ranges of them
    queries                                 a query, bound to the schemas of its datasets: the SQL that the engine runs

A text is parsed by a grammar of this room and bound to schemas. What has no node in the tree, or no case in a binder,
does not exist. Each token is read once, and only brackets, CASE, NOT and signs nest, so the time to read a hostile
text is linear in its length.
"""

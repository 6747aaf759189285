"""Computing views: Spark runs generated SQL between Python tasks that read the inputs and stage the result."""

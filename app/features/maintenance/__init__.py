"""Maintenance: tasks that rewrite the files of a dataset, and the reconcilers that start tasks by themselves.

A compaction folds logs and small files into base files; a clustering orders the rows of files by some columns. Both are
jobs beside the writes of the dataset (`handlers`, `service/table_services`, `service/run_table_service`): they change
no row and yield to writes. `service/run_maintenance` calls the reconcilers of a dataset after its commits and when
they are due; each carries out one member of `services` of the dataset (`service/compaction`,
`service/clustering`, and those of other features) and keeps its state in `repository/maintenance`.

    POST /datasets/orders/compactions
    POST /datasets/orders/clusterings {"columns": ["customer"]}
"""

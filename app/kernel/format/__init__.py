"""The table format: what a dataset is and how its rows and files are laid out. Pure values and rules, no I/O.

    definition    a registration (`CreateDataset`) to a checked `DatasetDefinition`; how a definition changes
    schema        types, fields with ids, reading rows under another schema
    partition     `partition_by`: fields, transforms, paths, globs
    rows          what a stored row consists of: keys, buckets, staging, placement, meta columns, change columns
    index         deletion vectors, key indexes, bounds of columns
    dataset, file_group, instant, paths    the values that every other room uses
    clustering, policies                   layouts of rows, and the policies of table services
    errors        every error that the service reports, with a code and facts, without an HTTP status

`DatasetDefinition` is passed everywhere, and `define_dataset` is the only function that makes one:

>>> from app.kernel.format.definition.dataset_definition import define_dataset
>>> from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
>>> field = CreateField(name="id", type="int64", nullable=False)
>>> trips = define_dataset(CreateDataset(name="trips", schema=CreateSchema(fields=(field,)), record_key=("id",)))
>>> trips.merge_mode.value, trips.bucket.mode.value
('commit_time', 'fixed')
"""

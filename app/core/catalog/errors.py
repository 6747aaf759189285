"""Errors of datasets."""

from __future__ import annotations

from app.kernel.format.errors import HeadwaterError


class DatasetExists(HeadwaterError):
    """A live dataset of this tenant already has the name."""

    code = "dataset-exists"
    title = "A dataset of this name already exists"


class DatasetInUse(HeadwaterError):
    """A dataset that views read cannot be deleted. Fact: `views`, their names."""

    code = "dataset-in-use"
    title = "Views read this dataset"


class SchemaInUse(HeadwaterError):
    """A change of the schema breaks what names columns of the dataset.

    Facts: `breaks` (at most 100, each with `kind`, `id`, `name`, `column`, `detail` and `action`), `break_count`,
    `hidden` (the number of those that the key may not see).
    """

    code = "schema-in-use"
    title = "The change of the schema breaks what reads this dataset"


class SchemaChanged(HeadwaterError):
    """The schema of a dataset has changed since the request was checked against it. Fact: `dataset`, its id."""

    code = "schema-changed"
    title = "The schema of the dataset has just changed"
    may_pass = True


class DerivedDataset(HeadwaterError):
    """The rows of a view change with its inputs, never by a write to it or a change of its schema."""

    code = "derived-dataset"
    title = "This dataset is a view"

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


class DerivedDataset(HeadwaterError):
    """The rows of a view change with its inputs, never by a write to it or a change of its schema."""

    code = "derived-dataset"
    title = "This dataset is a view"

"""What features state by name."""

import pytest

from app.core.feature.api import provided_by_name
from app.core.feature.feature import merged
from app.process.api import PROVIDERS


def test_entries_of_all_features_are_merged():
    assert merged({"jobs": 1}, {"views": 2}, {}) == {"jobs": 1, "views": 2}


def test_name_that_two_features_state_is_refused():
    with pytest.raises(ValueError, match="exports, views"):
        merged({"views": 1, "exports": 2}, {"jobs": 3}, {"exports": 4, "views": 5})


def test_dependency_with_the_name_of_a_provider_is_refused():
    assert set(provided_by_name({"jobs": 1}, PROVIDERS)) == {"jobs", *PROVIDERS}
    with pytest.raises(ValueError, match="path_dataset"):
        provided_by_name({"jobs": 1, "path_dataset": 2}, PROVIDERS)

"""Writes to one table, by whichever workers a test runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.core.consumers.followers import ConsumerKind
from app.core.consumers.repository.followers import add_follower
from app.infra.files.storage import LocalStorage
from app.infra.identifiers import new_id
from tests.support.store_fixtures import Stores
from tests.support.versioned_tables import kind_of
from tests.support.writing import Writing


@pytest.fixture
def writing(stores: Stores, tenant_id: str, tmp_path: Path) -> Writing:
    """Of a table with one file group a day."""
    made = stores.catalog.create(tenant_id, new_id(), kind_of("copy_on_write, bloom"))
    return Writing(database=stores.database, storage=LocalStorage(tmp_path), dataset=made)


@pytest.fixture
def followed(writing: Writing) -> Writing:
    """The dataset has a follower that is at its beginning."""
    with writing.database.tenant(writing.tenant_id) as connection:
        add_follower(connection, writing.dataset.id, "view", ConsumerKind.VIEW, 0)
    return writing

"""Settings: each is declared once, for registrations, definitions, changes and responses."""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
import pytest

from app.core.catalog.schemas import DatasetResponse
from app.http.openapi.attribute_docs import attribute_docs
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset, with_settings
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.definition.schema_change import UpdateDataset
from app.kernel.format.definition.settings import (
    Change,
    SettingsUpdate,
    TableSettings,
    declared_settings,
    requested_changes,
)
from app.kernel.format.errors import InvalidDataset
from app.kernel.format.file_format import FileCompression

SCHEMA = CreateSchema(fields=[CreateField(name="id", type="int64")])


def plain(type_: Any) -> Any:
    """A type without its annotations."""
    return get_args(type_)[0] if get_origin(type_) is Annotated else type_


@pytest.mark.parametrize("type_", [CreateDataset, DatasetDefinition, DatasetResponse])
def test_each_form_of_a_dataset_has_the_settings_of_the_table(type_: type[TableSettings]) -> None:
    assert set(TableSettings.__struct_fields__) <= set(declared_settings(type_))


def test_each_setting_is_declared_and_documented() -> None:
    assert set(declared_settings(CreateDataset)) >= set(TableSettings.__struct_fields__)
    for type_ in (TableSettings, SettingsUpdate):
        assert set(attribute_docs(type_)) >= set(type_.__struct_fields__)


def test_members_of_an_update_are_the_settings_that_change_with_their_types() -> None:
    changing = {
        name
        for name, setting in declared_settings(CreateDataset).items()
        if setting.change is not Change.NEVER
    }
    assert set(SettingsUpdate.__struct_fields__) == changing
    settings, updates = get_type_hints(CreateDataset), get_type_hints(SettingsUpdate)
    for name in changing:
        assert plain(updates[name]) == plain(settings[name]) | msgspec.UnsetType
        assert isinstance(updates[name], UnionType) or get_args(updates[name])


def test_registration_is_stored_with_its_settings() -> None:
    new = CreateDataset(name="orders", schema=SCHEMA, target_bytes=100_000, compression=FileCompression.LZ4)
    dataset = define_dataset(new)
    assert (dataset.name, dataset.target_bytes, dataset.compression) == (
        "orders",
        100_000,
        FileCompression.LZ4,
    )


@pytest.mark.parametrize(
    ("settings", "pointer"),
    [
        ({"name": "1 2"}, "/name"),
        ({"name": "01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2"}, "/name"),
        ({"target_bytes": 64 * 1024 - 1}, "/target_bytes"),
        ({"target_bytes": 2**34 + 1}, "/target_bytes"),
    ],
)
def test_value_that_breaks_the_rule_of_its_setting_is_refused(settings: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidDataset) as refused:
        define_dataset(CreateDataset(**{"name": "orders", "schema": SCHEMA, **settings}))
    assert [error["pointer"] for error in refused.value.facts["errors"]] == [pointer]


def test_update_changes_what_it_has_and_nothing_else() -> None:
    dataset = define_dataset(CreateDataset(name="orders", schema=SCHEMA, target_bytes=100_000))
    changed = with_settings(dataset, UpdateDataset(compression=FileCompression.LZ4))
    assert changed == msgspec.structs.replace(dataset, compression=FileCompression.LZ4)
    assert with_settings(dataset, UpdateDataset(changes=[])) is dataset
    with pytest.raises(InvalidDataset) as refused:
        with_settings(dataset, UpdateDataset(name="no name"))
    assert [error["pointer"] for error in refused.value.facts["errors"]] == ["/name"]


def test_setting_that_never_changes_is_no_member_of_an_update() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `target_bytes`"):
        msgspec.convert({"target_bytes": 100_000}, UpdateDataset)
    assert requested_changes(TableSettings, UpdateDataset(name="trips"), Change.BY_VERSION) == {
        "name": "trips"
    }

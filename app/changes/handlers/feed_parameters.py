"""What every way to read a feed has in common: its parameters, and changes as text."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from litestar.params import QueryParameter

from app.catalog.values import Dataset
from app.changelog.forms import ChangeForm, symbols_of
from app.changes.positions import StartingPosition
from app.changes.values import ChangePage
from app.codecs.json.encode import encode_changes_json
from app.format.errors import FieldError, InvalidRequest
from app.http.context import Services
from app.http.query_parameters import INT64_MAX, natural

_STARTING_POSITIONS: Final = frozenset(position.value for position in StartingPosition)

Since: TypeAlias = Annotated[
    str | None,
    QueryParameter(
        pattern="^(earliest|now|[0-9]{1,19})$",
        description="The position to read from: how many changes were seen, 0 unless said. `earliest` is the first "
        "change that can still be read, `now` is the head.",
    ),
]
ConsumerName: TypeAlias = Annotated[
    str | None,
    QueryParameter(
        name="consumer", description="The consumer whose position to read from, in the place of `since`."
    ),
]
Until: TypeAlias = Annotated[
    int | None,
    QueryParameter(
        ge=0,
        le=INT64_MAX,
        description="The position to stop at: no change with this offset or a later one is read. One between a "
        "`-C` and its `+C` stops before both.",
    ),
]

Form: TypeAlias = Annotated[
    ChangeForm,
    QueryParameter(
        description="How changes are told. `two_event`: as they are stored, an update as `-C` directly followed by "
        "`+C`. `single_event`: an update as one `U` with `before`, at the offset of the `+C`. `retract`: an update as "
        "`-R` and `+A`. `upsert`: an update as the `+A` of the new row. `debezium`, `delta`: as those tell them."
    ),
]


SchemaChoice: TypeAlias = Annotated[
    str,
    QueryParameter(
        name="schema",
        pattern="^(latest|[0-9]{1,9})$",
        description="The schema under which rows are told, whichever they were written under: `latest`, or the id of "
        "one that the dataset had. Columns that a row does not have are null.",
    ),
]

Where: TypeAlias = Annotated[
    str | None,
    QueryParameter(
        description="A filter: the changes whose row it is true of. A `-C` and its `+C` come together where it is true "
        "of either."
    ),
]
Partitions: TypeAlias = Annotated[
    list[str] | None,
    QueryParameter(
        description="Globs of partition paths, repeated: the changes whose row is in a partition that matches one."
    ),
]


def requested_schema(choice: str) -> int | None:
    """The id of the schema that is asked for; None for the latest."""
    return None if choice == "latest" else int(choice)


async def start_of(
    services: Services, dataset: Dataset, since: str | None, consumer: str | None
) -> tuple[Dataset, int | StartingPosition]:
    """The position that `since` names, or where the consumer stands, and the dataset with all changes up to there.

    Raises InvalidRequest, NotFound.
    """
    if consumer is None:
        since = since or "0"
        return dataset, StartingPosition(since) if since in _STARTING_POSITIONS else natural(since, "since")
    if since is not None:
        detail = "expected `since` or `consumer`, not both"
        raise InvalidRequest(detail, [FieldError(pointer="/since", detail=detail)])
    consumer_status = await services.threads.run(services.consumers.get, dataset, consumer)
    if consumer_status.consumer.position > dataset.next_offset:
        # The changes up to there came after the dataset was found.
        dataset = await services.threads.run(services.datasets.get, dataset.tenant_id, dataset.id)
    return dataset, consumer_status.consumer.position


def encoded(page: ChangePage, *, as_ndjson: bool) -> bytes:
    """The changes of a page in its form, as one JSON array or one JSON object a line."""
    return encode_changes_json(page.events.table, as_ndjson=as_ndjson, symbols=symbols_of(page.form))

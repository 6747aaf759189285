"""Kinds of arguments that several commands have, with their help."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, validators

from headwater_client.cli.arguments.moments import instant, instant_before


def _split(kind: Any, tokens: Sequence[Any]) -> tuple[str, ...]:
    del kind
    return tuple(name.strip() for token in tokens for name in token.value.split(",") if name.strip())


def _file(kind: Any, tokens: Sequence[Any]) -> Path:
    del kind
    [token] = tokens
    if token.value.startswith("-") and token.value != "-":
        raise ValueError(f"there is no option {token.value}")
    return Path(token.value)


Names = Annotated[Sequence[str] | None, Parameter(converter=_split, n_tokens=1, negative="")]
"""Names, with commas between them or as repeated flags."""
Texts = Annotated[Sequence[str] | None, Parameter(negative="")]
"""Texts that may have commas: a repeated flag."""
InputFile = Annotated[Path, Parameter(converter=_file, n_tokens=1, allow_leading_hyphen=True)]
"""A file to read; `-` is the standard input."""
Count = Annotated[int, Parameter(validator=validators.Number(gte=0))]
"""How many of something: 0 or more."""
Flag = Annotated[bool, Parameter(negative="")]
"""A flag that is off by default, and has no `--no-` form."""
Ahead = Annotated[datetime | None, Parameter(converter=instant)]
"""A time to come, or a length from now."""
Before = Annotated[datetime | None, Parameter(converter=instant_before)]
"""A time that has passed, or a length before now."""
DatasetName = Annotated[str, Parameter(help="The name or the id of the dataset.")]
"""A dataset."""
ViewName = Annotated[str, Parameter(help="The id or the name of the view.")]
"""A view."""
SourceName = Annotated[str, Parameter(help="The id or the name of the source.")]
"""A source."""
ShareName = Annotated[str, Parameter(help="The id or the name of the share.")]
"""A share."""
ConsumerName = Annotated[str, Parameter(help="The name of the consumer.")]
"""A consumer of a dataset."""
WebhookId = Annotated[str, Parameter(help="The id of the webhook.")]
"""A webhook."""
ExportId = Annotated[str, Parameter(help="The id of the export.")]
"""An export."""
JobId = Annotated[str, Parameter(help="The id of the job.")]
"""A job."""
TenantOrOwn = Annotated[
    str | None,
    Parameter(help="The id or the name of a tenant; by default the tenant of the own key."),
]
"""A tenant, for a key of an operator."""

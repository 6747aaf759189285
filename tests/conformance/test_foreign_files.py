"""Files as those of public suites are read as what they hold, or refused with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from app.kernel.codecs.messages.reading import BadMessage, UnsupportedSchema
from app.kernel.format.errors import HeadwaterError
from tests.conformance.foreign_files import ForeignFile, foreign_files


@pytest.mark.parametrize("file", foreign_files(), ids=lambda file: f"{file.suite}: {file.name}")
def test_foreign_files_are_read_or_refused(file: ForeignFile) -> None:
    found: Any
    try:
        found = file.read()
    except (HeadwaterError, BadMessage, UnsupportedSchema) as error:
        found = str(error)
    if isinstance(file.expected, str):
        assert isinstance(found, str)
        assert file.expected in found
    else:
        assert found == file.expected

"""The error of a task, as the process that planned it gets it."""

from __future__ import annotations

import msgspec
import pytest

from app.infra.files.errors import CorruptFile
from app.kernel.format.errors import InvalidRequest
from workers.engine.task_setup import Refusal, accepted, refused


@pytest.mark.parametrize("error", [CorruptFile("damaged", path="a"), InvalidRequest("no", (), origin="b")])
def test_error_of_a_task_keeps_its_class_and_its_facts(error: CorruptFile | InvalidRequest) -> None:
    answer = msgspec.msgpack.decode(msgspec.msgpack.encode(refused(error)), type=Refusal)
    with pytest.raises(type(error), match=error.detail) as raised:
        accepted(answer)
    assert (type(raised.value), raised.value.facts) == (type(error), error.facts)

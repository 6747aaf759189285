"""CSV that commands print: null and the empty text differ, as in CSV of the service."""

from __future__ import annotations

import pytest

from headwater_client.cli.printing.output import put_csv


def test_null_is_nothing_and_an_empty_text_is_in_quotation_marks(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"a": 1, "b": "", "c": None, "d": 'x,"y"\n', "e": True, "f": [1, "é"]}, {"a": None, "b": "z"}]
    put_csv(rows)
    put_csv([{"only": None}, {"only": ""}])
    assert capsys.readouterr().out == (
        'a,b,c,d,e,f\n1,"",,"x,""y""\n",true,"[1,""é""]"\n,z,,,,\nonly\n\n""\n'
    )

"""The example of docs/spark.md prints what the document shows."""

import json
import runpy

import pytest

from tests.docs.examples import ROOT, examples
from tests.support.shares import share

pytestmark = pytest.mark.spark


@share(3)
def test_quickstart_prints_what_the_document_shows(spark, connection, monkeypatch, capsys):
    [example] = examples(ROOT / "docs" / "spark.md")
    assert ".venv/bin/python examples/spark_quickstart.py > printed" in example.command
    monkeypatch.setenv("HEADWATER_URL", connection["url"])
    monkeypatch.setenv("HEADWATER_API_KEY", connection["api_key"])
    # In this process, so that it has the session of the other tests.
    runpy.run_path(str(ROOT / "examples" / "spark_quickstart.py"))
    assert capsys.readouterr().out.splitlines() == json.loads(example.answer.text)

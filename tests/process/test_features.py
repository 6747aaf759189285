"""The lists of features, and what is composed of them."""

import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from types import SimpleNamespace

import pytest

import app.features
import app.process.api
from app.core.feature.api import FeatureApi
from app.core.feature.feature import Feature
from app.process.api import APIS, PROVIDERS, dependencies
from app.process.features import COMMIT_PARTICIPANTS, FAILURE_PARTICIPANTS, FEATURES

ROOT = Path(__file__).parents[2]
ROOMS = [room.name for room in iter_modules(app.features.__path__)]


def stated(part: str, name: str) -> dict[str, object]:
    """The value of that name in this part of each feature, by the name of the room."""
    modules = {
        room: import_module(f"app.features.{room}.{part}")
        for room in ROOMS
        if find_spec(f"app.features.{room}.{part}") is not None
    }
    return {room: getattr(module, name) for room, module in modules.items() if hasattr(module, name)}


def test_every_feature_is_in_the_lists():
    features = stated("compose", "FEATURE") | stated("loops", "FEATURE")
    apis = stated("api", "API")
    assert set(features) | set(apis) == set(ROOMS)
    assert [each.name for each in FEATURES if each.name != "core"] == sorted(
        features, key=[each.name for each in FEATURES].index
    )
    assert {each.name: each for each in APIS if each.name not in {"core", "process"}} == apis
    assert {each.name: each for each in FEATURES if each.name != "core"} == features


def test_rows_are_locked_in_one_order():
    # Another order in one of two transactions would let them wait for each other.
    assert [type(each).__name__ for each in COMMIT_PARTICIPANTS] == [
        "ViewParticipant",
        "SourceParticipant",
        "ConsumerParticipant",
        "PartitionParticipant",
        "VersionParticipant",
    ]
    assert [type(each).__name__ for each in FAILURE_PARTICIPANTS] == [
        "ViewParticipant",
        "SourceParticipant",
        "CreationParticipant",
    ]


def test_name_that_two_features_state_stops_the_start(monkeypatch: pytest.MonkeyPatch):
    twice = [
        FeatureApi(name=name, routes=(), dependencies=lambda _: {"views": 1}) for name in ("views", "exports")
    ]
    monkeypatch.setattr(app.process.api, "APIS", twice)
    with pytest.raises(ValueError, match="names that two features state: views"):
        dependencies(SimpleNamespace())
    monkeypatch.setattr(app.process.api, "APIS", twice[:1])
    assert dependencies(SimpleNamespace()) == {"object_trees": {}, "views": 1}


def test_feature_adds_nothing_that_it_does_not_state():
    feature, api = Feature(name="nothing"), FeatureApi(name="nothing", routes=())
    for function in (feature.tasks, feature.stagers, feature.followers, feature.reconcilers):
        assert function(None) == {}
    for function in (api.dependencies, api.resources, api.quotas):
        assert function(None) == {}
    assert not feature.loops(None)
    assert "principal" in PROVIDERS


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("app.process.tables", {"litestar", "celery", "pyspark", "app.process.features", "app.process.api"}),
        ("workers.wiring", {"litestar", "uvicorn", "app.process.api"}),
        ("app.process.api", {"pyspark", "celery"}),
    ],
)
def test_process_imports_only_what_it_needs(module: str, absent: set[str]):
    code = f"import sys, {module}; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(result.stdout.split())
    assert module in modules
    assert not modules & absent


def test_processes_import_packages_of_the_runtime_lock_alone():
    """An installation from wheels has these packages and no others."""
    code = (
        "import sys, workers.main, app.main, kombu.transport.redis\n"
        "from importlib.metadata import packages_distributions as found\n"
        "names = {module.split('.')[0] for module in sys.modules}\n"
        "print(*{each.lower().replace('_', '-') for name in names for each in found().get(name, ())})"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    locks = "".join((ROOT / "requirements" / f"{name}.txt").read_text() for name in ("runtime", "embedded"))
    locked = set(re.findall(r"^([a-z0-9][a-z0-9._-]*)==", locks, re.MULTILINE))
    imported = set(result.stdout.split())
    assert {"kombu", "redis", "packaging"} <= imported
    # The last three are imported only where they are present.
    own = {"headwater", "headwater-client"}
    assert imported - locked <= own | {"annotated-types", "greenlet", "setuptools"}

"""The environment of `make`: its layers, where packages come from, and who installs them."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from requirements import build_environment as script
from tests.support.shares import share

ROOT = Path(__file__).parents[2]
CURRENT = {layer: script.stamp_of(layer) for layer in script.LAYERS}


@pytest.mark.parametrize(
    ("requested", "stamp", "built"),
    [
        ("up", "", "up"),
        ("demo", "", "demo"),
        ("up", CURRENT["up"], None),
        ("up", CURRENT["demo"], None),
        ("up", CURRENT["all"], None),
        ("all", CURRENT["up"], "all"),
        ("demo", CURRENT["up"], "demo"),
        ("up", "up 0", "up"),
        ("up", "all 0", "all"),
        ("demo", "all unfinished", "all"),
        ("up", "the stamp of an earlier release", "up"),
    ],
)
def test_layer_that_is_built(requested: str, stamp: str, built: str | None) -> None:
    assert script.layer_to_build(requested, stamp) == built


def test_a_layer_has_all_packages_of_those_before_it() -> None:
    def packages(layer: str) -> set[str]:
        lines = [line for lock in script.locks_of(layer) for line in lock.read_text().splitlines()]
        return {line.partition(" ")[0] for line in lines if "==" in line}

    layers = [packages(layer) for layer in script.LAYERS]
    assert all(lower < higher for lower, higher in itertools.pairwise(layers))


def test_settings_of_pip_become_options_of_uv() -> None:
    settings = {
        "index-url": "https://packages.example/simple",
        "extra-index-url": "\nhttps://one.example\nhttps://two.example",
        "find-links": "/a /b",
        "no-index": "true",
        "trusted-host": "packages.example",
        "cert": "/etc/authorities.pem",
        "proxy": "http://proxy.example:3128",
        "timeout": "60",
    }
    options, variables = script.uv_options(settings)
    assert " ".join(options) == (
        "--default-index https://packages.example/simple "
        "--index https://one.example --index https://two.example --index-strategy unsafe-best-match "
        "--find-links /a --find-links /b --no-index --allow-insecure-host packages.example"
    )
    assert variables == {"SSL_CERT_FILE": "/etc/authorities.pem", "ALL_PROXY": "http://proxy.example:3128"}


@pytest.mark.parametrize("setting", ["constraint", "keyring-provider", "no-binary", "client-cert", "target"])
def test_settings_that_uv_lacks_leave_all_to_pip(setting: str) -> None:
    with pytest.raises(script.NoCounterpartError, match=setting):
        script.uv_options({"cert": "/a", setting: "b"})


def wheel(folder: Path, name: str, version: str, program: str | None = None) -> str:
    """Makes a wheel with a module, and with a program if there is one. Returns its line of a lock."""
    info, data = f"{name}-{version}.dist-info", f"{name}-{version}.data"
    files = {
        f"{name}.py": f"VERSION = '{version}'\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if program is not None:
        files[f"{data}/scripts/{name}"] = program
    digests = {path: hashlib.sha256(text.encode()).digest() for path, text in files.items()}
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(digest).decode().rstrip('=')},{len(files[path])}\n"
        for path, digest in digests.items()
    )
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name_of_file, text in (files | {f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}).items():
            entry = zipfile.ZipInfo(name_of_file)
            entry.external_attr = (0o100755 if "/scripts/" in name_of_file else 0o100644) << 16
            archive.writestr(entry, text)
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


class Clone:
    """A clone with three small packages in place of the real ones, which pip finds in a folder and nowhere else."""

    def __init__(self, folder: Path, *, uv: str) -> None:
        self.root = folder / "clone"
        self.wheels = folder / "wheels"
        self.wheels.mkdir(parents=True)
        (self.root / "requirements").mkdir(parents=True)
        (self.root / "clients" / "python").mkdir(parents=True)
        for metadata in ("pyproject.toml", "clients/python/pyproject.toml"):
            shutil.copy(ROOT / metadata, self.root / metadata)
        shutil.copy(ROOT / "requirements" / "build_environment.py", self.root / "requirements")
        self.lock("uv", wheel(self.wheels, "uv", "1", uv))
        self.lock("build", wheel(self.wheels, "builder", "1"))
        self.lock("runtime", wheel(self.wheels, "server", "1"))
        self.lock("embedded", "")
        self.lock("demo", wheel(self.wheels, "flights", "1"))

    def lock(self, name: str, text: str) -> None:
        (self.root / "requirements" / f"{name}.txt").write_text(text)

    def start(self, layer: str, settings: Mapping[str, str] = {}) -> subprocess.Popen[str]:
        """Starts `make setup` for a layer, without our own packages."""
        variables = {
            name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))
        }
        variables |= {"PIP_FIND_LINKS": str(self.wheels), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
        variables |= {"UV_CACHE_DIR": str(self.root / "cache"), **settings}
        command = [
            sys.executable,
            "requirements/build_environment.py",
            "--locks-only",
            "--venv",
            "environment",
        ]
        return subprocess.Popen(
            [*command, "--layer", layer],
            cwd=self.root,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def setup(self, layer: str, settings: Mapping[str, str] = {}) -> str:
        """What `make setup` prints for a layer."""
        return self.end(self.start(layer, settings))

    def end(self, process: subprocess.Popen[str]) -> str:
        with process:
            printed, _ = process.communicate(timeout=120)
        assert process.returncode == 0, printed
        return printed

    @property
    def site(self) -> Path:
        """Where packages are installed."""
        [site] = (self.root / "environment" / "lib").glob("*/site-packages")
        return site

    def packages(self) -> dict[str, str]:
        """The installed packages, beside those of `venv`, with who installed each."""
        found = {
            path.parent.name.partition("-")[0]: path.read_text()
            for path in self.site.glob("*.dist-info/INSTALLER")
        }
        return {name: text.strip() for name, text in found.items() if name not in {"pip", "setuptools"}}

    def compiled(self) -> set[str]:
        """The modules of the packages that are compiled."""
        return {path.name.partition(".")[0] for path in self.site.glob("__pycache__/*.pyc")}


REAL_UV = f'#!/bin/sh\nexec {json.dumps(str(Path(sys.executable).with_name("uv")))} "$@"\n'


@share(3)
def test_two_setups_at_once_and_then_the_layers_after_another(tmp_path: Path) -> None:
    clone = Clone(tmp_path, uv=REAL_UV)
    # Where processes may write no bytecode, each would compile what it imports at every start.
    no_bytecode = {"PYTHONDONTWRITEBYTECODE": "1"}
    first, second = clone.start("up", no_bytecode), clone.start("up", no_bytecode)
    with first, second:
        printed = [clone.end(first), clone.end(second)]
    assert sorted(text.count("is ready after") for text in printed) == [0, 1]
    assert clone.packages() == {"uv": "pip", "builder": "uv", "server": "uv"}
    assert clone.compiled() >= {"builder", "server"}
    assert clone.setup("up") == ""
    clone.setup("demo")
    assert clone.packages()["flights"] == "uv"
    # A newer lock of a lower layer: the environment stays one of the demo.
    clone.lock("runtime", wheel(clone.wheels, "server", "2"))
    assert "demo.txt" in clone.setup("up")
    assert clone.setup("demo") == ""
    # A file that is not the one of the lock is refused by both.
    clone.lock("demo", wheel(clone.wheels, "flights", "2")[:-3] + "00\n")
    refused = clone.start("demo")
    text, _ = refused.communicate(timeout=120)
    assert refused.returncode != 0
    assert "uv failed, so pip installs" in text
    assert "this command failed with exit code 1" in text
    # What a failed build has left is finished by the next one.
    clone.lock("demo", wheel(clone.wheels, "flights", "1"))
    assert "is ready" in clone.setup("up")


@share(3)
def test_pip_installs_where_uv_cannot(tmp_path: Path) -> None:
    clone = Clone(tmp_path, uv="#!/bin/sh\nexit 3\n")
    printed = clone.setup("up", {"PIP_ONLY_BINARY": ":all:"})
    assert "uv has no counterpart of pip's setting only-binary, so pip installs" in printed
    assert clone.packages() == {"builder": "pip", "server": "pip"}
    assert "uv failed, so pip installs" in clone.setup("demo")
    assert clone.packages() == {"uv": "pip", "builder": "pip", "server": "pip", "flights": "pip"}

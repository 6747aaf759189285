"""Clients generated from the committed document, and the TypeScript package, run against the live service."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.maven import MavenFailed, install
from tests.support.shares import share

HERE = Path(__file__).parent
DOCUMENT = HERE.parents[2] / "openapi" / "openapi.json"
TYPESCRIPT = HERE.parents[2] / "clients" / "typescript"
OUT_OF_REACH = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH")
PIP_OUT_OF_REACH = (
    "Temporary failure in name resolution",
    "Failed to establish",
    "Connection refused",
    "timed out",
)
GO_OUT_OF_REACH = ("dial tcp", "no such host", "connection refused", "i/o timeout")

needs_npm = pytest.mark.skipif(
    shutil.which("npm") is None, reason="npm, which builds the TypeScript package, is not installed"
)

FOLLOWED = {
    "versions": [1, 2],
    "changes": [
        [0, "+A", {"sensor": "a", "value": 1.5}],
        [1, "-C", {"sensor": "a", "value": 1.5}],
        [2, "+C", {"sensor": "a", "value": 2.5}],
    ],
    "since": 3,
    # The offset that was committed, and how many changes are after it.
    "consumer": [3, 0],
    # Changes and files.
    "exported": [3, 1],
    "problem": "/problems/schema-mismatch",
}
SEEN = {
    **FOLLOWED,
    "fields": ["sensor", "celsius", "place"],
    "told_under": [1, "sensor", "value"],
    "schemas": [2, 1],
}
SEEN_BY_PACKAGE = {
    **SEEN,
    # The offsets of each page: the first member has not committed its page, so the second one gets it again.
    "consumed": [[0], [0], [1, 2]],
    # All changes, rows and datasets, by the iterators.
    "all": ["+A", "-C", "+C", {"sensor": "a", "value": 2.5}, "readings"],
}


def run(command, folder, **environment):
    """What the command printed to standard output; it must succeed."""
    result = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert result.returncode == 0, f"{command} failed:\n{result.stdout}\n{result.stderr}"
    return result.stdout


def test_generated_python_client_follows_the_api(service, tmp_path):
    configuration = tmp_path / "configuration.json"
    configuration.write_text('{"post_hooks": []}')
    generator = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
    output = run(
        [*generator, "--path", DOCUMENT, "--output-path", "headwater_api", "--config", configuration],
        tmp_path,
    )
    # The raw forms of a write are for curl and for clients made by hand; all else must be complete.
    missing = [line for line in output.splitlines() if line.startswith(("WARNING", "ERROR", "Unsupported"))]
    assert {line for line in missing if not line.startswith("Unsupported content type")} <= {
        "WARNING parsing POST /datasets/{dataset}/writes within writes."
    }
    upload = tmp_path / "upload.csv"
    upload.write_bytes(b"sensor,value\na,2.5\n")
    with service.working():
        printed = run(
            [sys.executable, HERE / "follow.py"],
            tmp_path,
            HEADWATER_URL=service.url,
            HEADWATER_API_KEY=service.new_key("python client"),
            UPLOAD=str(upload),
            PYTHONPATH=str(tmp_path),
        )
    assert json.loads(printed) == SEEN


@pytest.fixture(scope="module")
def openapi_generator(tmp_path_factory):
    """The command of OpenAPI Generator, which is a Java program in a Python package."""
    folder = tmp_path_factory.mktemp("openapi_generator")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    installed = subprocess.run(
        [*pip, "--target", folder, "-r", HERE / "openapi_generator" / "requirements.txt"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if installed.returncode != 0 and any(sign in installed.stderr for sign in PIP_OUT_OF_REACH):
        pytest.skip("the Python package index cannot be reached")
    assert installed.returncode == 0, installed.stderr
    (archive,) = folder.rglob("openapi-generator.jar")
    only = "apiTests=false,modelTests=false,apiDocs=false,modelDocs=false"
    return ["java", "-jar", archive, "generate", "-i", DOCUMENT, "--global-property", only]


@share(3)
@pytest.mark.skipif(
    shutil.which("java") is None, reason="Java, which runs OpenAPI Generator, is not installed"
)
def test_python_client_of_another_generator_follows_the_api(service, openapi_generator, tmp_path):
    run([*openapi_generator, "-g", "python", "-o", "client", "--package-name", "headwater_api"], tmp_path)
    with service.working():
        printed = run(
            [sys.executable, HERE / "openapi_generator" / "follow.py"],
            tmp_path,
            HEADWATER_URL=service.url,
            HEADWATER_API_KEY=service.new_key("another python client"),
            PYTHONPATH=str(tmp_path / "client"),
        )
    assert json.loads(printed) == FOLLOWED


@share(4)
@pytest.mark.skipif(
    shutil.which("javac") is None or shutil.which("mvn") is None,
    reason="a JDK and Maven, which compile the Java client and download what it needs, are not installed",
)
def test_generated_java_client_follows_the_api(service, openapi_generator, tmp_path):
    try:
        install(HERE / "java" / "pom.xml", tmp_path / "jars", "what the Java client needs")
    except MavenFailed as reason:
        pytest.skip(str(reason))
    options = ["--library", "native", "--additional-properties", "useSingleRequestParameter=true"]
    names = [
        "--invoker-package",
        "headwater",
        "--api-package",
        "headwater.api",
        "--model-package",
        "headwater.model",
    ]
    # Each object of Java has a method `wait`.
    renamed = ["--parameter-name-mappings", "wait=waitSeconds"]
    run([*openapi_generator, "-g", "java", "-o", "client", *options, *names, *renamed], tmp_path)
    sources = [
        HERE / "java" / "Follow.java",
        *(tmp_path / "client" / "src" / "main" / "java").rglob("*.java"),
    ]
    run(["javac", "-nowarn", "-proc:none", "-d", "classes", "-cp", "jars/*", *sources], tmp_path)
    with service.working():
        printed = run(
            ["java", "-cp", "classes:jars/*", "Follow"],
            tmp_path,
            HEADWATER_URL=service.url,
            HEADWATER_API_KEY=service.new_key("java client"),
        )
    assert json.loads(printed) == FOLLOWED


@share(4)
@pytest.mark.skipif(shutil.which("go") is None, reason="Go, which compiles the Go client, is not installed")
def test_generated_go_client_follows_the_api(service, tmp_path):
    folder = tmp_path / "go"
    shutil.copytree(HERE / "go", folder, ignore=shutil.ignore_patterns("headwater"))
    (folder / "headwater").mkdir()
    downloaded = subprocess.run(
        ["go", "mod", "download"], cwd=folder, capture_output=True, text=True, timeout=240, check=False
    )
    if downloaded.returncode != 0 and any(sign in downloaded.stderr for sign in GO_OUT_OF_REACH):
        pytest.skip("the Go module proxy cannot be reached")
    assert downloaded.returncode == 0, downloaded.stderr
    run(
        ["go", "tool", "oapi-codegen", "-config", "config.yaml", str(DOCUMENT)],
        folder,
        GOFLAGS="-mod=readonly",
    )
    run(["go", "build", "-o", "follow", "."], folder, GOFLAGS="-mod=readonly")
    with service.working():
        printed = run(
            [folder / "follow"],
            folder,
            HEADWATER_URL=service.url,
            HEADWATER_API_KEY=service.new_key("go client"),
        )
    assert json.loads(printed) == FOLLOWED


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The TypeScript package, built from a copy of its sources."""
    root = tmp_path_factory.mktemp("typescript")
    folder = root / "clients" / "typescript"
    ignored = shutil.ignore_patterns("node_modules", "generated", "dist", "build")
    shutil.copytree(TYPESCRIPT, folder, ignore=ignored)
    (root / "openapi").mkdir()
    shutil.copy(DOCUMENT, root / "openapi")
    installed = subprocess.run(
        ["npm", "ci", "--no-audit", "--no-fund"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if installed.returncode != 0 and any(code in installed.stderr for code in OUT_OF_REACH):
        pytest.skip("the npm registry cannot be reached")
    assert installed.returncode == 0, installed.stderr
    run(["npm", "run", "build"], folder)
    return folder


@share(3)
@needs_npm
def test_the_typescript_package_passes_its_own_tests(package):
    printed = run(["npm", "test"], package)
    assert "# fail 0" in printed
    assert re.search(r"^# pass [1-9]", printed, re.MULTILINE)


@share(3)
@needs_npm
def test_the_typescript_package_works_with_the_live_service(package, service):
    run(["npm", "run", "build:test"], package)
    with service.working():
        printed = run(
            ["node", "build/follow.js"],
            package,
            HEADWATER_URL=service.url,
            HEADWATER_API_KEY=service.new_key("typescript client"),
        )
    assert json.loads(printed) == SEEN_BY_PACKAGE


@needs_npm
def test_the_typescript_package_is_ready_to_publish(package):
    [packed] = json.loads(run(["npm", "pack", "--dry-run", "--ignore-scripts", "--json"], package))
    files = {file["path"] for file in packed["files"]}
    assert {"LICENSE", "README.md", "dist/index.js", "dist/index.d.ts", "package.json"} <= files
    assert {name.partition("/")[0] for name in files} == {"LICENSE", "README.md", "dist", "package.json"}
    described = json.loads((package / "package.json").read_text())
    assert described["license"] == "Apache-2.0"
    assert "private" not in described
    versions = {**described.get("dependencies", {}), **described["devDependencies"]}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions.values()), versions


def test_the_lock_of_the_typescript_package_pins_by_hash_and_names_no_host():
    lock = json.loads((TYPESCRIPT / "package-lock.json").read_text())
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert packages
    for name, package in packages.items():
        assert "resolved" not in package, name
        assert package["integrity"].startswith("sha512-"), name

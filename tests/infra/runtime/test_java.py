"""Which Java is taken, and what the shim hands on to it."""

import subprocess

import pytest

from app.infra.runtime.java import JavaError, java_home, probe, write_shim

FAKE = """#!/bin/sh
case "$*" in
  *-XshowSettings*) echo "    java.home = {home}" >&2; echo "    java.specification.version = {version}" >&2;;
  *--list-modules*) echo "java.base@{version}"; echo "{module}";;
  *) for argument in "$@"; do printf '[%s]\\n' "$argument"; done;;
esac
"""


def fake_java(home, version, module=""):
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(FAKE.format(home=home, version=version, module=module))
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("arguments", "handed_on"),
    [
        (["--add-modules=jdk.incubator.vector", "-cp", "a b", "Main"], ["-cp", "a b", "Main"]),
        (["-Xmx1g", "--add-modules", "jdk.incubator.vector", "Main"], ["-Xmx1g", "Main"]),
        (["--add-modules", "java.sql", "Main"], ["--add-modules", "java.sql", "Main"]),
        (
            ["--add-modules=java.sql", "$HOME", "", "*", 'say "hi"'],
            ["--add-modules=java.sql", "$HOME", "", "*", 'say "hi"'],
        ),
        (["Main", "--add-modules"], ["Main", "--add-modules"]),
        ([], []),
    ],
)
def test_java_shim_drops_only_the_vector_module(tmp_path, arguments, handed_on):
    program = fake_java(tmp_path / "it's java", 21)
    home = write_shim(tmp_path / "shim", program)
    result = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert result.stdout == "".join(f"[{argument}]\n" for argument in handed_on)


def environment(tmp_path, java_home=None, path=None):
    return {"JAVA_HOME": str(java_home or ""), "PATH": str(path or tmp_path / "nothing")}


def test_java_with_the_vector_module_is_used_directly(tmp_path):
    home = tmp_path / "jdk"
    fake_java(home, 17, "jdk.incubator.vector@17")
    assert java_home(tmp_path / "data", environment(tmp_path, java_home=home)) == home


def test_java_without_the_vector_module_gets_the_shim(tmp_path):
    home = tmp_path / "jre"
    fake_java(home, 17)
    assert (
        java_home(tmp_path / "data", environment(tmp_path, path=home / "bin")) == tmp_path / "data" / "java"
    )
    shim = (tmp_path / "data" / "java" / "bin" / "java").read_text()
    assert str(home / "bin" / "java") in shim


@pytest.mark.parametrize("version", [11, "1.8"])
def test_old_java_is_replaced_by_the_wheel(tmp_path, version):
    old = tmp_path / "old"
    fake_java(old, version, "jdk.incubator.vector@11")
    home = java_home(tmp_path / "data", environment(tmp_path, java_home=old))
    runtime = probe(home / "bin" / "java")
    assert runtime is not None
    assert runtime.major >= 17
    # The wheel's Java refuses to start with this option; through the shim it starts.
    subprocess.run(
        [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"],
        check=True,
        capture_output=True,
    )


def test_missing_java_reports_what_was_tried(tmp_path, monkeypatch):
    old = tmp_path / "old"
    fake_java(old, 11)
    monkeypatch.setattr("app.infra.runtime.java.find_spec", lambda name: None)
    with pytest.raises(JavaError, match=r"JAVA_HOME .* is version 11"):
        java_home(tmp_path / "data", environment(tmp_path, java_home=old))
    with pytest.raises(JavaError, match="does not run"):
        java_home(tmp_path / "data", environment(tmp_path, java_home=tmp_path / "gone"))
    assert list(tmp_path.iterdir()) == [old]

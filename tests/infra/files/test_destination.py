"""Files in the folders of tenants: whole or not there, and nothing out of the roots of the operator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.infra.files.errors import DestinationFailed
from app.infra.files.folders.destination import open_destination


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_file_appears_once_it_is_whole_and_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "a b" / "deep"
    destination = open_destination(folder.as_uri(), [tmp_path.as_uri()])

    def chunks() -> Iterator[bytes]:
        yield b"one"
        assert "x.csv" not in names(folder)
        yield b"two"

    destination.put("x.csv", chunks())
    assert (folder / "x.csv").read_bytes() == b"onetwo"
    destination.put("x.csv", [b"three"])
    assert (folder / "x.csv").read_bytes() == b"three"
    assert names(folder) == ["x.csv"]


def test_failed_file_leaves_nothing(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"one"
        raise RuntimeError("the storage is gone")

    with pytest.raises(RuntimeError, match="the storage is gone"):
        open_destination(tmp_path.as_uri(), [tmp_path.as_uri()]).put("x", chunks())
    assert names(tmp_path) == []


def test_links_do_not_lead_out_of_the_root(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    root.mkdir()
    other.mkdir()
    (root / "link").symlink_to(other)
    destination = open_destination((root / "link" / "deep").as_uri(), [root.as_uri()])
    with pytest.raises(DestinationFailed, match="cannot be written to"):
        destination.put("x", [b"1"])
    assert names(other) == []
    (root / "x").symlink_to(other / "x")
    open_destination(root.as_uri(), [root.as_uri()]).put("x", [b"1"])
    # The link is replaced, and what it leads to is as it was.
    assert names(other) == []
    assert (root / "x").read_bytes() == b"1"


def test_root_is_made_in_a_folder_that_exists(tmp_path: Path) -> None:
    root = tmp_path / "tenant"
    open_destination(root.as_uri(), [root.as_uri()]).put("x", [b"1"])
    assert names(root) == ["x"]
    away = tmp_path / "disk" / "tenant"
    with pytest.raises(DestinationFailed, match="No such file"):
        open_destination(away.as_uri(), [away.as_uri()]).put("x", [b"1"])


@pytest.mark.parametrize(
    "uri",
    ["file:///etc", "{root}/../x", "{root}x", "{root}/%2e%2e/x", "s3://bucket/x", "http://host/", "{root}?x"],
)
def test_what_is_not_below_a_root_is_refused(tmp_path: Path, uri: str) -> None:
    root = (tmp_path / "root").as_uri()
    with pytest.raises(DestinationFailed, match=r"HEADWATER_EXPORT_ROOTS|expected|no query|no `..`"):
        open_destination(uri.format(root=root), [root])


def test_file_in_place_of_a_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"")
    destination = open_destination((tmp_path / "x" / "y").as_uri(), [tmp_path.as_uri()])
    with pytest.raises(DestinationFailed, match="Not a directory"):
        destination.put("z", [b"1"])

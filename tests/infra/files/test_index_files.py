"""Deletion vectors and key indexes on storage: what comes back, and that damage is refused and named."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pyarrow.fs as pafs
import pytest

from app.infra.files import deletion_vector_file
from app.infra.files.deletion_vector_file import VectorReader, write_vectors
from app.infra.files.errors import CorruptFile
from app.infra.files.lookups.key_index_file import read_index, write_index
from app.infra.files.storage import ArrowStorage, LocalStorage, Storage
from app.kernel.format.file_group import DeletionVector, IndexFile, IndexKind
from app.kernel.format.index.deletion_vector import positions_set
from app.kernel.format.index.key_index import BloomFilter, KeyIndex

HASHES = np.random.default_rng(7).integers(0, 2**64, 5_000, dtype=np.uint64)


@pytest.fixture(params=["local", "arrow"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return LocalStorage(tmp_path)
    # What is opened there is no memory map, as on S3.
    return ArrowStorage(pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem()), "")


@pytest.fixture
def no_inline_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """All vectors are stored in files."""
    monkeypatch.setattr(deletion_vector_file, "_INLINE_BYTES_MAX", 0)


@pytest.mark.usefixtures("no_inline_vectors")
def test_vectors_of_one_file_are_read_separately(storage: Storage) -> None:
    deleted = {
        "d/a": positions_set(np.array([3, 70_000])),
        "d/b": positions_set(np.arange(100)),
        "d/c": positions_set(np.array([], dtype=np.int64)),
    }
    vectors = write_vectors(storage, "v", deleted)
    assert {path: vector.cardinality for path, vector in vectors.items()} == {"d/a": 2, "d/b": 100, "d/c": 0}
    assert sum(vector.size_bytes for vector in vectors.values()) == storage.size("v")
    reader = VectorReader(storage)
    for path in reversed(list(deleted)):
        assert reader.read(vectors[path]) == deleted[path]
    assert reader.read(vectors["d/b"]) is reader.read(vectors["d/b"])


@pytest.mark.parametrize("step", [1, 2, 3, 17])
def test_vectors_of_small_files_are_in_no_file(storage: Storage, step: int) -> None:
    vectors = write_vectors(storage, "v", {"d/a": positions_set(np.arange(0, 65_536, step))})
    assert vectors["d/a"].content is not None


def test_small_vectors_are_in_no_file(storage: Storage, tmp_path: Path) -> None:
    scattered = np.arange(0, 2**20, 97)
    deleted = {
        "d/a": positions_set(np.array([3, 70_000])),
        "d/b": positions_set(scattered),
        "d/c": positions_set(scattered[1:]),
        "d/d": positions_set(np.arange(2**20)),
    }
    vectors = write_vectors(storage, "v", deleted)
    assert [vector.path for vector in vectors.values()] == [None, "v", "v", None]
    assert [vector.content is None for vector in vectors.values()] == [False, True, True, False]
    assert storage.size("v") == vectors["d/b"].size_bytes + vectors["d/c"].size_bytes
    reader = VectorReader(storage)
    # As the catalogue returns them.
    stored = {name: msgspec.json.encode(vector) for name, vector in vectors.items()}
    for name, rows in deleted.items():
        assert reader.read(msgspec.json.decode(stored[name], type=DeletionVector)) == rows
    small = write_vectors(storage, "w", {"d/a": deleted["d/a"]})["d/a"]
    assert small == vectors["d/a"]
    assert write_vectors(storage, "w", {}) == {}
    assert [path.name for path in tmp_path.iterdir()] == ["v"]
    for wrong in (b"", (small.content or b"")[:-1] + b"x"):
        with pytest.raises(CorruptFile, match="the catalogue"):
            reader.read(msgspec.structs.replace(small, content=wrong))


@pytest.mark.usefixtures("no_inline_vectors")
@pytest.mark.parametrize("damage", ["flipped", "shorter", "gone"])
def test_damaged_vector_is_refused_and_named(storage: Storage, tmp_path: Path, damage: str) -> None:
    """And only the one that is damaged."""
    deleted = {"d/a": positions_set(np.arange(3)), "d/b": positions_set(np.array([5, 9]))}
    vectors = write_vectors(storage, "v", deleted)
    change(tmp_path / "v", damage, at=-2)
    with pytest.raises(CorruptFile) as caught:
        VectorReader(storage).read(vectors["d/b"])
    assert caught.value.facts == {"path": "v"}
    if damage != "gone":
        assert VectorReader(storage).read(vectors["d/a"]) == deleted["d/a"]


@pytest.mark.usefixtures("no_inline_vectors")
def test_vector_that_starts_after_the_end_is_refused(storage: Storage) -> None:
    vector = write_vectors(storage, "v", {"d/a": positions_set(np.arange(3))})["d/a"]
    beyond = DeletionVector(
        path="v", offset=1_000, size_bytes=vector.size_bytes, checksum=vector.checksum, cardinality=3
    )
    with pytest.raises(CorruptFile, match="byte 1000"):
        VectorReader(storage).read(beyond)


@pytest.mark.usefixtures("no_inline_vectors")
def test_vector_with_another_cardinality_is_refused(storage: Storage) -> None:
    vector = write_vectors(storage, "v", {"d/a": positions_set(np.arange(3))})["d/a"]
    wrong = DeletionVector(
        path="v", offset=0, size_bytes=vector.size_bytes, checksum=vector.checksum, cardinality=2
    )
    with pytest.raises(CorruptFile):
        VectorReader(storage).read(wrong)


@pytest.mark.parametrize("count", [0, 1, 5_000])
def test_indexes_round_trip(storage: Storage, count: int) -> None:
    hashes = HASHES[:count]
    record, bloom = KeyIndex.of_hashes(hashes), BloomFilter.of_hashes(hashes)
    files = [write_index(storage, "record", record), write_index(storage, "bloom", bloom)]
    assert [(file.kind, file.size_bytes) for file in files] == [
        (IndexKind.RECORD, storage.size("record")),
        (IndexKind.BLOOM, storage.size("bloom")),
    ]
    found, filtered = (read_index(storage, file) for file in files)
    assert isinstance(found, KeyIndex)
    assert isinstance(filtered, BloomFilter)
    assert (found.hashes.tolist(), found.positions.tolist()) == (
        record.hashes.tolist(),
        record.positions.tolist(),
    )
    assert (filtered.words == bloom.words).all()
    incoming, positions = found.probe(HASHES)
    assert (hashes[positions] == HASHES[incoming]).all()
    assert len(incoming) == count
    assert filtered.may_contain(hashes).all()


@pytest.mark.parametrize("damage", ["flipped", "shorter", "longer", "gone"])
def test_damaged_index_is_refused_and_named(storage: Storage, tmp_path: Path, damage: str) -> None:
    file = write_index(storage, f"i-{damage}", KeyIndex.of_hashes(HASHES))
    change(tmp_path / file.path, damage, at=1_000)
    with pytest.raises(CorruptFile) as caught:
        read_index(storage, file)
    assert caught.value.facts == {"path": file.path}


@pytest.mark.usefixtures("no_inline_vectors")
def test_file_without_an_index_is_refused(storage: Storage) -> None:
    vector = write_vectors(storage, "v", {"d/a": positions_set(np.arange(3))})["d/a"]
    wrong = IndexFile(path="v", size_bytes=vector.size_bytes, checksum=vector.checksum, kind=IndexKind.RECORD)
    with pytest.raises(CorruptFile, match="not a readable key index"):
        read_index(storage, wrong)


def change(path: Path, damage: str, *, at: int) -> None:
    content = bytearray(path.read_bytes())
    match damage:
        case "flipped":
            content[at] ^= 1
        case "shorter":
            del content[at:]
        case "longer":
            content += b"x"
    path.unlink()
    if damage != "gone":
        path.write_bytes(content)

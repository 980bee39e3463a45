"""A checkpoint's files: what is damaged is found, pieces make wholes, and nothing is half written."""

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msmigrate.problems import UnreadableError
from msrt.checkpoint.common import common_of
from msrt.checkpoint.folder import remove_leftovers
from msrt.checkpoint.layout import model_file
from msrt.checkpoint.read import open_checkpoint
from msrt.checkpoint.write import TensorFile, TensorPiece, write_checkpoint
from msrt.weights.safetensors_file import TensorSpec

VALUES = np.arange(24, dtype=np.float32).reshape(4, 6)
FILES = [model_file("p", rank, 2) for rank in range(2)]


def halves() -> list[TensorFile]:
    """The rows of x on two ranks; the first also has the whole of y."""
    box = TensorSpec("x", "F32", (2, 6))
    first = [TensorPiece(box, (0, 0), (4, 6)), TensorPiece(TensorSpec("y", "BF16", ()), (), ())]
    return [
        TensorFile(FILES[0], first, [VALUES[:2], np.array(7, np.uint16)]),
        TensorFile(FILES[1], [TensorPiece(box, (2, 0), (4, 6))], [VALUES[2:]]),
    ]


def written(root: Path, step: int = 3) -> Path:
    root.mkdir(exist_ok=True)
    return write_checkpoint(root, step, halves(), common_of(step, None), {"config.json": b"{}"})


def damage(folder: Path, **changes: Any) -> None:
    """Change keys of metadata.json."""
    path = folder / "metadata.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_pieces_of_several_files_make_up_a_tensor(tmp_path: Path) -> None:
    written(tmp_path)
    checkpoint = open_checkpoint(tmp_path)
    np.testing.assert_array_equal(checkpoint.raw("x"), VALUES)
    assert checkpoint.raw("y") == 7
    assert checkpoint.common["global_step"] == 3
    assert FILES == ["p-model-0000000-0000002.safetensors", "p-model-0000001-0000002.safetensors"]
    assert model_file(None, 0, 1) == "model-0000000-0000001.safetensors"


def test_the_tracker_names_the_newest_iteration(tmp_path: Path) -> None:
    first = written(tmp_path, 3)
    written(tmp_path, 12)
    assert open_checkpoint(tmp_path).folder == tmp_path / "iteration_00000012"
    assert open_checkpoint(first).folder == first


def test_every_damaged_and_missing_file_is_named(tmp_path: Path) -> None:
    folder = written(tmp_path)
    raw = bytearray((folder / FILES[0]).read_bytes())
    raw[-1] ^= 1
    (folder / FILES[0]).write_bytes(raw)
    (folder / FILES[1]).unlink()
    (folder / "common.json").write_bytes(b"{")
    with pytest.raises(UnreadableError) as caught:
        open_checkpoint(tmp_path)
    lines = str(caught.value).splitlines()
    assert len(lines) == 3
    assert f"{folder / FILES[0]} is damaged: its SHA-256 starts with" in lines[0]
    assert lines[1] == f"{folder / FILES[1]} is missing."
    assert f"{folder / 'common.json'} is damaged: it has 1 bytes" in lines[2]


def test_metadata_that_cannot_be_right(tmp_path: Path) -> None:
    folder = written(tmp_path)
    tensors = json.loads((folder / "metadata.json").read_text())["tensors"]
    good = tensors["x"]
    cases = [
        ({**good, "pieces": good["pieces"][:1]}, "its pieces hold 12 of 24 elements"),
        ({**good, "dtype": "F7"}, "the type F7 is not known"),
        ({**good, "shape": [3, 6]}, r"a piece at \(2, 0\) of shape \(2, 6\) lies outside \(3, 6\)"),
        ({**good, "shape": [24]}, "a piece of 2 dimensions in a tensor of 1"),
        ({**good, "shape": "4x6"}, "damaged at x in tensors: expected a version"),
        ({**good, "dtype": "I32"}, r"holds \(2, 6\) F32 for x; metadata.json says \(2, 6\) I32"),
        ({"shape": [4, 6]}, "damaged at x in tensors: expected a version"),
    ]
    for entry, message in cases:
        damage(folder, tensors={**tensors, "x": entry})
        with pytest.raises(UnreadableError, match=message):
            open_checkpoint(tmp_path)
    damage(folder, version=2)
    with pytest.raises(UnreadableError, match="has version 2; this msrt reads version 1"):
        open_checkpoint(tmp_path)


def test_paths_that_are_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="is no checkpoint"):
        open_checkpoint(tmp_path)
    tracker = tmp_path / "latest_checkpointed_iteration.txt"
    tracker.write_text("release")
    with pytest.raises(UnreadableError, match="holds 'release'; expected the number of a step"):
        open_checkpoint(tmp_path)
    tracker.write_text("7")
    with pytest.raises(UnreadableError, match="names step 7, but"):
        open_checkpoint(tmp_path)


def test_a_full_disk_leaves_the_earlier_iteration(tmp_path: Path) -> None:
    first = written(tmp_path)

    def failing() -> Iterator[np.ndarray[Any, Any]]:
        yield VALUES[:2]
        raise OSError(errno.ENOSPC, "No space left on device")

    broken = TensorFile(FILES[0], halves()[0].pieces, failing())
    with pytest.raises(UnreadableError, match=r"iteration_00000004 cannot be written: No space left on device\.$"):
        write_checkpoint(tmp_path, 4, [broken], {}, {})
    assert open_checkpoint(tmp_path).folder == first
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "iteration_00000003",
        "latest_checkpointed_iteration.txt",
    ]


def test_a_folder_that_was_being_replaced_when_the_process_died_comes_back(tmp_path: Path) -> None:
    folder = written(tmp_path)
    folder.rename(tmp_path / f".{folder.name}.{'0' * 32}.old")
    (tmp_path / f".{folder.name}.{'1' * 32}.tmp").mkdir()
    (tmp_path / ".iteration_mine.tmp").mkdir()
    remove_leftovers(tmp_path)
    assert open_checkpoint(tmp_path).folder == folder
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".iteration_mine.tmp",
        folder.name,
        "latest_checkpointed_iteration.txt",
    ]


def test_a_folder_is_replaced_by_a_whole_one_only(tmp_path: Path) -> None:
    folder = written(tmp_path)
    (folder / "mark").touch()
    broken = TensorFile(FILES[0], halves()[0].pieces, iter([]))
    with pytest.raises(ValueError, match="shorter"):
        write_checkpoint(tmp_path, 3, [broken], {}, {}, replace=True)
    assert (folder / "mark").exists()
    write_checkpoint(tmp_path, 3, halves(), common_of(3, None), {}, replace=True)
    assert not (folder / "mark").exists()
    open_checkpoint(tmp_path)
    assert not list(tmp_path.glob(".*"))


def test_an_iteration_is_not_overwritten_unasked(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(UnreadableError, match="iteration_00000003 exists and is not empty"):
        written(tmp_path)

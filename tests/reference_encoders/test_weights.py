"""Checkpoints that are missing, damaged, hostile or not there: each a named error, none a hang."""

from __future__ import annotations

import argparse
import pickle
import socket
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save, save_file

from assetscore.encoders._weights import hub_file, hub_snapshot, read_state_dict, within
from assetscore.errors import EncoderUnavailableError, WeightsError

STATE = {"a.weight": torch.arange(12.0).reshape(3, 4), "b": torch.ones(2, dtype=torch.bfloat16)}


class Evil:
    """Unpickled by a careless loader, it leaves a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[Path], object], tuple[Path]]:
        return (Path.touch, (self.path,))


def same(state: dict[str, torch.Tensor]) -> bool:
    return set(state) == set(STATE) and all(torch.equal(state[name], value) for name, value in STATE.items())


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: state,
        lambda state: {"model_state_dict": state, "epoch": 3},
        lambda state: {"state_dict": {f"module.{name}": value for name, value in state.items()}},
        lambda state: {"model_state_dict": state, "args": argparse.Namespace(lr=0.1), "optimizer": {"steps": [1, 2]}},
    ],
    ids=["bare", "wrapped", "module prefix", "with a training script's options"],
)
@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("mmap", [False, True])
def test_every_form_of_a_torch_checkpoint_is_read(
    tmp_path: Path, wrap: Callable[[dict[str, torch.Tensor]], object], legacy: bool, mmap: bool
) -> None:
    torch.save(wrap(STATE), tmp_path / "model.pt", _use_new_zipfile_serialization=not legacy)
    assert same(read_state_dict(tmp_path / "model.pt", mmap=mmap))


def test_safetensors_are_read(tmp_path: Path) -> None:
    save_file(STATE, tmp_path / "model.safetensors")
    assert same(read_state_dict(tmp_path / "model.safetensors"))


def damaged(folder: Path) -> dict[str, Path]:
    """Files that are no checkpoint, by what is wrong with them."""
    good_pt, good_safe = folder / "good.pt", folder / "good.safetensors"
    torch.save(STATE, good_pt)
    save_file(STATE, good_safe)
    old_pt = folder / "old.pt"
    torch.save(STATE, old_pt, _use_new_zipfile_serialization=False)
    contents = {
        "empty.pt": b"",
        "empty.safetensors": b"",
        "text.pt": b"these are no weights\n" * 20,
        "text.safetensors": b"these are no weights\n" * 20,
        "truncated.pt": good_pt.read_bytes()[:-200],
        "truncated legacy.pt": old_pt.read_bytes()[:-20],
        "cut in the pickle.pt": old_pt.read_bytes()[:100],
        "truncated.safetensors": good_safe.read_bytes()[:-8],
        "header only.safetensors": good_safe.read_bytes()[:20],
        "huge header.safetensors": b"\xff" * 8 + b"{}",
        "pointer.pt": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        "pointer.safetensors": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        "code.pt": pickle.dumps(Evil(folder / "run")),
        "a list.pt": pickle.dumps([1, 2]),
        "no tensors.pt": pickle.dumps({"a": "b"}),
        "nothing.pt": pickle.dumps({}),
        "nothing.safetensors": save({}),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    torch.save({"weights": Evil(folder / "run")}, folder / "code in a zip.pt")
    torch.save({}, folder / "nothing in a zip.pt")
    torch.save({"a": torch.ones(2, device="meta")}, folder / "shapes only.pt")
    torch.save({"a": torch.ones(2).to_sparse()}, folder / "sparse.pt")
    torch.jit.save(torch.jit.script(torch.nn.ReLU()), folder / "program.pt")
    np.savez(folder / "numpy.npz", a=np.ones(2))
    return {name: folder / name for name in DAMAGED}


DAMAGED = (
    "empty.pt", "empty.safetensors", "text.pt", "text.safetensors", "truncated.pt", "truncated.safetensors",
    "header only.safetensors", "huge header.safetensors", "pointer.pt", "pointer.safetensors", "code.pt", "a list.pt",
    "no tensors.pt", "nothing.pt", "nothing.safetensors", "code in a zip.pt", "nothing in a zip.pt", "shapes only.pt",
    "sparse.pt", "numpy.npz", "program.pt", "truncated legacy.pt", "cut in the pickle.pt",
)  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("mmap", [False, True])
def test_a_damaged_checkpoint_is_a_named_error(tmp_path: Path, name: str, mmap: bool) -> None:
    paths = damaged(tmp_path)
    assert set(paths) == set(DAMAGED)
    with pytest.raises(WeightsError, match=name.replace(".", r"\.")):
        read_state_dict(paths[name], mmap=mmap)
    assert not (tmp_path / "run").exists()


def test_a_missing_file_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(EncoderUnavailableError, match="no such"):
        read_state_dict(tmp_path / "none.pt")
    with pytest.raises(EncoderUnavailableError, match="no such checkpoint file, it is a folder"):
        read_state_dict(tmp_path)
    with pytest.raises(EncoderUnavailableError, match="cannot be read: File name too long"):
        read_state_dict(tmp_path / ("x" * 300))


def put_in_cache(
    cache: Path, repository: str, files: dict[str, bytes], commit: str = "c" * 40, ref: str = "main"
) -> Path:
    """Lay files into a hub cache as a download does."""
    folder = cache / f"models--{repository.replace('/', '--')}"
    snapshot = folder / "snapshots" / commit
    for name, content in files.items():
        (snapshot / name).parent.mkdir(parents=True, exist_ok=True)
        (snapshot / name).write_bytes(content)
    (folder / "refs").mkdir(exist_ok=True)
    (folder / "refs" / ref).write_text(commit)
    return snapshot


def test_a_cached_file_is_found_without_asking_anyone(hub_cache: Path) -> None:
    snapshot = put_in_cache(hub_cache, "me/model", {"pytorch_model.bin": b"x"})
    names = ("model.safetensors", "pytorch_model.bin")
    assert hub_file("me/model", names) == snapshot / "pytorch_model.bin"
    other = put_in_cache(hub_cache, "me/model", {"pytorch_model.bin": b"y"}, commit="d" * 40, ref="v2")
    assert hub_file("me/model", names, revision="v2") == other / "pytorch_model.bin"
    assert hub_file("me/model", names, revision="c" * 40) == snapshot / "pytorch_model.bin"
    assert hub_snapshot("me/model", ("pytorch_model.bin",), ("*",), revision="v2") == other


def silent_server() -> socket.socket:
    """Accepts connections and never answers."""
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(5)
    return server


@pytest.mark.parametrize("how", ["no name service", "offline flag", "silent server", "interrupted download"])
def test_offline_says_within_5_seconds_what_to_fetch(
    hub_cache: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    from huggingface_hub import constants

    server = silent_server()
    if how == "offline flag":
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    elif how == "silent server":
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
    elif how == "interrupted download":
        put_in_cache(hub_cache, "me/model", {"config.json": b"{}"})
    start = time.monotonic()
    with pytest.raises(EncoderUnavailableError) as caught:
        hub_snapshot("me/model", ("config.json", "model.pt"), ("*",))
    assert time.monotonic() - start < 5
    assert "me/model (config.json, model.pt)" in str(caught.value)
    assert "hf download me/model --local-dir" in str(caught.value)
    server.close()


def test_a_single_file_and_its_revision_are_named(hub_cache: Path) -> None:
    with pytest.raises(EncoderUnavailableError, match=r"me/model \(a.safetensors, a.bin\).*--revision v1"):
        hub_file("me/model", ("a.safetensors", "a.bin"), revision="v1")


def test_within_gives_up_and_passes_errors_on() -> None:
    assert within(5, lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        within(5, lambda: 1 // 0)
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        within(0.1, lambda: time.sleep(2))
    assert time.monotonic() - start < 1

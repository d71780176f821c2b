"""One family of bad checkpoints across csd, clip and lpips: one sentence that names the file, before any network."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lpips
import open_clip
import pytest
import torch
import torchvision
from safetensors.torch import load_file

from assetscore.encoders import get_encoder
from assetscore.errors import EncoderError, EncoderUnavailableError, WeightsError

from .test_weights import DAMAGED, damaged
from .tiny_models import csd_state

State = dict[str, torch.Tensor]
BUILDERS: dict[str, tuple[Any, str]] = {
    "csd": (open_clip.transformer, "VisionTransformer"),
    "clip:tiny-clip": (open_clip, "create_model"),
    "lpips:squeeze": (lpips, "LPIPS"),
}
across_encoders = pytest.mark.parametrize("encoder", BUILDERS)


def refused(encoder: str, path: Path, kind: type[EncoderError]) -> str:
    """The message: one line that names the file once, and none of torch's own."""
    with pytest.raises(kind) as caught:
        get_encoder(encoder, weights=path, device="cpu")
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert len(message) < len(str(path)) + 500
    for of_torch in (
        "Error(s) in loading",
        "pop from",
        "Traceback",
        "NoneType",
        "weights_only",
        "size mismatch",
        "copying a param",
    ):
        assert of_torch not in message
    return message


@pytest.mark.usefixtures("tiny_clip")
@across_encoders
@pytest.mark.parametrize("name", [*DAMAGED, "missing.pt", "missing.safetensors", "a folder", "x" * 300])
def test_a_file_that_cannot_be_read_is_told_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoder: str, name: str
) -> None:
    damaged(tmp_path)
    (tmp_path / "a folder").mkdir()
    monkeypatch.setattr(*BUILDERS[encoder], lambda *args, **options: pytest.fail("the network was built"))
    refused(encoder, tmp_path / name, WeightsError if name in DAMAGED else EncoderUnavailableError)
    assert not (tmp_path / "run").exists()


def good(encoder: str, tiny_clip: Path) -> State:
    if encoder == "csd":
        return csd_state()
    if encoder == "clip:tiny-clip":
        return load_file(tiny_clip)
    features = torchvision.models.squeezenet1_1().features.state_dict()
    return {f"features.{name}": value for name, value in features.items()}


MISFITS: dict[str, Callable[[State, str], State]] = {
    "another model's": lambda state, name: {"unrelated.weight": torch.ones(3)},
    "prefixed": lambda state, name: {f"student.{key}": value for key, value in state.items()},
    "one lacking": lambda state, name: {key: value for key, value in state.items() if key != name},
    "one too many": lambda state, name: {**state, "extra.bias": torch.ones(3)},
    "another length": lambda state, name: {**state, name: torch.ones(7)},
    "another rank": lambda state, name: {**state, name: torch.ones(7, 7, 7)},
    "a number": lambda state, name: {**state, name: torch.tensor(1.0)},
    "nothing in it": lambda state, name: {**state, name: torch.ones(0)},
}


def telling(state: State) -> list[str]:
    """Tensors whose shapes tell sizes, and an ordinary one."""
    sizes = ("conv1.weight", "positional_embedding", "0.mlp.c_fc.weight", "last_layer_style", "logit_scale", "bias")
    return [next(key for key in state if key.endswith(end)) for end in sizes if any(key.endswith(end) for key in state)]


@across_encoders
@pytest.mark.parametrize("fault", MISFITS)
def test_tensors_of_another_model_are_told_before_the_network_takes_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_clip: Path, encoder: str, fault: str
) -> None:
    owner, name = BUILDERS[encoder]
    build = getattr(owner, name)

    def skeleton_only(*args: Any, **options: Any) -> Any:
        assert torch.get_default_device().type == "meta", "the network was built"
        return build(*args, **options)

    monkeypatch.setattr(owner, name, skeleton_only)
    state = good(encoder, tiny_clip)
    for position, tensor in enumerate(telling(state)):
        odd = MISFITS[fault](state, tensor)
        if tensor == "logit_scale" and fault == "a number":
            continue  # open_clip takes it as a number or as a row of one
        torch.save(odd, tmp_path / f"odd {position}.pt")
        refused(encoder, tmp_path / f"odd {position}.pt", WeightsError)


@across_encoders
def test_the_first_names_of_each_fault_are_told(tmp_path: Path, tiny_clip: Path, encoder: str) -> None:
    state = good(encoder, tiny_clip)
    lost, reshaped = [key for key in state if key.endswith("bias")][:2]
    odd = {key: value for key, value in state.items() if key != lost}
    torch.save({**odd, reshaped: torch.ones(7), "extra.bias": torch.ones(3)}, tmp_path / "odd.pt")
    message = refused(encoder, tmp_path / "odd.pt", WeightsError)
    shape = re.escape(f"{reshaped} of (7,) for {tuple(state[reshaped].shape)}")
    assert re.search(rf"lacks 1 \({re.escape(lost)}\)", message)
    assert re.search(rf"has in another shape 1 \({shape}\)", message)
    assert re.search(r"has too many 1 \(extra\.bias\)", message)


@across_encoders
def test_one_odd_layer_number_asks_for_no_million_layers(tmp_path: Path, tiny_clip: Path, encoder: str) -> None:
    state = good(encoder, tiny_clip)
    name = {"csd": "backbone.transformer.resblocks.{}.ln_1.bias", "clip:tiny-clip": "visual.transformer.resblocks.{}.b"}
    for number in ("99999999", "x", "-1"):
        torch.save({**state, name.get(encoder, "features.{}.bias").format(number): torch.ones(3)}, tmp_path / "odd.pt")
        refused(encoder, tmp_path / "odd.pt", WeightsError)

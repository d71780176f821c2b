"""Loading TPIPS checkpoints: found, compared key by key, and without unpickling anything but tensors.

The `tpips` package loads a checkpoint that does not fit in silence (the base model's vectors come out), unpickles with
weights_only=False, prints to stdout and waits for minutes on a hub that does not answer. So the models are made by its
own constructors, and the weights put in here.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from ..errors import EncoderUnavailableError, WeightsError
from ._torch import require
from ._weights import hub_snapshot, read_state_dict

if TYPE_CHECKING:
    import torch

__all__ = ["REPOSITORIES", "Kind", "load_tpips"]

logger = logging.getLogger(__name__)

Kind = Literal["embedding", "early_fusion", "activation_dist"]
REPOSITORIES: Mapping[str, str] = {
    "embedding": "sywang/TPIPS-Embed-Qwen3VL-8B",
    "early_fusion": "sywang/TPIPS-EarlyFusion-Qwen3VL-8B",
    "activation_dist": "sywang/TPIPS-ActDiff-Qwen3VL-8B",
}
BACKBONE = "Qwen/Qwen3-VL-Embedding-8B"
CHECKPOINT_FILES = ("config.json", "model.pt")
TEXT_FILES = ("*.json", "*.txt", "*.jinja")


def load_tpips(
    kind: Kind,
    weights: str | os.PathLike[str] | None,
    revision: str | None,
    device: torch.device,
    dtype: torch.dtype,
) -> Any:
    """A TPIPS model with the weights of a folder or hub repository, ready for inference.

    Args:
        kind: which of the three models; the checkpoint must say the same.
        weights: a folder holding config.json and model.pt, or a hub id; None is the authors' own.
        revision: of the hub repository.
        device, dtype: where and in which precision it runs.

    Raises:
        EncoderUnavailableError: the package, a file or the backbone is not here and cannot be fetched.
        WeightsError: the checkpoint is damaged, of another kind, or does not fit the model.
    """
    require(("tpips", "transformers", "peft"), "tpips", "tpips")
    say_licence()
    folder = find_checkpoint(kind, weights, revision)
    config = read_config(folder, kind)
    state = read_state_dict(folder / "model.pt", mmap=True)
    config["name"] = str(find_backbone(str(config.get("name", BACKBONE))))
    with quiet():
        model = construct(kind, config, device)
        put(model, state, folder / "model.pt")
        put_processor(model, folder)
    return model.to(device=device, dtype=dtype).eval()


@functools.cache
def say_licence() -> None:
    """Once a process: what the licence allows."""
    logger.warning(
        "tpips: the package and its weights are under the Adobe Research Licence: non-commercial research use only, "
        "and revocable"
    )


def find_checkpoint(kind: Kind, weights: str | os.PathLike[str] | None, revision: str | None) -> Path:
    """The folder of a checkpoint, with both of its files."""
    repository = REPOSITORIES[kind] if weights is None else os.fspath(weights)
    folder = Path(repository).expanduser()
    if folder.is_dir():
        for name in CHECKPOINT_FILES:
            if not (folder / name).is_file():
                raise EncoderUnavailableError(f"{folder}: lacks {name}; a TPIPS checkpoint is a folder with both files")
        return folder
    if folder.exists():
        raise WeightsError(f"{folder}: is a file; a TPIPS checkpoint is a folder with config.json and model.pt")
    if not is_repository(repository):
        raise EncoderUnavailableError(f"{repository}: there is no such folder, and it is no hub id (owner/name)")
    return hub_snapshot(repository, CHECKPOINT_FILES, (*CHECKPOINT_FILES, *TEXT_FILES), revision)


def find_backbone(name: str) -> Path:
    """The folder of the model that a checkpoint adapts."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if not is_repository(name):
        raise EncoderUnavailableError(f"the checkpoint's backbone {name} is no folder here and no hub id (owner/name)")
    return hub_snapshot(name, ("config.json",), ("*.safetensors", *TEXT_FILES))


def is_repository(name: str) -> bool:
    """Can this be a hub id?"""
    return re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name) is not None


def read_config(folder: Path, kind: Kind) -> dict[str, Any]:
    """The "model" part of config.json, or a WeightsError where it is not of that kind."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))["model"]
        declared = config["type"]
    except (ValueError, KeyError, TypeError) as error:
        raise WeightsError(f'{path}: must be JSON with {{"model": {{"type": ...}}}}: {error!r}') from error
    if declared != kind:
        raise WeightsError(f"{path}: holds a TPIPS model of type {declared!r}, {kind!r} is needed")
    return dict(config)


def construct(kind: Kind, config: Mapping[str, Any], device: torch.device) -> Any:
    """The package's model around its backbone, before the checkpoint's weights."""
    import tpips.activation_dist
    import tpips.early_fusion
    import tpips.embedding

    makers = {
        "embedding": tpips.embedding.load_embedding_model,
        "early_fusion": tpips.early_fusion.load_early_fusion_model,
        "activation_dist": tpips.activation_dist.load_activation_dist_model,
    }
    try:
        return makers[kind](dict(config), device)
    except OSError as error:
        raise EncoderUnavailableError(f"the backbone {config['name']} cannot be read: {error}") from error
    except (ValueError, KeyError, TypeError, RuntimeError) as error:
        raise WeightsError(f"config.json of the checkpoint or its backbone {config['name']}: {error}") from error


def put(model: torch.nn.Module, state: Mapping[str, torch.Tensor], path: Path) -> None:
    """Put a checkpoint's tensors into the model, or say how it does not fit.

    A checkpoint may hold the whole model, or only what was trained (the rest comes from the backbone): so every
    trained tensor must be there, and nothing that the model has not.
    """
    own = model.state_dict()
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad} or set(own)
    unknown = sorted(set(state) - set(own))
    absent = sorted(trained - set(state))
    if unknown or absent:
        raise WeightsError(
            f"{path}: does not fit the model: {len(unknown)} unknown keys {unknown[:3]}, "
            f"{len(absent)} missing keys {absent[:3]}"
        )
    try:
        model.load_state_dict(dict(state), strict=False, assign=True)
    except RuntimeError as error:
        raise WeightsError(f"{path}: does not fit the model: {' '.join(str(error).split())[:400]}") from error


def put_processor(model: Any, folder: Path) -> None:
    """A checkpoint that brings its own processor is used with it."""
    if not (folder / "tokenizer_config.json").is_file():
        return
    from transformers import AutoProcessor

    try:
        processor: Any = cast(Any, AutoProcessor).from_pretrained(str(folder), padding_side="right")
    except Exception as error:
        raise WeightsError(f"{folder}: its processor cannot be read: {error}") from error
    model.processor = processor
    if hasattr(model, "extractor"):
        model.extractor.processor = processor


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """What is printed or warned inside goes to the log."""
    said = StringIO()
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(said):
        warnings.simplefilter("always")
        try:
            yield
        finally:
            lines = [*said.getvalue().splitlines(), *(str(warning.message) for warning in caught)]
            for line in lines:
                logger.info("tpips: %s", line)

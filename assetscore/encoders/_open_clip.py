"""open_clip's networks and tokenizers from what is on this machine: checked first, built then."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import EncoderUnavailableError, WeightsError
from ._torch import require
from ._weights import check_fit, hub_snapshot, one_line, read_state_dict, tensors_of

if TYPE_CHECKING:
    import torch

__all__ = ["load_network", "tokenizer"]

TOKENIZER_FILES = ("*.json", "*.txt", "*.model")


def load_network(architecture: str, path: Path, quickgelu: bool, fetch: bool) -> Any:
    """An open_clip model with the file's weights, every one of them used.

    The file is read, and its tensors are compared with the architecture's, before the network takes memory.

    Args:
        architecture: a name open_clip knows.
        path: the checkpoint.
        quickgelu: does it use QuickGELU?
        fetch: may the hub be asked for the configuration of a text tower that is not cached?

    Raises:
        WeightsError: the file is damaged, or its tensors are not this architecture's.
        EncoderUnavailableError: there is no such file, or the architecture needs files that are not here.
    """
    import torch

    read_state_dict(path, mmap=True)
    text = text_config(architecture, fetch)
    try:
        with torch.device("meta"):
            skeleton = build(architecture, quickgelu, text, "meta")
    except EncoderUnavailableError:  # a layer that computes with numbers while it is made; else the next line tells
        skeleton = build(architecture, quickgelu, text, "cpu")
    state = converted(architecture, skeleton, path)
    check_fit(path, f"clip:{architecture}", skeleton.state_dict(), state)
    network = build(architecture, quickgelu, text, "cpu")
    network.load_state_dict(state)
    return network


def text_config(architecture: str, fetch: bool) -> dict[str, Any]:
    """open_clip's settings of the text tower; one of transformers' is pointed at its files on this machine.

    open_clip itself gives transformers the name of a repository, and transformers asks the hub for its configuration
    again and again, cached or not.
    """
    import open_clip

    config: dict[str, Any] = open_clip.get_model_config(architecture)["text_cfg"]
    if repository := config.get("hf_model_name"):
        require(("transformers",), None, f"clip:{architecture}")
        folder = hub_snapshot(repository, ("config.json",), ("config.json",), fetch=fetch)
        config |= {"hf_model_name": str(folder), "hf_model_pretrained": False}
    return config


def build(architecture: str, quickgelu: bool, text: Mapping[str, Any], device: str) -> torch.nn.Module:
    """The network without its weights."""
    import open_clip

    try:
        with quiet():
            network: torch.nn.Module = open_clip.create_model(
                architecture,
                force_quick_gelu=quickgelu,
                device=device,
                pretrained_text=False,
                text_cfg=dict(text),
            )
            return network
    except Exception as error:  # packages it needs, and configurations of the hub, raise what they like
        raise EncoderUnavailableError(f"clip:{architecture} cannot be made here: {one_line(error)}") from error


def converted(architecture: str, network: torch.nn.Module, path: Path) -> dict[str, torch.Tensor]:
    """The file's tensors as open_clip would give them to the network: renamed and resized from older forms."""
    import open_clip

    taken: dict[str, torch.Tensor] = {}

    def take(state: Mapping[str, torch.Tensor], strict: bool = True) -> None:
        taken.update(state)

    network.load_state_dict = take  # type: ignore[method-assign,assignment]
    try:
        with quiet():
            open_clip.load_checkpoint(network, str(path))
    except Exception as error:  # what is renamed or resized may be lacking, or have too few dimensions
        check_fit(path, f"clip:{architecture}", network.state_dict(), read_state_dict(path, mmap=True))
        reason = f"open_clip cannot convert its tensors ({type(error).__name__}: {one_line(error)})"
        raise WeightsError(f"{path}: no weights of clip:{architecture}: {reason}") from error
    return tensors_of(taken, path)


@contextmanager
def quiet() -> Iterator[None]:
    """Without open_clip's warning of random weights, which are replaced, and without others' of their own code."""

    def told(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("No pretrained weights loaded")

    root = logging.getLogger()  # open_clip writes to the root logger itself
    root.addFilter(told)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        root.removeFilter(told)


def tokenizer(architecture: str, fetch: bool) -> Any:
    """The architecture's tokenizer, made from files on this machine.

    Raises:
        EncoderUnavailableError: its files are not cached and cannot be fetched, or not for a local checkpoint.
    """
    import open_clip
    from open_clip.tokenizer import DEFAULT_CONTEXT_LENGTH, HFTokenizer

    config = open_clip.get_model_config(architecture)["text_cfg"]
    repository = config.get("hf_tokenizer_name")
    if not repository:
        return open_clip.get_tokenizer(architecture)
    require(("transformers",), None, f"clip:{architecture}")
    folder = hub_snapshot(repository, ("tokenizer_config.json",), TOKENIZER_FILES, fetch=fetch)
    try:
        return HFTokenizer(
            str(folder),
            context_length=config.get("context_length", DEFAULT_CONTEXT_LENGTH),
            tokenizer_mode=config.get("tokenizer_mode"),
            **config.get("tokenizer_kwargs", {}),
        )
    except Exception as error:
        raise EncoderUnavailableError(
            f"clip:{architecture} reads factors through a tokenizer, and {folder} does not hold it: {one_line(error)}"
        ) from error

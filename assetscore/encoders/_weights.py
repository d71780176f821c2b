"""Checkpoints: found here or on the hub, read without unpickling anything but tensors, refused where damaged."""

from __future__ import annotations

import argparse
import logging
import os
import pickle
import threading
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import EncoderUnavailableError, WeightsError
from ._torch import out_of_memory

if TYPE_CHECKING:
    import torch

__all__ = [
    "check_file",
    "check_fit",
    "hub_file",
    "hub_snapshot",
    "reachable",
    "read_state_dict",
    "tensors_of",
    "within",
]

logger = logging.getLogger(__name__)
T = TypeVar("T")

ZIP, PICKLE = b"PK", b"\x80"
LFS_POINTER = b"version https://git-lfs"
WRAPPERS = ("model_state_dict", "state_dict", "model")
PROBE_SECONDS = 4.0
"""How long the hub may take to answer at all. A server that accepts and never answers would hang for minutes."""


def check_file(path: Path) -> bytes:
    """The first bytes of a checkpoint that is there and is not a Git LFS pointer."""
    try:
        if path.is_dir():
            raise EncoderUnavailableError(f"{path}: there is no such checkpoint file, it is a folder")
        if not path.is_file():
            raise EncoderUnavailableError(f"{path}: there is no such checkpoint file")
        with path.open("rb") as file:
            head = file.read(64)
    except OSError as error:  # no permission, a name too long
        raise EncoderUnavailableError(f"{path}: the checkpoint file cannot be read: {error.strerror}") from error
    if not head:
        raise WeightsError(f"{path}: no readable checkpoint of tensors, the file is empty")
    if head.startswith(LFS_POINTER):
        raise WeightsError(f"{path}: a Git LFS pointer, not the weights themselves; fetch them with `git lfs pull`")
    return head


def read_state_dict(path: str | os.PathLike[str], mmap: bool = False) -> dict[str, torch.Tensor]:
    """The tensors of a .safetensors file or a torch checkpoint, by name.

    Args:
        path: the file. Its content decides nothing but safetensors or not: that goes by the name.
        mmap: read a torch checkpoint's tensors from the disk only as they are used.

    Raises:
        EncoderUnavailableError: there is no such file.
        WeightsError: a Git LFS pointer, a truncated file, a text file, or a pickle of anything but tensors.
    """
    import torch

    path = Path(path)
    head = check_file(path)

    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return tensors_of(load_file(path), path)
        # Training scripts put their argparse.Namespace beside the weights: a plain record, and nothing that runs.
        with torch.serialization.safe_globals([argparse.Namespace]):
            loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=mmap and head.startswith(ZIP))
    except WeightsError:
        raise
    except Exception as error:  # zipfile, pickle, safetensors and torch raise a dozen types for a damaged file
        raise WeightsError(f"{path}: no readable checkpoint of tensors, {what_is_wrong(path, head, error)}") from error
    return tensors_of(loaded, path)


def what_is_wrong(path: Path, head: bytes, error: Exception) -> str:
    """What keeps a file from being read, in words of our own: torch's advise to run the code in the file."""
    if out_of_memory(error):
        return "it does not fit into memory"
    if path.suffix == ".safetensors":
        return f"the file is cut off or not of the safetensors format ({one_line(error)})"
    if "TorchScript" in str(error):
        return "it is a TorchScript program, of which the state dict is needed"
    if isinstance(error, pickle.UnpicklingError):
        return "it holds other things than tensors, or code, which is not run"
    if head.startswith(ZIP):
        whole = zipfile.is_zipfile(path)
        return "it is an archive that torch did not write" if whole else "the file is cut off"
    return "the file is cut off" if head.startswith(PICKLE) else "the file is none that torch wrote"


def one_line(error: BaseException) -> str:
    """The first words of a message, or the error's type where it has none."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def tensors_of(loaded: object, path: str | os.PathLike[str]) -> dict[str, torch.Tensor]:
    """The name-to-tensor mapping inside what a checkpoint file held, without wrappers and "module." prefixes."""
    import torch

    for key in WRAPPERS:
        if isinstance(loaded, Mapping) and isinstance(loaded.get(key), Mapping):
            loaded = loaded[key]
    if not isinstance(loaded, Mapping):
        raise WeightsError(f"{path}: holds no mapping of names to tensors, got {type(loaded).__name__}")
    if not loaded:
        raise WeightsError(f"{path}: holds no tensors")
    for name, value in loaded.items():
        if not isinstance(name, str) or not isinstance(value, torch.Tensor):
            raise WeightsError(f"{path}: {name!r} is no tensor, got {type(value).__name__}")
        if value.is_meta or value.layout is not torch.strided or value.is_quantized:
            kind = "no numbers" if value.is_meta else "sparse or quantised numbers"
            raise WeightsError(f"{path}: {name!r} is a tensor of {kind}, which no encoder takes")
    return {name.removeprefix("module."): value for name, value in loaded.items()}


def check_fit(
    path: str | os.PathLike[str],
    model: str,
    expected: Mapping[str, torch.Tensor],
    state: Mapping[str, torch.Tensor],
) -> None:
    """Refuse a checkpoint whose tensors are not the model's, before the model takes memory.

    Args:
        path: the file, for the message.
        model: what the tensors should be of, for the message.
        expected: the model's tensors by name; those of a skeleton on the meta device do.
        state: the checkpoint's.

    Raises:
        WeightsError: tensors are lacking, of another shape, or too many; the first few of each kind are named.
    """
    lacking = [name for name in expected if name not in state]
    extra = [name for name in state if name not in expected]
    reshaped = [
        f"{name} of {tuple(state[name].shape)} for {tuple(tensor.shape)}"
        for name, tensor in expected.items()
        if name in state and state[name].shape != tensor.shape
    ]
    faults = (("lacks", lacking), ("has in another shape", reshaped), ("has too many", extra))
    if told := [f"{verb} {len(names)} ({', '.join(names[:3])})" for verb, names in faults if names]:
        raise WeightsError(f"{path}: no weights of {model}: of the {len(expected)} tensors it {', '.join(told)}")


def within(seconds: float, function: Callable[[], T]) -> T:
    """`function()`, or a TimeoutError after that many seconds; its thread is left behind and holds nothing up."""
    box: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            box.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not box:
        raise TimeoutError(f"no answer within {seconds:g} s")
    return box[0]


def reachable(repo: str, revision: str | None, files: Sequence[str]) -> Any:
    """The hub's description of a repository, or EncoderUnavailableError that says what to fetch, in under 5 s."""
    from huggingface_hub import HfApi, constants

    if constants.HF_HUB_OFFLINE:
        raise missing(repo, revision, files, "HF_HUB_OFFLINE is set, and it is not in the hub's cache")
    try:
        return within(PROBE_SECONDS, lambda: HfApi().model_info(repo, revision=revision, timeout=PROBE_SECONDS - 1))
    except Exception as error:
        raise missing(repo, revision, files, f"the hub did not answer: {one_line(error)}") from error


def missing(repo: str, revision: str | None, files: Sequence[str], reason: str) -> EncoderUnavailableError:
    """The error that names what to fetch and how."""
    at = f" --revision {revision}" if revision else ""
    return EncoderUnavailableError(
        f"{repo} ({', '.join(files)}) is needed and cannot be had: {reason}. On a machine with access run "
        f"`hf download {repo}{at} --local-dir FOLDER`, bring FOLDER here, and give its path as `weights`"
    )


def hub_file(repo: str, names: Sequence[str], revision: str | None = None) -> Path:
    """One file of a hub repository: the first of `names` that is cached or, failing that, that the hub has.

    Raises:
        EncoderUnavailableError: not cached, and the hub is offline or does not have it. Raised in under 5 s.
    """
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    for name in names:
        found = try_to_load_from_cache(repo, name, revision=revision)
        if isinstance(found, str):
            return Path(found)
    info = reachable(repo, revision, names)
    there = {sibling.rfilename for sibling in info.siblings or ()}
    for name in names:
        if name in there:
            logger.info("fetching %s from %s at %s", name, repo, info.sha)
            return Path(hf_hub_download(repo, name, revision=info.sha))
    raise missing(repo, revision, names, f"the repository has none of them, it has {sorted(there)[:10]}")


def hub_snapshot(
    repo: str, needed: Sequence[str], patterns: Sequence[str], revision: str | None = None, fetch: bool = True
) -> Path:
    """A folder with a hub repository's files of those patterns; `needed` must be among them.

    Args:
        repo, revision: of the hub.
        needed: names of files.
        patterns: of the files to fetch where they are not cached.
        fetch: False asks no hub: the files are in its cache on this machine, or it is an error at once.

    Raises:
        EncoderUnavailableError: not cached, and the hub is offline or lacks a needed file. Raised in under 5 s.
    """
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(repo, revision=revision, local_files_only=True))
        if all((folder / name).is_file() for name in needed):
            return folder
    except LocalEntryNotFoundError:
        pass
    if not fetch:
        cached = f"models--{repo.replace('/', '--')}"
        raise EncoderUnavailableError(
            f"{repo} ({', '.join(needed)}) is needed and is not in the hub's cache, and with a local checkpoint the "
            f"hub is not asked. On a machine with access run `hf download {repo} {' '.join(needed)}` and bring the "
            f"folder {cached} of its cache here into {constants.HF_HUB_CACHE}"
        )
    info = reachable(repo, revision, needed)
    logger.info("fetching %s at %s", repo, info.sha)
    folder = Path(snapshot_download(repo, revision=info.sha, allow_patterns=list(patterns)))
    for name in needed:
        if not (folder / name).is_file():
            raise missing(repo, revision, needed, f"the repository has no {name}")
    return folder

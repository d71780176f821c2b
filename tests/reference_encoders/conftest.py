"""Tiny checkpoints, and no network: whatever these tests load lies on the disk."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="package", autouse=True)
def no_network() -> Iterator[None]:
    """Connections end in an error at once, but for those to this machine."""
    patch = pytest.MonkeyPatch()
    connect, resolve = socket.socket.connect, socket.getaddrinfo

    def guarded_connect(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1"):
            raise OSError(f"no network in tests: {address}")
        connect(self, address)

    def guarded_resolve(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host not in ("127.0.0.1", "::1", "localhost", None):
            raise socket.gaierror(f"no network in tests: {host}")
        return resolve(host, *args, **kwargs)

    patch.setattr(socket.socket, "connect", guarded_connect)
    patch.setattr(socket, "getaddrinfo", guarded_resolve)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        patch.delenv(name, raising=False)
    yield
    patch.undo()


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    """Models this small only lose by threads, and by far where the machine is busy."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache of the test's own."""
    from huggingface_hub import constants

    folder = tmp_path / "hub"
    folder.mkdir()
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    return folder


@pytest.fixture(scope="package")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("tpips", reason='pip install "assetscore[tpips]"')
    from .tiny_models import save_backbone

    return save_backbone(tmp_path_factory.mktemp("backbone"))


@pytest.fixture(scope="package")
def checkpoint(tmp_path_factory: pytest.TempPathFactory, backbone: Path) -> Path:
    """A TPIPS embedding checkpoint."""
    from .tiny_models import save_tpips

    return save_tpips(tmp_path_factory.mktemp("tpips"), backbone)


@pytest.fixture(scope="package")
def tiny_clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The weights of the architecture "tiny-clip", which open_clip then knows."""
    import open_clip
    import torch
    from safetensors.torch import save_file

    from .tiny_models import clip_config

    folder = tmp_path_factory.mktemp("clip")
    (folder / "tiny-clip.json").write_text(json.dumps(clip_config()))
    open_clip.add_model_config(folder / "tiny-clip.json")
    torch.manual_seed(0)
    model = open_clip.create_model("tiny-clip")
    with torch.no_grad():
        for parameter in model.parameters():  # biases start at zero: half of the tower would go untested
            parameter.add_(0.05 * torch.randn_like(parameter))
    save_file(model.state_dict(), folder / "tiny.safetensors")
    return folder / "tiny.safetensors"


@pytest.fixture(scope="package")
def csd_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    from .tiny_models import csd_state

    path = tmp_path_factory.mktemp("csd") / "checkpoint.pth"
    torch.save({"model_state_dict": csd_state()}, path)
    return path


@pytest.fixture(scope="package")
def alex_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    import torchvision

    torch.manual_seed(3)
    path = tmp_path_factory.mktemp("lpips") / "alexnet.pth"
    features = torchvision.models.alexnet().features.state_dict()
    torch.save({f"features.{name}": value for name, value in features.items()}, path)
    return path


@pytest.fixture
def pictures() -> list[np.ndarray[Any, Any]]:
    """Six textures of several sizes and kinds, one of them with a transparent half."""
    random = np.random.default_rng(11)
    shapes = [(16, 16, 4), (16, 16, 3), (32, 16, 3), (20, 30, 4), (64, 64, 3), (16, 16, 4)]
    made = [random.integers(0, 256, shape, dtype=np.uint8) for shape in shapes]
    made[0][:8, :, 3] = 0
    return made

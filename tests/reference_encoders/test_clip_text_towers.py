"""open_clip architectures whose text tower or tokenizer is transformers': from the hub's cache, without asking it."""

from __future__ import annotations

import json
import logging
import socket
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
from safetensors.torch import save_file

from assetscore.encoders import get_encoder
from assetscore.errors import EncoderUnavailableError

from .test_csd import picture_of
from .test_weights import put_in_cache
from .tiny_models import clip_config

pytest.importorskip("transformers")

Array = np.ndarray[Any, Any]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "picture", "of", "red", "blue", "things"]


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """The weights of "tiny-roberta", and the files of "me/roberta" that its text tower is made from."""
    from transformers import BertTokenizer, RobertaConfig

    folder = tmp_path_factory.mktemp("roberta")
    text = RobertaConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=48,
        max_position_embeddings=40,
        pad_token_id=0,
    )
    text.save_pretrained(folder / "hub")
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder / "hub")
    tower = {"hf_model_name": "me/roberta", "hf_tokenizer_name": "me/roberta", "hf_pooler_type": "mean_pooler"}
    config = {**clip_config(), "text_cfg": {**tower, "hf_proj_type": "mlp", "context_length": 12}}
    (folder / "tiny-roberta.json").write_text(json.dumps(config))
    open_clip.add_model_config(folder / "tiny-roberta.json")
    torch.manual_seed(2)
    save_file(theirs(folder / "hub").state_dict(), folder / "weights.safetensors")
    files = {path.name: path.read_bytes() for path in (folder / "hub").iterdir()}
    return folder / "weights.safetensors", files


def theirs(folder: Path, weights: Path | None = None) -> Any:
    """open_clip's own network, its text tower from a folder."""
    text = open_clip.get_model_config("tiny-roberta")["text_cfg"]
    text |= {"hf_model_name": str(folder), "hf_model_pretrained": False}
    pretrained = None if weights is None else str(weights)
    return open_clip.create_model("tiny-roberta", pretrained, text_cfg=text, pretrained_text=False).eval()


@pytest.fixture
def nobody_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test fails where any name is resolved or any connection is opened, though its error be caught."""

    def asked(*args: Any, **options: Any) -> None:
        pytest.fail(f"the network was asked: {args}")

    monkeypatch.setattr(socket, "getaddrinfo", asked)
    monkeypatch.setattr(socket.socket, "connect", asked)


@pytest.mark.usefixtures("nobody_asked")
@pytest.mark.parametrize("named", [False, True])
def test_a_local_checkpoint_and_cached_files_are_enough(
    hub_cache: Path, roberta: tuple[Path, dict[str, bytes]], pictures: list[Array], named: bool
) -> None:
    weights, files = roberta
    folder = put_in_cache(hub_cache, "me/roberta", files)
    options: dict[str, Any] = {"device": "cpu", "dtype": "fp32", "conditioning": "subspace"}
    if named:
        encoder: Any = get_encoder(f"clip:tiny-roberta/{weights}", **options)
    else:
        encoder = get_encoder("clip:tiny-roberta", weights=weights, **options)
    network, texts = theirs(folder, weights), ["a picture of red things", "blue"]
    tokens = torch.tensor([[2, 5, 6, 7, 8, 10, 3, 0, 0, 0, 0, 0], [2, 9, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]])
    with torch.no_grad():
        expected = network.encode_text(tokens, normalize=True).numpy()
        pixels = torch.from_numpy((picture_of(pictures[0]) / 255 - encoder.mean) / encoder.std)
        image = network.encode_image(pixels.permute(2, 0, 1)[None].float(), normalize=True).numpy()
    assert encoder.text_vectors(texts) == pytest.approx(expected, abs=2e-6)
    assert encoder.features(pictures[:1]) == pytest.approx(image, abs=2e-6)


@pytest.mark.usefixtures("nobody_asked")
@pytest.mark.parametrize("conditioning", ["none", "subspace"])
@pytest.mark.parametrize("cached", ["nothing", "the other file"])
def test_a_local_checkpoint_whose_text_files_are_not_cached_is_refused_in_words(
    hub_cache: Path, roberta: tuple[Path, dict[str, bytes]], conditioning: str, cached: str
) -> None:
    weights, files = roberta
    needed, other = "config.json", "tokenizer_config.json"
    if conditioning == "subspace":
        needed, other = other, needed
    if cached != "nothing":
        put_in_cache(hub_cache, "me/roberta", {other: files[other]})
    with pytest.raises(EncoderUnavailableError) as caught:
        get_encoder(f"clip:tiny-roberta/{weights}", conditioning=conditioning, device="cpu")
    message = str(caught.value)
    assert f"me/roberta ({needed}) is needed and is not in the hub's cache" in message
    assert f"hf download me/roberta {needed}" in message
    assert f"models--me--roberta of its cache here into {hub_cache}" in message


@pytest.mark.usefixtures("nobody_asked")
def test_damaged_text_files_are_refused_in_words(hub_cache: Path, roberta: tuple[Path, dict[str, bytes]]) -> None:
    weights, files = roberta
    put_in_cache(hub_cache, "me/roberta", {**files, "config.json": b"{"})
    with pytest.raises(EncoderUnavailableError, match="clip:tiny-roberta cannot be made here: "):
        get_encoder(f"clip:tiny-roberta/{weights}", device="cpu")
    put_in_cache(hub_cache, "me/roberta", {"config.json": files["config.json"], "tokenizer_config.json": b"{"})
    (hub_cache / "models--me--roberta" / "snapshots" / ("c" * 40) / "tokenizer.json").unlink()
    with pytest.raises(EncoderUnavailableError, match="does not hold it: "):
        get_encoder(f"clip:tiny-roberta/{weights}", conditioning="subspace", device="cpu")


def test_nothing_is_said_of_random_weights(tiny_clip: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        get_encoder(f"clip:tiny-clip/{tiny_clip}", device="cpu")
    assert caplog.text == ""

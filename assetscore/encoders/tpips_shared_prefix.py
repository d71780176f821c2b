"""All factors of an image in one forward of TPIPS.

TPIPS' prompt is system text, image, factor text, under a causal model whose last token is the vector: up to the
factor, every factor's sequence is the same, and nothing in it can see the factor. So one sequence

    prefix | suffix of factor 1 | suffix of factor 2 | ...

gives them all, where each suffix sees the prefix and itself (a mask), and takes the positions it has on its own,
right behind the prefix. The image, most of the work, is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import EncoderError

if TYPE_CHECKING:
    import torch

__all__ = ["embed_factors", "packed_mask", "suffix_positions"]

MASKABLE = ("sdpa", "eager")
"""Attention implementations that take a mask of any shape."""


class Captured(Exception):
    """Carries a backbone's inputs out of a forward that is not to be run."""

    def __init__(self, inputs: dict[str, Any]) -> None:
        super().__init__()
        self.inputs = inputs


def embed_factors(model: Any, images: Sequence[torch.Tensor], factors: Sequence[str]) -> torch.Tensor:
    """Unit vectors of images under each factor, in one forward.

    Args:
        model: the package's embedding model.
        images: n pictures of one size, each (3, h, w) in [0, 1], in a size that the processor does not resample.
        factors: F different texts.

    Returns:
        (n, F, d) float32 on the model's device, equal to the package's `embed` up to rounding.

    Raises:
        EncoderError: the attention implementation takes no mask, or the prompts do not begin alike.
    """
    import torch
    import torch.nn.functional as functional

    backbone = model.backbone
    implementation = backbone.config._attn_implementation
    if implementation not in MASKABLE:
        raise EncoderError(
            f"shared_prefix needs an attention that takes a mask ({' or '.join(MASKABLE)}), got {implementation!r}: "
            "set the environment variable TPIPS_ATTN_IMPL=sdpa before loading"
        )
    texts = [model.create_prompt(factor) for factor in factors]
    inputs = backbone_inputs(model, [texts[0]] * len(images), images)
    whole = inputs["input_ids"]
    # What stands around the image is the same for every picture: a small blank one tells each factor's tokens.
    blank = images[0].new_zeros(3, 32, 32)
    others = [backbone_inputs(model, [text], [blank])["input_ids"][0] for text in texts[1:]]
    token = backbone.config.image_token_id
    heads, tails = zip(*(around_image(ids, token) for ids in (whole[0], *others)), strict=True)
    if any(not torch.equal(head, heads[0]) for head in heads):
        raise EncoderError("the prompts of these factors do not begin alike: the model is told the factor first")
    common = common_length(tails)
    prefix = whole.shape[1] - len(tails[0]) + common
    suffixes = [tail[common:] for tail in tails]
    lengths = [len(suffix) for suffix in suffixes]

    packed = torch.cat([whole[:, :prefix], torch.cat(suffixes).expand(len(images), -1)], dim=1)
    positions, _ = backbone.model.get_rope_index(
        whole,
        mm_token_type_ids=inputs["mm_token_type_ids"],
        image_grid_thw=inputs["image_grid_thw"],
        attention_mask=inputs["attention_mask"],
    )
    mask = packed_mask(prefix, lengths, dtype=next(model.parameters()).dtype).to(packed.device)
    hidden = backbone(
        input_ids=packed,
        pixel_values=inputs["pixel_values"],
        image_grid_thw=inputs["image_grid_thw"],
        attention_mask=mask.expand(len(images), 1, -1, -1),
        position_ids=suffix_positions(positions, prefix, lengths),
    ).last_hidden_state

    ends = prefix + torch.tensor(lengths, device=hidden.device).cumsum(0)
    if model.pooling == "last_token":
        vectors = hidden[:, ends - 1].float()
    else:
        head = hidden[:, :prefix].float().sum(dim=1)
        parts = [
            (head + hidden[:, end - length : end].float().sum(dim=1)) / (prefix + length)
            for end, length in zip(ends.tolist(), lengths, strict=True)
        ]
        vectors = torch.stack(parts, dim=1)
    return functional.normalize(vectors, dim=-1)


def backbone_inputs(model: Any, texts: Sequence[str], images: Sequence[torch.Tensor]) -> dict[str, Any]:
    """What the package would give its backbone: tokens, patches and their grid, exactly as its own code makes them."""

    def capture(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        raise Captured(kwargs)

    handle = model.backbone.register_forward_pre_hook(capture, with_kwargs=True)
    try:
        model.forward(list(texts), list(images))
    except Captured as captured:
        inputs = captured.inputs
    else:
        raise EncoderError("this version of tpips does not run its backbone as shared_prefix expects it")
    finally:
        handle.remove()
    if not bool(inputs["attention_mask"].all()):
        raise EncoderError("shared_prefix takes pictures of one size at a time")
    return inputs


def around_image(ids: torch.Tensor, image_token: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The tokens before and behind the image."""
    image = (ids == image_token).nonzero()
    if not len(image):
        raise EncoderError("the model's prompt holds no image")
    return ids[: int(image[0])], ids[int(image[-1]) + 1 :]


def common_length(sequences: Sequence[torch.Tensor]) -> int:
    """How many tokens all sequences begin with alike; each keeps at least one of its own.

    >>> import torch
    >>> common_length([torch.tensor([1, 2, 3]), torch.tensor([1, 2, 4, 5]), torch.tensor([1, 2])])
    1
    """
    common = min(len(ids) for ids in sequences) - 1
    for ids in sequences[1:]:
        differs = (ids[:common] != sequences[0][:common]).nonzero()
        common = int(differs[0]) if len(differs) else common
    return common


def suffix_positions(positions: torch.Tensor, prefix: int, lengths: Sequence[int]) -> torch.Tensor:
    """Positions of a packed sequence: the prefix's own, then each suffix counted on from where the first one starts.

    Args:
        positions: (3, n, length) of the first factor's own sequence. Behind an image they do not follow the index
            (an image of h x w tokens moves them on by its longer side only), so they are counted on, not computed.
        prefix: tokens that all factors share.
        lengths: of the suffixes.

    Returns:
        (3, n, prefix + sum of lengths)
    """
    import torch

    start = positions[:, :, prefix, None]
    steps = [start + torch.arange(length, device=positions.device) for length in lengths]
    return torch.cat([positions[:, :, :prefix], *steps], dim=2)


def packed_mask(prefix: int, lengths: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """(1, 1, L, L) additive attention mask: causal, and no suffix sees another."""
    import torch

    group = torch.cat([torch.zeros(prefix)] + [torch.full((length,), float(i + 1)) for i, length in enumerate(lengths)])
    index = torch.arange(len(group))
    allowed = (index[None, :] <= index[:, None]) & ((group[None, :] == 0) | (group[None, :] == group[:, None]))
    mask = torch.zeros(allowed.shape, dtype=dtype)
    return mask.masked_fill(~allowed, torch.finfo(dtype).min)[None, None]

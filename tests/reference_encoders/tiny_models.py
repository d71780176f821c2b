"""Checkpoints with random weights, made with the real classes and saved as their authors save them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL_TOKENS = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>", "<think>",
]  # fmt: skip


def byte_symbols() -> list[str]:
    """The 256 printable characters that byte-level tokenizers write bytes with."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    symbols = {byte: chr(byte) for byte in plain}
    symbols |= {byte: chr(256 + i) for i, byte in enumerate(b for b in range(256) if b not in symbols)}
    return [symbols[byte] for byte in range(256)]


def byte_pairs(words: Sequence[str]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """A byte-level vocabulary and merges that make one token of each of these words, a space before it included."""
    symbols = byte_symbols()
    written = dict(enumerate(symbols))
    vocabulary = {symbol: i for i, symbol in enumerate(symbols)}
    merges = []
    for word in words:
        letters = [written[byte] for byte in word.encode()]
        for end in range(1, len(letters)):
            start = "".join(letters[:end])
            if start + letters[end] not in vocabulary:
                vocabulary[start + letters[end]] = len(vocabulary)
                merges.append((start, letters[end]))
    return vocabulary, merges


def qwen_processor(least: int, most: int, words: Sequence[str] = ()) -> Any:
    """A Qwen3-VL processor whose picture sizes run from `least` to `most` pixels; `words` are one token each."""
    from transformers import Qwen2Tokenizer, Qwen2VLImageProcessor, Qwen3VLProcessor, Qwen3VLVideoProcessor

    vocabulary, merges = byte_pairs(words)
    tokenizer = Qwen2Tokenizer(vocab=vocabulary, merges=merges, pad_token="<|endoftext|>", eos_token="<|im_end|>")
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL_TOKENS})
    images = Qwen2VLImageProcessor(
        patch_size=16,
        temporal_patch_size=2,
        merge_size=2,
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
        size={"shortest_edge": least, "longest_edge": most},
    )
    return Qwen3VLProcessor(images, tokenizer, Qwen3VLVideoProcessor(), chat_template=CHAT_TEMPLATE)


def save_backbone(
    folder: Path,
    *,
    hidden: int = 64,
    layers: int = 3,
    heads: int = 4,
    vision_hidden: int = 32,
    vision_depth: int = 3,
    least: int = 4096,
    most: int = 1 << 24,
    words: Sequence[str] = (),
    seed: int = 0,
) -> Path:
    """A Qwen3-VL embedding backbone of that size, its processor beside it."""
    from tpips.embedding.qwen3_vl_embed import Qwen3VLForEmbedding
    from transformers import Qwen3VLConfig

    processor = qwen_processor(least, most, words)
    token = processor.tokenizer.convert_tokens_to_ids
    head = hidden // heads
    config = Qwen3VLConfig(
        text_config={
            "vocab_size": len(processor.tokenizer) + 3,
            "hidden_size": hidden,
            "intermediate_size": 3 * hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": heads // 2,
            "head_dim": head,
            "max_position_embeddings": 16384,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10000.0,
                "mrope_section": [head // 2 - 2 * (head // 6), head // 6, head // 6],
                "mrope_interleaved": True,
            },
        },
        vision_config={
            "depth": vision_depth,
            "hidden_size": vision_hidden,
            "intermediate_size": 2 * vision_hidden,
            "num_heads": 4,
            "patch_size": 16,
            "temporal_patch_size": 2,
            "spatial_merge_size": 2,
            "out_hidden_size": hidden,
            "num_position_embeddings": 64,
            "deepstack_visual_indexes": [0, 1],
        },
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
    )
    torch.manual_seed(seed)
    model = Qwen3VLForEmbedding(config)
    widen(model)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def widen(model: torch.nn.Module) -> None:
    """Matrices that keep their input's size: at the usual width of 0.02 inputs hardly matter, and all outputs agree."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim >= 2:
                parameter.normal_(0, 0.1 if "embed" in name else 1.5 * parameter[0].numel() ** -0.5)
            elif "bias" in name:
                parameter.normal_(0, 0.1)


def save_tpips(folder: Path, backbone: Path, kind: str = "embedding", *, partial: bool = False, **config: Any) -> Path:
    """A TPIPS checkpoint folder around a backbone, LoRA weights at random; `partial` saves the trained tensors only."""
    import tpips.activation_dist
    import tpips.early_fusion
    import tpips.embedding

    makers = {
        "embedding": tpips.embedding.load_embedding_model,
        "early_fusion": tpips.early_fusion.load_early_fusion_model,
        "activation_dist": tpips.activation_dist.load_activation_dist_model,
    }
    model_config = {
        "type": kind,
        "backbone_family": "qwen3_vl_embed",
        "name": str(backbone),
        "use_lora": True,
        "lora_r": 4,
        "lora_alpha": 8,
        **config,
    }
    torch.manual_seed(1)
    model = makers[kind](model_config, "cpu")
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0, 0.2)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model": model_config}))
    state = {name: value for name, value in model.state_dict().items() if not partial or name in trained}
    torch.save(state, folder / "model.pt")
    return folder


def clip_config(embed: int = 32, width: int = 64, layers: int = 2, side: int = 32, patch: int = 8) -> dict[str, Any]:
    """An open_clip architecture."""
    return {
        "embed_dim": embed,
        "vision_cfg": {"image_size": side, "layers": layers, "width": width, "patch_size": patch},
        "text_cfg": {"context_length": 24, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2},
    }


def csd_state(width: int = 128, layers: int = 2, style: int = 24, side: int = 32, patch: int = 8) -> dict[str, Any]:
    """A CSD state dict: OpenAI's names for the tower, random numbers of a size that keeps signals alive."""
    generator = torch.Generator().manual_seed(7)

    def normal(*shape: int, scale: float = 1.0) -> torch.Tensor:
        return scale * torch.randn(*shape, generator=generator)

    state = {
        "class_embedding": normal(width),
        "positional_embedding": normal((side // patch) ** 2 + 1, width),
        "conv1.weight": normal(width, 3, patch, patch, scale=(3 * patch * patch) ** -0.5),
    }
    for norm in ("ln_pre", "ln_post"):
        state |= {f"{norm}.weight": 1 + normal(width, scale=0.1), f"{norm}.bias": normal(width, scale=0.1)}
    for layer in range(layers):
        block = f"transformer.resblocks.{layer}."
        for norm in ("ln_1", "ln_2"):
            state |= {block + f"{norm}.weight": 1 + normal(width, scale=0.1), block + f"{norm}.bias": normal(width)}
        for name, rows, columns in (
            ("attn.in_proj_", 3 * width, width),
            ("attn.out_proj.", width, width),
            ("mlp.c_fc.", 4 * width, width),
            ("mlp.c_proj.", width, 4 * width),
        ):
            state[f"{block}{name}weight"] = normal(rows, columns, scale=columns**-0.5)
            state[f"{block}{name}bias"] = normal(rows, scale=0.1)
    tower = {f"backbone.{name}": value for name, value in state.items()}
    heads = {f"last_layer_{head}": normal(width, style, scale=width**-0.5) for head in ("style", "content")}
    return tower | heads

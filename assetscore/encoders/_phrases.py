"""Texts about a factor, for encoders that read it off a text tower: what pictures can differ in under that factor."""

from __future__ import annotations

__all__ = ["TEMPLATES", "VOCABULARY", "VOCABULARY_VERSION", "phrases_of"]

VOCABULARY_VERSION = 1
"""Part of a fingerprint: raise it with any change of the texts below."""

TEMPLATES = ("{}", "a picture of {}", "a game texture of {}")

STYLES = (
    "pixel art", "8-bit pixel art", "16-bit pixel art", "hand-painted art", "watercolour painting", "oil painting",
    "ink drawing", "pencil sketch", "cartoon", "anime", "comic book art", "flat vector art", "low-poly 3D rendering",
    "photorealistic rendering", "photograph", "voxel art", "cel shading", "dithered art", "line art", "silhouette",
    "gothic fantasy art", "minimalist icon", "retro arcade graphics", "smooth gradients", "bold black outlines",
    "soft pastel colours", "dark gritty art", "glossy plastic rendering",
)  # fmt: skip
OBJECTS = (
    "a sword", "a pickaxe", "an axe", "a bow", "a shield", "a helmet", "a chestplate", "boots", "a staff", "a potion",
    "a gem", "an ingot", "a coin", "a key", "a ring", "a book", "a scroll", "food", "fruit", "meat", "a seed",
    "a flower", "a tree", "a leaf", "grass", "a mushroom", "stone", "ore", "wood planks", "bricks", "dirt", "sand",
    "ice", "water", "lava", "glass", "wool", "a door", "a chest", "a torch", "a lamp", "furniture", "a machine",
    "a wheel", "a bird", "a fish", "an insect", "a monster", "a skeleton", "a slime", "an animal", "a person",
    "a projectile", "an explosion", "a cloud", "an egg", "a bone", "a bucket", "a flag", "a musical instrument",
)  # fmt: skip
COLOURS = (
    "red", "orange", "yellow", "green", "teal", "blue", "purple", "pink", "brown", "black", "white", "grey", "gold",
    "pastel colours", "dark colours", "bright saturated colours", "muted colours", "a limited palette",
    "a rainbow of colours", "warm colours", "cold colours", "neon colours",
)  # fmt: skip
MATERIALS = (
    "wood", "stone", "iron", "gold", "copper", "crystal", "glass", "cloth", "leather", "bone", "flesh", "fur",
    "feathers", "scales", "leaves", "slime", "ice", "fire", "water", "clay", "paper", "plastic", "rubber", "circuitry",
)  # fmt: skip
SHADING = (
    "flat shading", "soft shading", "hard shading", "light from above", "light from the left", "strong highlights",
    "no highlights", "deep shadows", "pillow shading", "ambient glow", "high contrast", "low contrast",
)  # fmt: skip

VOCABULARY = {
    "art style": STYLES,
    "style": STYLES,
    "object class": OBJECTS,
    "object": OBJECTS,
    "colour": COLOURS,
    "color": COLOURS,
    "colour palette": COLOURS,
    "color palette": COLOURS,
    "material": MATERIALS,
    "shading": SHADING,
    "lighting": SHADING,
}
"""Factors with a vocabulary of their own, to what pictures can be under them."""


def phrases_of(factor: str) -> tuple[str, ...]:
    """The phrases whose embeddings span a factor.

    A factor with a vocabulary ("art style") is spanned by what it can be ("pixel art", "ink drawing" ...), in several
    wordings. Any other text is taken for the identity that was asked for ("ruby sword"): it, in the same wordings,
    among all other things a texture can show. Paraphrases alone would not do: centred, they only span how one talks.

    >>> phrases_of("art style")[:3]
    ('pixel art', 'a picture of pixel art', 'a game texture of pixel art')
    >>> phrases_of("ruby sword")[:3]
    ('ruby sword', 'a picture of ruby sword', 'a game texture of ruby sword')
    """
    subjects = VOCABULARY.get(factor.lower()) or (factor, *OBJECTS)
    return tuple(template.format(subject) for subject in subjects for template in TEMPLATES)

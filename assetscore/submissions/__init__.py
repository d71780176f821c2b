"""What mods and packs register: readers that turn source trees and built files into the textures the game would show.

`submissions.minecraft.read(path)` and `submissions.terraria.read(path)` return a `Submission`.
"""

from .base import Asset, Submission, words

__all__ = ["Asset", "Submission", "words"]

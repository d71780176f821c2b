"""`lite`: the encoder that ships with the package. `encoder` runs it; `data`, `train`, `export`, `evaluate` made it."""

from .encoder import Lite

__all__ = ["Lite"]

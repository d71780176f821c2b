"""assetscore: does a new game texture belong to a game's art?

>>> import assetscore
>>> profile = assetscore.Profile.load("dungeon-crawl")
>>> sorted(profile.categories)
['block', 'entity', 'feature', 'item']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from .config import Config
    from .encoders import Encoder, get_encoder
    from .errors import AssetscoreError
    from .images import Texture
    from .profile import Profile
    from .references import ReferenceSet
    from .results import FactorScore, Neighbour, Score
    from .scorer import Scorer, score
    from .table import ResultTable

_HOMES = {
    "AssetscoreError": "errors",
    "Config": "config",
    "Encoder": "encoders",
    "FactorScore": "results",
    "Neighbour": "results",
    "Profile": "profile",
    "ReferenceSet": "references",
    "ResultTable": "table",
    "Score": "results",
    "Scorer": "scorer",
    "Texture": "images",
    "get_encoder": "encoders",
    "score": "scorer",
}

__all__ = [
    "AssetscoreError",
    "Config",
    "Encoder",
    "FactorScore",
    "Neighbour",
    "Profile",
    "ReferenceSet",
    "ResultTable",
    "Score",
    "Scorer",
    "Texture",
    "__version__",
    "get_encoder",
    "score",
]


def __getattr__(name: str) -> Any:
    # Names are imported when first used, so that `import assetscore` costs no torch, no faiss and no NumPy.
    if name == "__version__":
        value: Any = _version()
    elif name in _HOMES:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("assetscore")
    except PackageNotFoundError:  # a checkout that was never installed
        return "0+unknown"

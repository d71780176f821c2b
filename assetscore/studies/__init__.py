"""Studies: how users convince themselves and their reviewers.

* `sweep`: every alpha and k from what is saved; `saved`: what it needs of a profile, as one small file.
* `agreement`: people's votes against results; `auroc`, `krippendorff`, `majority`, `votes` are its parts.
* `compare`: two builds, two methods, two encoders; `paired` and `keepbest` are its parts.
* `coherence`: a set of textures against itself.
* `rating`: the page on which people vote.
* `tables`, `figures`, `page`: how results are shown.

Each is imported when it is first asked for.

>>> from assetscore import studies
>>> studies.agreement.auroc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
0.75
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__all__ = [
    "agreement",
    "auroc",
    "coherence",
    "compare",
    "figures",
    "keepbest",
    "krippendorff",
    "majority",
    "page",
    "paired",
    "rating",
    "saved",
    "sweep",
    "tables",
    "votes",
]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

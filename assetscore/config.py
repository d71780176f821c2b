"""Every default in one place. A command line flag, a keyword argument and a field here have one name."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from .errors import UsageError

if TYPE_CHECKING:
    from .calibration import Rule

__all__ = ["DEFAULT_ENCODER", "DEFAULT_PROFILE", "Config"]

DEFAULT_ENCODER = "lite"
DEFAULT_PROFILE = "dungeon-crawl"
TOP = 20
"""Similarities kept with every score, so that any k up to this follows without embedding again."""


@dataclass(frozen=True)
class Config:
    """How a profile is built and scores are judged. The defaults are the paper's.

    Attributes:
        k: nearest references whose mean similarity is the score.
        alpha: the share of good assets that may be rejected; the references' own pass rate is 1 - alpha.
        rule: "conformal" keeps that promise at every n; "linear" is numpy.quantile, for published tables.
        families: leave a reference's whole family (its variants) out together with it.

    >>> Config().k, Config().alpha
    (5, 0.15)
    """

    k: int = 5
    alpha: float = 0.15
    rule: Rule = "conformal"
    families: bool = True

    def __post_init__(self) -> None:
        from .calibration import rank  # here, so that a command line's help needs no NumPy

        if not isinstance(self.k, Integral) or isinstance(self.k, bool):
            raise UsageError(f"k must be a whole number, got {self.k!r}")
        if not isinstance(self.alpha, Real) or isinstance(self.alpha, bool):
            raise UsageError(f"alpha must be a number, got {self.alpha!r}")
        object.__setattr__(self, "k", int(self.k))  # NumPy's numbers, too
        object.__setattr__(self, "alpha", float(str(self.alpha)))
        rank(1, self.alpha)
        if not 1 <= self.k <= TOP:
            raise UsageError(f"k must lie between 1 and {TOP}, got {self.k}")
        if self.rule not in ("conformal", "linear"):
            raise UsageError(f"rule must be conformal or linear, got {self.rule!r}")
        if not isinstance(self.families, bool):
            raise UsageError(f"families must be True or False, got {self.families!r}")

    def with_(self, **changes: Any) -> Config:
        """A copy with the given fields changed; None leaves a field as it is."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Config:
        return cls(**{field.name: values[field.name] for field in fields(cls)})

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change with any field."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:16]

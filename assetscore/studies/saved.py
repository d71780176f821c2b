"""What a sweep needs of a profile, as one small file: the references' similarities to each other, and no picture.

A study over a game whose art may not be passed on can be passed on all the same, and looked at without the encoder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..calibrated import Calibration
from ..config import TOP, Config
from ..errors import ProfileCorruptError, UsageError

if TYPE_CHECKING:
    from ..profile import Profile

__all__ = ["SavedCalibrations"]

SCHEMA = 1
SUFFIX = ".safetensors"


@dataclass(frozen=True)
class SavedCalibrations:
    """The calibrations of a profile; stands in for it in `sweep`.

    Attributes:
        name, encoder_fingerprint, config, style_factor, semantic_factor: the profile's.
        calibrations: by (category, factor).
    """

    name: str
    encoder_fingerprint: str
    config: Config
    style_factor: str
    semantic_factor: str | None
    calibrations: dict[tuple[str, str], Calibration] = field(repr=False)

    @property
    def categories(self) -> dict[str, int]:
        """How many references each category holds."""
        style = [c for (_, factor), c in self.calibrations.items() if factor == self.style_factor]
        return {calibration.category: len(calibration.groups) for calibration in style}

    @property
    def references(self) -> range:
        """As long as the reference set; the references themselves are not here."""
        return range(sum(self.categories.values()))

    def calibration(self, category: str, factor: str) -> Calibration:
        """A category's calibration under a factor; UsageError where it was not saved."""
        found = self.calibrations.get((category, factor))
        if found is None:
            kept = ", ".join(f"{c} under {f!r}" for c, f in self.calibrations)
            raise UsageError(f"no calibration of {category!r} under {factor!r} was saved; there are: {kept}")
        return found

    @classmethod
    def of(cls, profile: Profile, factors: Iterable[tuple[str, str]] = ()) -> SavedCalibrations:
        """The calibrations of a profile's own factors, and of further (category, factor) pairs: requests, say."""
        own = [profile.style_factor] + ([profile.semantic_factor] if profile.semantic_factor else [])
        pairs = dict.fromkeys([*((category, f) for category in profile.categories for f in own), *factors])
        return cls(
            profile.name,
            profile.encoder_fingerprint,
            profile.config,
            profile.style_factor,
            profile.semantic_factor,
            {pair: profile.calibration(*pair) for pair in pairs},
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one .safetensors file, similarities as 32-bit floats."""
        from safetensors.numpy import save

        tensors, entries = {}, []
        for number, ((category, factor), calibration) in enumerate(self.calibrations.items()):
            entries.append({"category": category, "factor": factor})
            tensors[f"{number}.top"] = np.ascontiguousarray(calibration.top, np.float32)
            tensors[f"{number}.groups"] = np.ascontiguousarray(calibration.groups, np.int64)
        described = {
            "schema": SCHEMA,
            "name": self.name,
            "encoder": self.encoder_fingerprint,
            "config": self.config.to_dict(),
            "style_factor": self.style_factor,
            "semantic_factor": self.semantic_factor,
            "calibrations": entries,
        }
        Path(path).write_bytes(save(tensors, metadata={"assetscore": json.dumps(described, sort_keys=True)}))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SavedCalibrations:
        """Read what `save` wrote.

        Raises:
            ProfileCorruptError: the file is no such file, is damaged, or is of another schema.
        """
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(str(Path(path)), framework="numpy") as file:
                described = json.loads((file.metadata() or {}).get("assetscore", "null"))
                if not isinstance(described, dict) or described.get("schema") != SCHEMA:
                    raise ProfileCorruptError(f"{path}: no saved calibrations of schema {SCHEMA}")
                calibrations = {}
                for number, entry in enumerate(described["calibrations"]):
                    key = (str(entry["category"]), str(entry["factor"]))
                    top = file.get_tensor(f"{number}.top").astype(np.float64)
                    calibrations[key] = _checked(Calibration(*key, top, file.get_tensor(f"{number}.groups")), path)
            return cls(
                str(described["name"]),
                str(described["encoder"]),
                Config.from_dict(described["config"]),
                str(described["style_factor"]),
                described["semantic_factor"],
                calibrations,
            )
        except (OSError, SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ProfileCorruptError(f"{path}: saved calibrations cannot be read: {error}") from error


def _checked(calibration: Calibration, path: object) -> Calibration:
    top, groups = calibration.top, calibration.groups
    if top.ndim != 2 or top.shape[1] > TOP or groups.shape != (len(top),) or not np.isfinite(top).all():
        raise ProfileCorruptError(f"{path}: the calibration of {calibration.category!r} has impossible numbers")
    return calibration

"""Scorer: assets against a profile, one verdict each, whatever is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePath

from .calibration import Rule
from .config import DEFAULT_PROFILE, Config
from .embedding import CHUNK
from .encoders.base import Encoder
from .errors import FactorError, ImageError, MissingImageError, UsageError
from .folders import find_profile
from .images import Asset, Texture, check_asset, load
from .judging import Pending, judge_together
from .profile import Profile
from .results import FactorScore, Score, Status, judge
from .text import printable

__all__ = ["Item", "Scorer", "score"]

CHUNK_PIXELS = 2**24
"""A chunk is closed once its pictures hold this many pixels: with the number of frames, what bounds the memory."""


@dataclass(frozen=True)
class Item:
    """One asset to score, with what its result row should say about it.

    Attributes:
        asset: anything `images.load` takes, a Texture, or an ImageError already met.
        category: what it is compared under.
        request: what was asked for, as the semantic factor; None or "" for "object class".
        asset_id: default the file's name.
        path, group, game, task, use: copied to the result.
        status, reason: set where a reader already knows: "not_custom" for one that names a vanilla texture, say.
    """

    asset: Asset | Texture | ImageError
    category: str
    request: str | None = None
    asset_id: str = ""
    path: str = ""
    group: str = ""
    game: str = ""
    status: Status | None = None
    reason: str = ""
    task: str = ""
    use: str = ""


class Scorer:
    """Scores assets against one profile. Safe to share between threads.

    >>> import assetscore
    >>> scorer = assetscore.Scorer.load("dungeon-crawl")
    >>> scorer.score("no such file.png", "item").status
    'missing'
    """

    def __init__(
        self, profile: Profile, *, alpha: float | None = None, k: int | None = None, rule: Rule | None = None
    ) -> None:
        """Judge by `profile`, with its own alpha, k and rule unless others are given."""
        self.profile = profile
        self.config: Config = profile.config.with_(alpha=alpha, k=k, rule=rule)

    def __repr__(self) -> str:
        config = self.config
        return f"<Scorer k={config.k}, alpha={config.alpha}, rule={config.rule!r} of {self.profile!r}>"

    @classmethod
    def load(
        cls,
        profile: str | os.PathLike[str] = DEFAULT_PROFILE,
        encoder: str | Encoder | None = None,
        *,
        alpha: float | None = None,
        k: int | None = None,
        rule: Rule | None = None,
    ) -> Scorer:
        """A Scorer of a saved profile, by name or path."""
        return cls(Profile.load(profile, encoder), alpha=alpha, k=k, rule=rule)

    def score(self, asset: Asset | Texture, category: str, request: str | None = None) -> Score:
        """Score one asset.

        Args:
            asset: a path, bytes, a PIL image or a uint8 array.
            category: one of the profile's.
            request: what the asset should show ("ruby sword"); the semantic factor. Default: "object class".

        Returns:
            A Score; what is wrong with the asset is in its `status` and `reason`.

        Raises:
            UnknownCategoryError: the profile has no such category.
            UnsupportedTypeError: `asset` is no image.
            FactorError: `request` is no usable text.
        """
        return self.score_many([(asset, category, request)])[0]

    def score_many(
        self,
        assets: Iterable[tuple[Asset | Texture, str] | tuple[Asset | Texture, str, str | None] | Item],
        progress: bool = False,
    ) -> list[Score]:
        """Score many assets: (asset, category), (asset, category, request) or Items; one Score each, in their order.

        Args:
            assets: checked for wrong use before any is scored.
            progress: show a bar on stderr.

        Raises:
            As `score`.
        """
        items = [asset if isinstance(asset, Item) else Item(*asset) for asset in assets]
        for item in items:
            self.profile.check_category(item.category)
            if not isinstance(item.asset, (Texture, ImageError)):
                check_asset(item.asset)
            if item.request and self.profile.conditional:
                self.profile.encoder.check_factor(item.request)
        scored = self.stream(items)
        if progress:
            from rich.console import Console
            from rich.progress import track

            scored = track(scored, "Scoring", total=len(items), console=Console(stderr=True))  # type: ignore[assignment]
        return list(scored)

    def stream(self, items: Iterable[Item]) -> Iterator[Score]:
        """Score Items one chunk at a time, in their order; an unknown category gives the status no_references."""
        chunk: list[Pending] = []
        frames = pixels = 0
        for item in items:
            chunk.append(self._begin(item))
            frames += max(1, len(chunk[-1].frames))
            pixels += sum(frame.pixels.size // 4 for frame in chunk[-1].frames)
            if frames >= CHUNK or pixels >= CHUNK_PIXELS:
                yield from self._finish(chunk)
                chunk, frames, pixels = [], 0, 0
        yield from self._finish(chunk)

    def _finish(self, chunk: Sequence[Pending]) -> Iterator[Score]:
        waiting = [pending for pending in chunk if pending.frames]
        if waiting:
            judge_together(self.profile, self.config, waiting)
        yield from (pending.score for pending in chunk)

    def _begin(self, item: Item) -> Pending:
        """Read the asset and settle everything that needs no embedding."""
        profile = self.profile
        known = item.category in profile.categories
        semantic, refused = profile.semantic_factor, ""
        if semantic is not None and item.request:
            try:
                semantic = profile.encoder.check_factor(item.request)
            except FactorError as error:
                refused = f"the request cannot be used: {error}"
        pending = Pending(item.category, self._blank(item, semantic), request=semantic)
        if refused:
            return self._settle(pending, "failed", refused)
        if item.status not in (None, "scored"):
            return self._settle(pending, item.status, item.reason)
        texture = item.asset
        try:
            if isinstance(texture, ImageError):
                raise texture
            texture = load(texture, name=item.path or None)
        except MissingImageError as error:
            return self._settle(pending, "missing", str(error))
        except ImageError as error:
            return self._settle(pending, "unreadable", str(error))
        frames = tuple(frame for frame in texture.frames if not frame.is_empty)
        pending.score = replace(pending.score, grid=texture.grid, frames=max(1, len(frames)), flags=texture.flags)
        if not frames:
            return self._settle(pending, "empty", "nothing visible: a placeholder")
        copied = [profile.known.get(f.content_hash) or profile.known.get(f.native_hash) for f in frames]
        if all(copied):
            return self._settle(pending, "not_custom", f"pixel for pixel the reference {copied[0]}")
        if not known:
            names = ", ".join(profile.categories)
            return self._settle(pending, "no_references", f"no references of category {item.category!r}, only {names}")
        pending.frames = frames
        return pending

    def _blank(self, item: Item, semantic: str | None) -> Score:
        style = self._factor_score(item.category, self.profile.style_factor)
        return Score(
            asset_id=printable(item.asset_id or _default_id(item)),
            category=printable(item.category),
            status="scored",
            reason="",
            style=style,
            semantic=None if semantic is None else replace(style, factor=semantic),
            path=printable(item.path or (os.fspath(item.asset) if isinstance(item.asset, (str, os.PathLike)) else "")),
            group=printable(item.group),
            game=item.game,
            task=item.task,
            use=item.use,
            encoder=self.profile.encoder_fingerprint,
            profile=self.profile.name,
            profile_fingerprint=self.profile.fingerprint,
        )

    def _factor_score(self, category: str, factor: str) -> FactorScore:
        """A FactorScore without a similarity: what is known about the check before an asset is embedded."""
        config = self.config
        if category not in self.profile.categories:
            return FactorScore(factor, None, None, None, None, config.k, config.alpha, 0, config.rule)
        calibration = self.profile.calibration(category, self.profile.style_factor)
        k = calibration.k_eff(config.k)
        return FactorScore(factor, None, None, None, None, k, config.alpha, calibration.n, config.rule)

    def _settle(self, pending: Pending, status: Status, reason: str) -> Pending:
        score, verdict = pending.score, judge(status, None, None)
        pending.score = replace(
            score,
            status=status,
            reason=printable(reason),
            style=replace(score.style, passed=verdict),
            semantic=None if score.semantic is None else replace(score.semantic, passed=verdict),
        )
        pending.frames = ()
        return pending


def score(
    asset: Asset,
    category: str,
    request: str | None = None,
    profile: Profile | str | os.PathLike[str] = DEFAULT_PROFILE,
    *,
    alpha: float | None = None,
    k: int | None = None,
    rule: Rule | None = None,
) -> Score:
    """Does this asset belong to the game's art?

    Args:
        asset: a path, the bytes of an image file, a PIL image, or a uint8 array (h, w), (h, w, 3) or (h, w, 4).
        category: what it is compared under: "item", "block", "entity" or "feature" with the shipped profile.
        request: what it should show ("ruby sword"), where it was asked for.
        profile: a Profile, a name or a path; a named one stays loaded.
        alpha, k, rule: other than the profile's.

    Returns:
        A Score: `.passed`, `.style.similarity`, `.style.threshold`, `.style.neighbours` ...

    Raises:
        UnknownCategoryError, UnsupportedTypeError, FactorError, ProfileError: wrong use. A bad asset never raises.

    >>> import numpy as np, assetscore
    >>> result = assetscore.score(np.random.default_rng(0).integers(0, 255, (32, 32, 3), np.uint8), "item")
    >>> result.status, result.style.passed
    ('scored', False)
    """
    if not isinstance(profile, (Profile, str, os.PathLike)):
        raise UsageError(f"profile must be a Profile, a name or a path, got {type(profile).__name__}")
    loaded = profile
    if not isinstance(loaded, Profile):
        folder = find_profile(loaded)
        loaded = _loaded(folder, (folder / "profile.json").stat().st_mtime_ns)
    return Scorer(loaded, alpha=alpha, k=k, rule=rule).score(asset, category, request)


@lru_cache(maxsize=4)
def _loaded(folder: Path, written: int) -> Profile:
    """The profile in a folder, as it was written then: one that is saved again is read again."""
    return Profile.load(folder)


def _default_id(item: Item) -> str:
    if item.path:
        return item.path
    return PurePath(item.asset).name if isinstance(item.asset, (str, os.PathLike)) else ""

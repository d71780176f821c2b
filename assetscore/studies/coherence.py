"""Is a set of textures of one piece? For a game without vanilla art: each asset against all the others of its set.

This is the score without a game to compare with: S of an asset is its mean similarity to the k nearest others. There
is no threshold, since nothing outside the set says what is good enough; the odd ones out come first.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibration import leave_one_out_k
from ..config import DEFAULT_ENCODER, Config
from ..embedding import embed_references
from ..encoders.base import Encoder, get_encoder
from ..errors import ImageError, UsageError
from ..factors import STYLE
from ..images import Asset, Texture, load
from ..neighbours import exclude_groups, knn_mean, lpips_rows

__all__ = ["Coherence", "Member", "coherence", "coherence_of_vectors"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Member:
    """One asset within its set.

    Attributes:
        asset_id: its id.
        similarity: S, its mean similarity to the k nearest other assets.
        z: how far S lies from the set's median, in robust standard deviations (1.4826 times the median absolute
            deviation); below about -3 is odd. NaN where the set has no spread.
        nearest: the ids of its nearest others, nearest first.
    """

    asset_id: str
    similarity: float
    z: float
    nearest: tuple[str, ...]


@dataclass(frozen=True)
class Coherence:
    """A set against itself.

    Attributes:
        members: the odd ones out first: by S, ascending.
        mean, median: of S over the set: how much of one piece it is, under this encoder only.
        k: neighbours used: min(k, the fewest assets outside any one group).
        groups: how many different drawings; exact duplicates and an asset's own frames count once.
        encoder: fingerprint of the encoder; "" for given vectors.
        factor: the text it was given.
        skipped: assets that are not in the set, with the reason in words.
    """

    members: tuple[Member, ...]
    mean: float
    median: float
    k: int
    groups: int
    encoder: str = ""
    factor: str = ""
    skipped: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON can hold."""
        members = [
            asdict(m) | {"z": None if math.isnan(m.z) else m.z, "nearest": list(m.nearest)} for m in self.members
        ]
        return asdict(self) | {"members": members, "skipped": [list(pair) for pair in self.skipped]}


def coherence_of_vectors(
    vectors: NDArray[np.floating[Any]],
    ids: Sequence[str],
    k: int = Config.k,
    groups: Sequence[object] | None = None,
    *,
    metric: str = "cosine",
) -> Coherence:
    """Score a set of vectors against itself, leaving each one's group out.

    Args:
        vectors: (n, d) finite; unit rows for the cosine metric.
        ids: n asset ids; rows of one id (frames) are averaged.
        k: nearest others to compare with.
        groups: n labels of rows that never serve each other (exact duplicates); default the ids.
        metric: "cosine" or "lpips".

    Raises:
        UsageError: fewer than two groups, or lengths that do not fit.

    Example:
        >>> import numpy as np
        >>> rows = np.array([[1, 0], [0.8, 0.6], [0.6, 0.8], [-1, 0]])
        >>> [m.asset_id for m in coherence_of_vectors(rows, ["a", "b", "c", "odd"], k=1).members]
        ['odd', 'a', 'b', 'c']
    """
    labels = list(ids if groups is None else groups)
    if len(ids) != len(vectors) or len(labels) != len(vectors):
        raise UsageError(f"{len(vectors)} vectors need as many ids and groups, got {len(ids)} and {len(labels)}")
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    if len(numbers) < 2:
        raise UsageError(f"a set must hold two different textures to be compared with itself, got {len(numbers)}")
    codes = np.array([numbers[label] for label in labels])
    queries, rows = (lpips_rows(vectors, query=q) if metric == "lpips" else vectors for q in (True, False))
    used = leave_one_out_k(k, codes)
    found = knn_mean(queries, rows, used, exclude_groups(codes))
    members: dict[str, list[int]] = {}
    for row, asset in enumerate(ids):
        members.setdefault(asset, []).append(row)
    scores = np.array([found.S[own].mean() for own in members.values()])
    median = float(np.median(scores))
    spread = 1.4826 * float(np.median(np.abs(scores - median)))
    listed = [
        Member(
            asset,
            float(score),
            float(score - median) / spread if spread > 0 else math.nan,
            tuple(dict.fromkeys(ids[i] for i in found.ids[own[0]])),
        )
        for (asset, own), score in zip(members.items(), scores, strict=True)
    ]
    listed.sort(key=lambda member: (member.similarity, member.asset_id))
    return Coherence(tuple(listed), float(scores.mean()), median, used, len(numbers))


def coherence(
    assets: Iterable[tuple[str, Asset | Texture]],
    encoder: str | Encoder = DEFAULT_ENCODER,
    factor: str = STYLE,
    k: int = Config.k,
    progress: Callable[[int, int], None] | None = None,
) -> Coherence:
    """Score a set of textures against itself.

    Args:
        assets: (asset id, asset) pairs; what cannot be read, is empty or gives nothing finite is left out and listed.
        encoder: a name for `get_encoder`, or an Encoder.
        factor: what to compare; the style by default.
        k: nearest others to compare with.
        progress: called with (pictures embedded, all of them).

    Raises:
        UsageError: an id comes twice, or fewer than two different textures are left.
    """
    model = get_encoder(encoder)
    ids: list[str] = []
    frames: list[Texture] = []
    groups: list[str] = []
    skipped: dict[str, str] = {}
    seen: set[str] = set()
    for asset_id, asset in assets:
        if asset_id in seen:
            raise UsageError(f"asset id {asset_id!r} comes twice in the set")
        seen.add(asset_id)
        try:
            texture = load(asset)
        except ImageError as error:
            skipped[asset_id] = str(error)
            continue
        if texture.is_empty:
            skipped[asset_id] = "nothing is visible"
            continue
        for frame in texture.frames:
            ids.append(asset_id)
            frames.append(frame)
            groups.append(texture.native_hash)
    if not frames:
        raise UsageError(f"there is no texture to compare: {len(skipped)} were left out")
    vectors = embed_references(model, frames, (factor,), progress)[0][factor]
    bad = {ids[i] for i in np.flatnonzero(~np.isfinite(vectors).all(axis=1))}
    skipped |= dict.fromkeys(sorted(bad), f"{model.name} gave nothing finite")
    use = [i for i, asset_id in enumerate(ids) if asset_id not in bad]
    result = coherence_of_vectors(vectors[use], [ids[i] for i in use], k, [groups[i] for i in use], metric=model.metric)
    if skipped:
        logger.info("%d of %d assets were left out", len(skipped), len(seen))
    return Coherence(
        result.members,
        result.mean,
        result.median,
        result.k,
        result.groups,
        model.fingerprint,
        factor,
        tuple(skipped.items()),
    )

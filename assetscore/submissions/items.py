"""A submission's assets as what the scorer takes: one Item each, decoded one at a time as they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..errors import ImageError, MissingImageError
from ..images import Texture
from ..results import Status
from ..scorer import Item
from .base import SCORED_USES, Origin, Submission, Use
from .copies import CopyIndex

__all__ = ["flagged", "items"]

_STATUS: dict[Origin, Status] = {"vanilla": "not_custom", "missing": "missing"}


def items(
    submission: Submission, *, uses: Iterable[Use] = SCORED_USES, copies: CopyIndex | None = None, group: str = ""
) -> Iterator[Item]:
    """The selected assets of a submission for `Scorer.stream`, in the order of ids.

    Args:
        submission: still open, for as long as items are drawn.
        uses: which assets; UV sheets and unreferenced textures only when asked for.
        copies: flags near copies of its references; they are scored all the same.
        group: of the result rows, for assets that have none of their own (the submission's name, say).

    Vanilla textures come as not_custom and absent ones as missing, with the reason; unreadable ones with their error.
    """
    for asset in submission.select(uses):
        content: Texture | ImageError
        try:
            texture = asset.texture
            content = MissingImageError(asset.reason) if texture is None else flagged(texture, copies)
        except ImageError as error:
            content = error
        yield Item(
            content,
            asset.category,
            request=asset.request,
            asset_id=asset.id,
            path=asset.path,
            group=asset.group or group,
            game=submission.game,
            status=_STATUS.get(asset.origin),
            reason=asset.reason if asset.origin != "own" else "",
            use=asset.use,
        )


def flagged(texture: Texture, copies: CopyIndex | None) -> Texture:
    """The texture with a remark where it is a near copy of a reference."""
    found = None if copies is None else copies.find(texture)
    if found is None or found.kind == "equal":
        return texture  # of equal ones the scorer speaks
    return replace(texture, flags=(*texture.flags, f"near copy: {found}"))

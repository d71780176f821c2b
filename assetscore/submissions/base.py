"""What every reader of submissions returns: `Submission` and its `Asset`s."""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ..errors import ManifestError, UsageError
from ..factors import words_of_id
from ..images import Texture, read_file
from ..text import printable

__all__ = ["Asset", "Origin", "ReferenceRecord", "Requests", "Submission", "Use", "distinct_id"]

Use = Literal["sprite", "flat", "uv", "entity", "unreferenced"]
"""How the game shows a texture. One that is shown in several ways has the first of these."""
Origin = Literal["own", "vanilla", "missing"]
"""Where the pixels are: a file of the submission, the game itself, or nowhere."""
Requests: TypeAlias = "Literal['ids'] | str | os.PathLike[str] | Mapping[str, str] | None"
"""``"ids"``: the words of each id; a mapping of id to request, or the path of a JSON file that holds one."""

USES: tuple[Use, ...] = ("sprite", "flat", "uv", "entity", "unreferenced")
SCORED_USES: tuple[Use, ...] = ("sprite", "flat", "entity")


@dataclass(frozen=True, slots=True)
class Asset:
    """One registered texture.

    Attributes:
        id: unique in the submission: ``"mod:item/ruby"`` in Minecraft, ``"Items/Ruby"`` in Terraria. Where a model,
            blockstate, item or class of that id shows something else than the texture of that id, the id is its, and
            the texture's has ".png" behind it.
        category: of the references to compare with: ``"item"``, ``"block"``, ``"projectile"`` ...
        use: how the game shows it.
        origin: where its pixels are.
        request: what was asked for, in words; None where nothing is known.
        path: of the file, in the submission; "ARCHIVE!FILE" in an archive that `group` does not name; empty where there
            is none.
        reason: why `origin` is not ``"own"``, or what was assumed.
        group: what belongs together (the archive, of a folder of archives).
    """

    id: str
    category: str
    use: Use
    origin: Origin
    request: str | None = None
    path: str = ""
    reason: str = ""
    group: str = ""
    loader: Callable[[], Texture] | None = field(default=None, repr=False, compare=False)
    """Small: there are tens of thousands of them."""

    @property
    def texture(self) -> Texture | None:
        """The picture with its frames, read and decoded at each access; None where `origin` is not ``"own"``.

        Raises:
            ImageError: the file is no readable image.
        """
        return None if self.loader is None else self.loader()

    @property
    def frames(self) -> tuple[Texture, ...]:
        """The distinct frames of `texture`, at least one; empty where there is no texture. Raises as `texture` does."""
        texture = self.texture
        return () if texture is None else texture.frames

    def of_group(self, group: str, owner: str) -> Asset:
        """The asset as one of a group, its id with the owner's name in front where there is one; fit to be shown."""
        return dataclasses.replace(
            self,
            id=printable(f"{owner}!{self.id}" if owner else self.id),
            path=printable(self.path),
            reason=printable(self.reason),
            group=printable(group),
        )


@dataclass(frozen=True)
class Submission:
    """Everything that a mod or pack registers, in the order of ids.

    Attributes:
        game: ``"minecraft"`` or ``"terraria"``.
        path: what was read.
        assets: the registered textures. Archives stay open behind them until `close`.
        notes: what was passed over, in words: damaged models, archives without textures ...
    """

    game: str
    path: str
    assets: tuple[Asset, ...]
    notes: tuple[str, ...] = ()
    closers: tuple[Callable[[], None], ...] = field(default=(), repr=False, compare=False)

    def select(self, uses: Iterable[Use] = SCORED_USES) -> tuple[Asset, ...]:
        """The assets of these uses. The default leaves out UV sheets and what no file names.

        Raises:
            UsageError: a use that does not exist.
        """
        wanted = (uses,) if isinstance(uses, str) else tuple(uses)
        for use in wanted:
            if use not in USES:
                raise UsageError(f"uses: known are {', '.join(USES)}, got {use!r}")
        return tuple(asset for asset in self.assets if asset.use in wanted)

    def counts(self) -> Counter[tuple[str, Use, Origin]]:
        """How many assets there are of each (category, use, origin)."""
        return Counter((asset.category, asset.use, asset.origin) for asset in self.assets)

    def with_requests(self, requests: Requests) -> Submission:
        """The same assets with `request` set: see `Requests`. Ids that a mapping does not name keep None.

        Raises:
            ManifestError: a task file that is no JSON object of texts.
        """
        if requests is None:
            return self
        if isinstance(requests, str) and requests == "ids":
            asked: Mapping[str, str] = {asset.id: words_of_id(asset.id) for asset in self.assets}
        else:
            asked = requests if isinstance(requests, Mapping) else read_task(requests)
        assets = tuple(dataclasses.replace(asset, request=asked.get(asset.id) or None) for asset in self.assets)
        return dataclasses.replace(self, assets=assets)

    def close(self) -> None:
        """Close the archives; textures cannot be read afterwards."""
        for closer in self.closers:
            closer()

    def __enter__(self) -> Submission:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class ReferenceRecord:
    """One vanilla texture for a reference set.

    Attributes:
        id: as an asset's; a frame of a sheet has its number behind a ``#``.
        category: as an asset's.
        texture: one frame.
        group: what may not serve as each other's neighbour: the frames of one sheet share it.
        words: the id in words.
        family: variants of one drawing share it; "" where unknown.
    """

    id: str
    category: str
    texture: Texture
    group: str
    words: str
    family: str = ""


def distinct_id(asset_id: str, taken: Container[str]) -> str:
    """The id of a texture whose own id something else bears: with ".png" behind it, again until nothing bears it.

    >>> distinct_id("mod:item/ruby", {"mod:item/ruby"})
    'mod:item/ruby.png'
    """
    distinct = f"{asset_id}.png"
    while distinct in taken:
        distinct += ".png"
    return distinct


def read_task(path: str | os.PathLike[str]) -> dict[str, str]:
    """A task file: a JSON object of asset id to request.

    Raises:
        ManifestError: it cannot be read, or is not that.
    """
    text = os.fspath(path)
    try:
        content = json.loads(read_file(text).decode("utf-8-sig"))
    except Exception as error:
        raise ManifestError(f"requests: {text} cannot be read as a task file: {error}") from error
    if not isinstance(content, dict):
        raise ManifestError(
            f"requests: {text} must hold an object of asset id to request, got {type(content).__name__}"
        )
    for key, value in content.items():
        if not isinstance(value, str) or not value.strip():
            raise ManifestError(f"requests: {text}: the request of {key!r} must be a text, got {value!r}")
    return content

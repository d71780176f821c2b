"""Bytes to `Texture`: one decoder, one canonical form, one way to bring pixel art to an encoder's size.

Canonical RGBA is (h, w, 4) uint8 with straight alpha, where colour under alpha 0 is zero: what cannot be seen in the
game is nothing here either. Two files that look the same in the game, whatever their storage (palette, grey, 16-bit,
interlaced, hidden colours), are the same Texture with the same hash.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .decode import check_array, check_pil_mode, decode, rgba_of_array, rgba_of_pil, unsupported
from .errors import ImageError, ImageTooLargeError, MissingImageError, UnreadableImageError, UnsupportedTypeError
from .frames import MAX_MCMETA_BYTES, Box, frame_boxes

if TYPE_CHECKING:
    from PIL import Image

__all__ = [
    "Asset",
    "Texture",
    "canvas",
    "check_asset",
    "composite",
    "enlarge",
    "load",
    "native_grid",
    "pad_square",
    "reduce_area",
]

Pixels: TypeAlias = NDArray[np.uint8]
Asset: TypeAlias = "str | os.PathLike[str] | bytes | Image.Image | Pixels"
"""What `score()` takes: a path, a file's bytes, a PIL image, or a uint8 array (h, w), (h, w, 3) or (h, w, 4)."""

MATTE = 128
"""Mid grey, under everything transparent that is given to a model: neither black nor white art disappears on it."""
MIN_SIDE = 8
"""Pixels. No image is brought to a native grid smaller than this: an 8 x 8 icon may well be drawn in few blocks."""
MAX_FILE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, eq=False, repr=False)
class Texture:
    """One picture in canonical form.

    Attributes:
        pixels: (h, w, 4) uint8, canonical, read-only.
        grid: the integer factor by which the art is enlarged (2 for Terraria's 2 x 2 blocks), 1 where it is not.
        boxes: frames as (left, top, width, height) in `pixels`; empty where the picture is one frame.
        flags: remarks on the file, in words ("GIF data in a file named .png").
        is_frame: cut out of a larger picture.

    Raises:
        UnsupportedTypeError: `pixels` is no such array.
    """

    pixels: Pixels = field(repr=False)
    grid: int = 1
    boxes: tuple[Box, ...] = ()
    flags: tuple[str, ...] = ()
    is_frame: bool = False

    def __post_init__(self) -> None:
        _check_rgba(self.pixels)

    def __repr__(self) -> str:
        width, height = self.size
        frames = f", {len(self.boxes)} boxes" if self.boxes else ""
        return f"<Texture {width}x{height}, grid {self.grid}{frames}; {self.content_hash[:12]}>"

    @classmethod
    def from_rgba(cls, pixels: Pixels, boxes: Sequence[Box] = (), flags: Sequence[str] = ()) -> Texture:
        """A Texture of straight-alpha (h, w, 4) uint8 pixels, made canonical; `boxes` cut it into frames."""
        _check_rgba(pixels)
        pixels = np.ascontiguousarray(np.where(pixels[..., 3:] == 0, np.uint8(0), pixels))
        pixels.setflags(write=False)
        sides = {side for box in boxes for side in box[2:]} if boxes else set(pixels.shape[:2])
        edges = {edge for box in boxes for edge in box[:2]}
        return cls(pixels, native_grid(pixels, sorted(sides), sorted(edges)), tuple(boxes), tuple(flags))

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) of the file, in pixels."""
        return self.pixels.shape[1], self.pixels.shape[0]

    @cached_property
    def native(self) -> Pixels:
        """The pixels on the native grid: `pixels` with every grid x grid block reduced to one pixel."""
        return self.pixels[:: self.grid, :: self.grid]

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over the canonical pixels: equal for files that look equal."""
        return pixels_hash(self.pixels)

    @cached_property
    def native_hash(self) -> str:
        """SHA-256 over the native pixels: equal, too, for exact enlargements of one drawing."""
        return pixels_hash(self.native)

    @cached_property
    def frames(self) -> tuple[Texture, ...]:
        """The distinct frames, in order; the Texture itself where it is one frame."""
        if not self.boxes:
            return (self,)
        distinct: dict[str, Texture] = {}
        for left, top, width, height in self.boxes:
            cut = self.pixels[top : top + height, left : left + width]
            frame = Texture(cut, self.grid, (), self.flags, is_frame=cut.shape != self.pixels.shape)
            distinct.setdefault(frame.content_hash, frame)
        return tuple(distinct.values())

    @property
    def is_empty(self) -> bool:
        """Nothing to see: no visible pixel, or a 1 x 1 placeholder, which a frame of a larger picture never is."""
        return (self.pixels.shape[:2] == (1, 1) and not self.is_frame) or not self.pixels[..., 3].any()


def pixels_hash(pixels: Pixels) -> str:
    """SHA-256 of an (h, w, 4) array's shape and bytes, as 64 hexadecimal digits."""
    height, width = pixels.shape[:2]
    digest = hashlib.sha256(f"rgba8 {width}x{height}\n".encode())
    digest.update(np.ascontiguousarray(pixels).data)
    return digest.hexdigest()


def load(asset: Asset | Texture, *, name: str | None = None, mcmeta: bytes | None = None) -> Texture:
    """Read an asset into a Texture.

    Args:
        asset: a path, the bytes of a PNG, GIF, JPEG or WebP file, a PIL image, or a uint8 array (h, w), (h, w, 3)
            or (h, w, 4). Animated GIF and WebP files give their first picture.
        name: the file's name, for remarks and messages, where `asset` is bytes.
        mcmeta: the content of the ".mcmeta" beside the image, which alone cuts Minecraft's strips into frames. For a
            path it is read from "<path>.mcmeta" where that exists; one that cannot be used is a remark.

    Raises:
        MissingImageError: there is no such file.
        UnreadableImageError: the content is no readable image (empty, truncated, a text file ...).
        ImageTooLargeError: more than 2**24 pixels or 64 MiB; found before anything is decoded.
        UnsupportedTypeError: `asset` is none of the above.

    >>> import numpy as np
    >>> texture = load(np.full((16, 16, 3), 200, np.uint8))
    >>> texture.size, texture.pixels.shape, texture.grid
    ((16, 16), (16, 16, 4), 1)
    """
    from PIL import Image

    if isinstance(asset, Texture):
        return asset
    check_asset(asset)
    flags: list[str] = []
    if isinstance(asset, (str, os.PathLike)):
        path = os.fspath(asset)
        asset = read_file(path)
        name = path if name is None else name
        if mcmeta is None:
            mcmeta, flags = _read_mcmeta(path + ".mcmeta")
    if isinstance(asset, Image.Image):
        pixels = rgba_of_pil(asset, name or "the given image")
    elif isinstance(asset, np.ndarray):
        pixels = rgba_of_array(asset)
    else:
        pixels, found = decode(bytes(asset), name or "the given bytes")
        flags = [*found, *flags]
    boxes: tuple[Box, ...] = ()
    if mcmeta is not None:
        boxes, remarks = frame_boxes(mcmeta, pixels.shape[1], pixels.shape[0])
        shown = any(pixels[y : y + h, x : x + w, 3].any() for x, y, w, h in boxes)
        if boxes and not shown and pixels[..., 3].any():  # nobody's choice of frames makes a picture "empty"
            boxes, remarks = (), [*remarks, ".mcmeta ignored: the frames that it uses show nothing"]
        flags = [*flags, *remarks]
    return Texture.from_rgba(pixels, boxes, flags)


def check_asset(asset: Any) -> None:
    """Raise an UnsupportedTypeError where `load` would, whatever files and bytes hold: nothing is read or decoded."""
    from PIL import Image

    if isinstance(asset, np.ndarray):
        check_array(asset)
    elif isinstance(asset, Image.Image):
        check_pil_mode(asset)
    elif isinstance(asset, os.PathLike):
        try:
            path = os.fspath(asset)
        except TypeError as error:
            raise unsupported(f"{type(asset).__name__}: {error}") from error
        if not isinstance(path, str):
            raise unsupported(f"a path that is no text: {path!r}")
    elif isinstance(asset, memoryview):
        try:
            asset.nbytes  # noqa: B018
        except ValueError as error:
            raise unsupported(f"a memoryview: {error}") from error
    elif not isinstance(asset, (str, bytes, bytearray, Texture)):
        raise unsupported(type(asset).__name__)


def _check_rgba(pixels: Any) -> None:
    if not isinstance(pixels, np.ndarray):
        raise UnsupportedTypeError(f"a Texture needs a uint8 array (h, w, 4), got {type(pixels).__name__}")
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 4 or 0 in pixels.shape:
        raise UnsupportedTypeError(f"a Texture needs a uint8 array (h, w, 4), got {pixels.dtype} {pixels.shape}")


def _read_mcmeta(path: str) -> tuple[bytes | None, list[str]]:
    """What the file holds, None where there is none, and why it cannot be used."""
    if not os.path.lexists(path):
        return None, []
    try:
        return read_file(path, MAX_MCMETA_BYTES), []
    except ImageError as error:
        return None, [f".mcmeta ignored: {str(error).removeprefix(f'{path}: ')}"]


def read_file(path: str, most: int = MAX_FILE_BYTES) -> bytes:
    """The bytes of a regular file of at most `most` bytes (64 MiB), or an ImageError that says why not."""
    import stat

    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise UnreadableImageError(f"{path}: is a folder")
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableImageError(f"{path}: is not a regular file")
        if status.st_size > most:
            raise ImageTooLargeError(f"{path}: {status.st_size} bytes, at most {most} are read")
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            return _content(descriptor, status.st_size, most)
        finally:
            os.close(descriptor)
    except PermissionError as error:
        raise UnreadableImageError(f"{path}: {error.strerror or error}") from error
    except (OSError, ValueError) as error:  # not found, a loop of links, a name too long or with a NUL
        reason = getattr(error, "strerror", None) or str(error)
        raise MissingImageError(f"{path}: {reason}") from error


def _content(descriptor: int, size: int, most: int) -> bytes:
    """What a file of `size` bytes holds, in one call where that is true; `open` and its buffers cost a third more."""
    content = os.read(descriptor, min(size, most))
    if len(content) == size:
        return content
    parts = [content]
    while parts[-1] and (left := most - sum(map(len, parts))) > 0:
        parts.append(os.read(descriptor, min(left, 2**20)))
    return b"".join(parts)


def native_grid(pixels: Pixels, sides: Sequence[int] = (), edges: Sequence[int] = ()) -> int:
    """The largest factor f such that every f x f block has one colour and f divides every side and edge.

    Args:
        pixels: (h, w, 4) uint8.
        sides: the sides of what will be cut out; none of them comes below 8 px.
        edges: positions that must stay on the grid.

    Returns:
        1 for an image of one colour, and where nothing is enlarged.

    >>> import numpy as np
    >>> noise = np.random.default_rng(0).integers(0, 255, (16, 16, 4), np.uint8)
    >>> native_grid(enlarge(noise, 3)), native_grid(noise)
    (3, 1)
    """
    packed = np.ascontiguousarray(pixels).view(np.uint32)[..., 0]
    sides = sides or packed.shape
    limit = min(sides) // MIN_SIDE
    if limit <= 1:
        return 1
    # A block of f rows has one colour exactly when no row differs from the one above it inside the block, so f divides
    # the position of every change: one greatest common divisor answers for all factors.
    rows = np.flatnonzero((packed[1:] != packed[:-1]).any(axis=1)) + 1
    common = math.gcd(int(np.gcd.reduce(rows)), *packed.shape, *sides, *edges)
    if common == 1:
        return 1
    columns = np.flatnonzero((packed[:, 1:] != packed[:, :-1]).any(axis=0)) + 1
    if rows.size == 0 and columns.size == 0:
        return 1
    common = math.gcd(common, int(np.gcd.reduce(columns)))
    return max((f for f in range(1, min(common, limit) + 1) if common % f == 0), default=1)


def composite(rgba: Pixels, matte: int = MATTE) -> Pixels:
    """Lay (..., 4) straight-alpha pixels over a grey matte: (..., 3) uint8, rounded to nearest."""
    alpha = rgba[..., 3:].astype(np.uint32)
    return ((rgba[..., :3] * alpha + matte * (255 - alpha) + 127) // 255).astype(np.uint8)


def enlarge(pixels: NDArray[np.uint8], factor: int) -> NDArray[np.uint8]:
    """Enlarge by an integer factor, nearest neighbour: every pixel becomes a factor x factor block."""
    return pixels.repeat(factor, axis=0).repeat(factor, axis=1)


def reduce_area(rgba: Pixels, width: int, height: int) -> Pixels:
    """Reduce (h, w, 4) to (height, width, 4) by area; colours are weighted by alpha, so hidden ones do not bleed in."""
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(rgba))
    small = image.convert("RGBa").resize((width, height), Image.Resampling.BOX).convert("RGBA")
    return np.asarray(small)


def pad_square(rgba: Pixels, side: int | None = None) -> Pixels:
    """Centre (h, w, 4) pixels on a transparent square of `side` (default: the longer side). Never crops."""
    height, width = rgba.shape[:2]
    side = max(height, width) if side is None else side
    square = np.zeros((side, side, 4), np.uint8)
    top, left = (side - height) // 2, (side - width) // 2
    square[top : top + height, left : left + width] = rgba
    return square


def canvas(rgba: Pixels, side: int) -> Pixels:
    """Fit (h, w, 4) pixels on a transparent side x side canvas, as pixel art wants it.

    Smaller images are enlarged by the largest integer factor that fits, nearest neighbour; larger ones are reduced by
    area, keeping their proportions; then the picture is centred.
    """
    height, width = rgba.shape[:2]
    longer = max(height, width)
    if longer > side:
        scale = side / longer
        rgba = reduce_area(rgba, max(1, round(width * scale)), max(1, round(height * scale)))
    elif longer * 2 <= side:
        rgba = enlarge(rgba, side // longer)
    return pad_square(rgba, side)

"""Every error the library raises on purpose.

::

    AssetscoreError
    ├── UsageError (ValueError)         the call is wrong: fix the call
    │   ├── UnknownCategoryError        the profile has no such category; the known ones are named
    │   ├── UnsupportedTypeError (also TypeError)   the asset is no path, bytes, PIL image or uint8 array
    │   ├── FactorError                 a factor text that no encoder can take
    │   └── UnknownEncoderError         no encoder of that name; the known ones are named
    ├── ImageError                      the asset is wrong: one row, never the end of a batch
    │   ├── MissingImageError           there is no such file
    │   ├── UnreadableImageError        the bytes are no readable image
    │   └── ImageTooLargeError          decoding would exceed the size limits
    ├── ReferenceSetError               a reference set cannot be read or is empty
    │   └── EmptyCategoryError          a category holds no reference to compare with
    ├── EmbeddingError                  vectors that are not finite, not unit length or of the wrong shape
    ├── EncoderError                    an encoder cannot be loaded or run
    │   ├── EncoderUnavailableError     a package or a checkpoint is missing; the message says what to install or fetch
    │   └── WeightsError                a checkpoint does not fit: wrong keys, shapes, or a damaged file
    ├── ProfileError                    a saved profile cannot be used
    │   ├── ProfileNotFoundError        nothing of that name or at that path
    │   ├── ProfileCorruptError         a hash, a file or the schema is wrong; the part is named
    │   └── ProfileMismatchError        built with another encoder or other references; both are named
    ├── MissingExtraError (ImportError) an optional package is not installed; the message gives the install line
    ├── ManifestError                   a manifest or votes file is wrong; the line is named
    └── ArchiveError                    a submission or game file is damaged or hostile

Messages name the argument, what is allowed, what came, and the file.
"""

from __future__ import annotations

__all__ = [
    "ArchiveError",
    "AssetscoreError",
    "EmbeddingError",
    "EmptyCategoryError",
    "EncoderError",
    "EncoderUnavailableError",
    "FactorError",
    "ImageError",
    "ImageTooLargeError",
    "ManifestError",
    "MissingExtraError",
    "MissingImageError",
    "ProfileCorruptError",
    "ProfileError",
    "ProfileMismatchError",
    "ProfileNotFoundError",
    "ReferenceSetError",
    "UnknownCategoryError",
    "UnknownEncoderError",
    "UnreadableImageError",
    "UnsupportedTypeError",
    "UsageError",
    "WeightsError",
]


class AssetscoreError(Exception):
    """The root: catch this to catch all of them."""


class UsageError(AssetscoreError, ValueError):
    """The call is wrong."""


class UnknownCategoryError(UsageError):
    """The profile has no such category."""


class UnsupportedTypeError(UsageError, TypeError):
    """The asset is no path, bytes, PIL image or uint8 array."""


class FactorError(UsageError):
    """A factor text that no encoder can take."""


class UnknownEncoderError(UsageError):
    """No encoder of that name is registered."""


class ImageError(AssetscoreError):
    """The asset itself is wrong."""


class MissingImageError(ImageError):
    """There is no such file."""


class UnreadableImageError(ImageError):
    """The bytes are no readable image."""


class ImageTooLargeError(ImageError):
    """Decoding would exceed the size limits."""


class ReferenceSetError(AssetscoreError):
    """A reference set cannot be read or is empty."""


class EmptyCategoryError(ReferenceSetError):
    """A category holds no reference to compare with."""


class EmbeddingError(AssetscoreError):
    """Vectors that are not finite, not unit length or of the wrong shape."""


class EncoderError(AssetscoreError):
    """An encoder cannot be loaded or run."""


class EncoderUnavailableError(EncoderError):
    """A package or a checkpoint is missing."""


class WeightsError(EncoderError):
    """A checkpoint does not fit."""


class ProfileError(AssetscoreError):
    """A saved profile cannot be used."""


class ProfileNotFoundError(ProfileError):
    """No profile of that name or at that path."""


class ProfileCorruptError(ProfileError):
    """A hash, a file or the schema of a profile is wrong."""


class ProfileMismatchError(ProfileError):
    """A profile built with another encoder or other references."""


class MissingExtraError(AssetscoreError, ImportError):
    """An optional package is not installed."""


class ManifestError(AssetscoreError):
    """A manifest or votes file is wrong."""


class ArchiveError(AssetscoreError):
    """A submission or game file is damaged or hostile."""

"""Arrays of an .npz file: none of them pickled, none larger than its file says."""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from edhnn.data.files import Limits, open_existing, size_in_words
from edhnn.errors import DataError, EdhnnError, LimitError


def load_npz(path: Path, limits: Limits) -> dict[str, Any]:
    """The arrays of an .npz file, none of them pickled, within the limits."""
    try:
        with open_existing(path) as stream, zipfile.ZipFile(stream) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            if size > limits.max_bytes:
                raise LimitError(
                    f"The arrays must be at most {size_in_words(limits.max_bytes)} in all. Got {size_in_words(size)}.",
                    path=path,
                    remedy="If you trust the file, raise the limit with --max-bytes.",
                )
            return {name.removesuffix(".npy"): _load_array(archive, name) for name in archive.namelist()}
    except EdhnnError:
        raise
    except Exception as error:  # zip, zlib, lzma and numpy's header parser have no common class for broken bytes
        raise DataError(
            f"The file must be an .npz archive of plain arrays. Reading it said: {error}.", path=path
        ) from error


def _load_array(archive: zipfile.ZipFile, name: str) -> Any:
    """One array; the size its header claims must be the size its entry holds, before anything is allocated."""
    with archive.open(name) as stream:
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a header written by Python 2, or by no numpy at all
            shape, _, dtype = read_header(stream)
        claimed = int(np.prod([int(part) for part in shape], dtype=object)) * dtype.itemsize
        if dtype.kind not in "biufSU" or not dtype.itemsize or not 0 <= claimed <= archive.getinfo(name).file_size:
            raise ValueError(f"array '{name}' claims {claimed} bytes of {dtype}")
    with archive.open(name) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def as_numbers(array: Any, kind: torch.dtype) -> Any:
    """The array as floating point of 32 or 64 bits that fits ``kind``: not made from text, nor infinite if it was not.

    Numpy lacks bfloat16, so the narrower types are the caller's to make.
    """
    if array.dtype.kind not in "biuf":
        raise ValueError(f"numbers are needed, not {array.dtype}")
    with np.errstate(over="raise"):
        numbers = array.astype(np.float64 if kind == torch.float64 else np.float32, copy=False)
    if kind in (torch.float16, torch.bfloat16):
        whole = torch.from_numpy(np.ascontiguousarray(numbers))
        if bool((whole.to(kind).isinf() & ~whole.isinf()).any()):
            raise OverflowError(f"a number is beyond {str(kind).removeprefix('torch.')}")
    return numbers


def whole_numbers(array: Any) -> Any:
    """The array as 64-bit integers, if it is a vector of whole numbers."""
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ValueError(f"a vector of whole numbers is needed, not {array.dtype} of shape {array.shape}")
    return array.astype(np.int64, copy=False)

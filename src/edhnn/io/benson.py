"""Benson's simplices: `NAME-nverts.txt`, a size per hyperedge, and `NAME-simplices.txt`, the members of all of them.

`NAME-times.txt` has a whole number per hyperedge, which becomes the attribute `time`. `NAME-node-labels.txt` has lines
``number name``; the names become the node attribute `name`, which ``label="name"`` reads as classes. Both are optional.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import torch

from edhnn.data.columns import label_fields, sort_columns
from edhnn.data.dataset import NodeDataset, Provenance, merged_note
from edhnn.data.ids import Ids
from edhnn.data.limits import Limits
from edhnn.errors import DataError, UsageError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.io.file_format import FileFormat, TableRequest
from edhnn.io.files import need_utf8, open_limited
from edhnn.io.integer_lines import edge_of_each, read_integer_lines
from edhnn.typing import IntArray

_SIZES, _MEMBERS, _TIMES, _NAMES = "nverts", "simplices", "times", "node-labels"
_LINE = re.compile(r"([0-9]{1,18})[ \t]+(.*)")


def read_benson(path: Path, request: TableRequest, limits: Limits) -> NodeDataset:
    """Read a hypergraph in Benson's files.

    Args:
        path: `NAME-nverts.txt` or `NAME-simplices.txt`, plain or gzip, or the folder of one such dataset.
        request: Labels and features among the attributes.
        limits: Size limits, for each file.

    Returns:
        The dataset. Node ids are the numbers of the files; hyperedges are numbered from 1.

    Raises:
        DataError: if the files disagree.
        UsageError: if one of the first two is missing.
    """
    stem, compressed = _stem(path)
    sizes_path, members_path = (_need(stem, compressed, part) for part in (_SIZES, _MEMBERS))
    sizes = _one_per_line(sizes_path, limits)
    members = read_integer_lines(members_path, limits, commas=False)[0]
    if int(sizes.sum()) != len(members):
        raise DataError(
            f"The sizes in '{sizes_path.name}' must add up to the number of members. They add up to "
            f"{int(sizes.sum())}, and there are {len(members)}.",
            path=members_path,
            remedy="Download both files again; they may belong to different datasets.",
        )
    limits.check_hyperedges(len(sizes), sizes_path, len(members))
    times_path, names_path = (_find(stem, compressed, part) for part in (_TIMES, _NAMES))
    attributes = {} if times_path is None else {"time": _times(times_path, len(sizes), limits)}
    names = {} if names_path is None else _names(names_path, limits)
    listed = np.array(sorted(names), dtype=np.int64)
    numbers, node = np.unique(np.concatenate([members, listed]), return_inverse=True)
    limits.check_nodes(len(numbers), members_path)
    hypergraph = Hypergraph(
        torch.from_numpy(node[: len(members)]), torch.from_numpy(edge_of_each(sizes)), len(numbers), len(sizes)
    )
    given = {"name": [names.get(number) for number in numbers.tolist()]} if names else {}
    columns = sort_columns(given, request.columns, len(numbers), lambda row: f"node {numbers[row]}")
    return NodeDataset(
        name=stem.name,
        hypergraph=hypergraph,
        x=columns.x,
        **label_fields(columns.labels),
        feature_names=columns.feature_names,
        node_ids=Ids(numbers),
        edge_ids=Ids(range(1, len(sizes) + 1)),
        node_attributes=columns.attributes,
        edge_attributes=attributes,
        provenance=Provenance(str(path), "benson", (*merged_note(hypergraph), *columns.notes), columns.details),
    )


def _stem(path: Path) -> tuple[Path, bool]:
    """Return the common beginning of the files' names, and whether the one that was named is compressed."""
    if path.is_dir():
        files = sorted(path.glob(f"*-{_SIZES}.txt*"))
        if len(files) != 1:
            names = ", ".join(f"'{file.name}'" for file in files)
            raise UsageError(f"The folder '{path}' must contain one NAME-{_SIZES}.txt. Got {names or 'none'}.")
        path = files[0]
    name = path.name.removesuffix(".gz")
    for part in (_SIZES, _MEMBERS):
        if name.lower().endswith(f"-{part}.txt"):
            return path.with_name(name[: -len(f"-{part}.txt")]), path.name.endswith(".gz")
    raise UsageError(f"The name must end in -{_SIZES}.txt or -{_MEMBERS}.txt. Got '{path.name}'.")


def _find(stem: Path, compressed: bool, part: str) -> Path | None:
    ends = (".txt.gz", ".txt") if compressed else (".txt", ".txt.gz")
    paths = (stem.with_name(f"{stem.name}-{part}{end}") for end in ends)
    return next((path for path in paths if path.is_file()), None)


def _need(stem: Path, compressed: bool, part: str) -> Path:
    path = _find(stem, compressed, part)
    if path is None:
        raise UsageError(f"File not found: '{stem.name}-{part}.txt'. It must be beside the other files of the dataset.")
    return path


def _one_per_line(path: Path, limits: Limits) -> IntArray:
    numbers, sizes = read_integer_lines(path, limits, commas=False)
    wrong = np.flatnonzero(sizes != 1)
    if len(wrong):
        where = f"line {wrong[0] + 1}"
        raise DataError(f"Every line must have one number. Got {sizes[wrong[0]]}.", path=path, where=where)
    return numbers


def _times(path: Path, count: int, limits: Limits) -> list[int]:
    times = _one_per_line(path, limits)
    if len(times) != count:
        raise DataError(f"There must be a time for each of {count} hyperedges. Got {len(times)}.", path=path)
    return [int(time) for time in times]


def _names(path: Path, limits: Limits) -> dict[int, str]:
    names: dict[int, str] = {}
    with open_limited(path, limits) as stream:
        text = need_utf8(stream.read(), "Names of nodes", path)
    for number, line in enumerate(text.splitlines(), start=1):
        match = _LINE.fullmatch(line.strip())
        if match is None and line.strip():
            problem = f"A line must be the number of a node and its name. Got '{line[:60]}'."
            raise DataError(problem, path=path, where=f"line {number}")
        if match is not None:
            if int(match[1]) in names:
                raise DataError(f"Each node must occur once. Got {match[1]} twice.", path=path, where=f"line {number}")
            names[int(match[1])] = match[2]
    return names


FORMAT = FileFormat(
    name="benson",
    patterns=(f"NAME-{_SIZES}.txt", f"NAME-{_MEMBERS}.txt"),
    read=read_benson,
    options="columns",
    sign=(f"*-{_SIZES}.txt*", f"NAME-{_SIZES}.txt (Benson's simplices)"),
)

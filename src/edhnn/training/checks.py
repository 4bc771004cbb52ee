"""What must hold before training begins. Each refusal says what must hold, what was given and what to do."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from edhnn.data.dataset import NodeDataset
from edhnn.data.splits import Split
from edhnn.errors import DataError
from edhnn.training.tasks import check_targets, labels_of


def check_trainable(dataset: NodeDataset) -> None:
    """Refuse a dataset without features, with features that are not finite, without labels or with a single class.

    Raises:
        DataError: and it names the column and the node, or the class.
    """
    check_features(dataset)
    y = labels_of(dataset)
    if dataset.task == "classification":
        used = torch.unique(y[y >= 0]).tolist()
        if len(used) < 2:
            found = f"Only '{class_name(dataset, used[0])}' occurs" if used else "All nodes are unlabelled"
            raise DataError(
                f"Training needs nodes of at least 2 classes. {found} in '{dataset.name}'.",
                remedy="Name another label with --label, or learn real values with --task regression.",
            )
    elif bool(y.isnan().all()):
        raise DataError(f"Training needs labels. All labels of '{dataset.name}' are unknown.")


def check_features(dataset: NodeDataset) -> None:
    """Refuse features that are absent or not finite."""
    x = dataset.x
    if x is None or not dataset.num_features:
        raise DataError(
            f"A model needs node features. '{dataset.name}' has none.",
            remedy="Put numbers into the node table (NAME.nodes.csv) or the node attributes, and name them with "
            "--features.",
        )
    sparse = x.layout == torch.sparse_csr
    bad = ~(x.values() if sparse else x).isfinite()
    if not bool(bad.any()):
        return
    if sparse:
        place = int(bad.nonzero()[0, 0])
        column = int(x.col_indices()[place])
        row = int(torch.searchsorted(x.crow_indices(), place, right=True)) - 1
        value, count = float(x.values()[place]), 1
    else:
        row, column = (int(number) for number in bad.nonzero()[0])
        value, count = float(x[row, column]), int(bad.any(dim=0).sum())
    more = f" ({count} columns have such values)" if count > 1 else ""
    raise DataError(
        f"Features must be finite. Column '{column_name(dataset, column)}' is {value} at node "
        f"'{dataset.node_ids[row]}'{more}.",
        remedy="Fill it in, or name the other columns only with --features ('' for none).",
    )


def check_splits(dataset: NodeDataset, splits: Sequence[Split]) -> None:
    """Refuse splits that are not node numbers, overlap, have an empty part, or leave a class without training nodes."""
    y = labels_of(dataset)
    for number, split in enumerate(splits):
        parts = {"training": split.train, "validation": split.valid, "test": split.test}
        for name, part in parts.items():
            _check_numbers(part, f"The {name} part of split {number}", len(y))
            if not _any_known(y[part]):
                raise DataError(
                    f"Each part of a split needs labelled nodes. The {name} part of split {number} has none among its "
                    f"{len(part)} nodes.",
                    remedy="Label more nodes: 4 is the least, and each class needs several.",
                )
        everything = torch.cat([split.train, split.valid, split.test])
        if len(torch.unique(everything)) != len(everything):
            raise DataError(f"The parts of a split must not share nodes. Those of split {number} do.")
        if dataset.task == "classification":
            _check_classes(dataset, y, number, split)
        else:
            check_targets(dataset, split.train, f"the training nodes of split {number}")


def _check_numbers(part: object, what: str, nodes: int) -> None:
    must = f"A part of a split must be an integer tensor of node numbers in 0..{nodes - 1}."
    if not isinstance(part, Tensor):
        raise DataError(f"{must} {what} is a {type(part).__name__}.", remedy="Use torch.as_tensor(...).")
    if part.dim() != 1 or part.dtype not in (torch.int64, torch.int32):
        raise DataError(
            f"{must} {what} is {part.dtype} with {part.dim()} dimensions.",
            remedy="Turn a mask into numbers with mask.nonzero()[:, 0].",
        )
    outside = part[(part < 0) | (part >= nodes)]
    if len(outside):
        raise DataError(f"{must} {what} holds {int(outside[0])}.")


def _check_classes(dataset: NodeDataset, y: Tensor, number: int, split: Split) -> None:
    in_all = torch.bincount(y[y >= 0], minlength=1)
    seen = y[split.train]
    in_training = torch.bincount(seen[seen >= 0], minlength=len(in_all))
    missing = ((in_all > 0) & (in_training == 0)).nonzero()[:, 0].tolist()
    if missing:
        first = missing[0]
        more = f" (and {len(missing) - 1} more classes)" if len(missing) > 1 else ""
        raise DataError(
            f"Every class must occur among the training nodes of each split. Class '{class_name(dataset, first)}', of "
            f"which there are {int(in_all[first])} nodes, is missing in split {number}{more}.",
            remedy="Label more nodes of it, leave them unlabelled, or train fewer splits with --splits.",
        )


def _any_known(y: Tensor) -> bool:
    return bool((~y.isnan()).any()) if y.is_floating_point() else bool((y >= 0).any())


def class_name(dataset: NodeDataset, number: int) -> str:
    """A class as its owner wrote it."""
    return str(number if dataset.class_names is None else dataset.class_names[number])


def column_name(dataset: NodeDataset, number: int) -> str:
    """A feature column as its owner wrote it."""
    return str(number if dataset.feature_names is None else dataset.feature_names[number])

r"""Beliefs: the inputs of a model beside the features, which are base predictions and training labels.

The labels of training nodes are known when other nodes are predicted, so they may be inputs. Every epoch gives a random
share of them and takes the loss on the others. So no label reaches the loss of its own node:

- `label_table` is made from the given nodes and their labels only. It never sees another label.
- A training node's base prediction comes from a fit without this node (`edhnn.training.base_predictor`).

Labels of validation nodes choose the penalty of the base and the epoch, as without beliefs. Labels of test nodes are
read once, after the training.

Evaluation and prediction give all known labels. The answer for a node whose label is given comes from a pass without
its label (`outputs_told`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from edhnn.data.dataset import UNLABELLED
from edhnn.data.fingerprints import NodeHashes
from edhnn.data.splits import Split
from edhnn.io.tensors import Tensors
from edhnn.seeding import derive_seed
from edhnn.training.base_predictor import FOLDS, BasePredictor, fit_base
from edhnn.training.config import TrainConfig
from edhnn.training.inputs import Beliefs, Inputs, outputs_of
from edhnn.training.objective import Objective

_MOST_GROUPS = 10


def label_table(
    count: int, nodes: Int[Tensor, " n"], labels: Tensor, objective: Objective
) -> Float[Tensor, "N C_plus_1"]:
    r"""Make the input columns of given labels: a column per class, label or target, and a flag.

    The row of a given node is, by task: the one-hot class less $1/C$; the labels less $1/2$; the standardised values.
    Entries that are not known are 0. The flag is 1 for a given node with a known entry. Other rows are 0.

    Args:
        count: Number of nodes.
        nodes: The nodes whose labels are given.
        labels: Their labels, in this order.
        objective: The task.
    """
    columns = objective.num_outputs
    rows = torch.zeros(len(nodes), columns + 1)
    if objective.task == "classification":
        known = labels != UNLABELLED
        rows[known, :columns] = nn.functional.one_hot(labels[known], columns).float() - 1 / columns
    else:
        values = objective.targets(labels.reshape(len(nodes), columns))
        known = ~values.isnan().all(dim=1)
        rows[:, :columns] = (values - (0.5 if objective.task == "multilabel" else 0.0)).nan_to_num(nan=0.0)
    rows[:, columns] = known.float()
    return torch.zeros(count, columns + 1).index_copy(0, nodes, rows)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Knowledge:
    """What a model keeps of the training part of its split.

    Attributes:
        labels: The labels of the training nodes; none if labels are not inputs.
        folds: The fold of each training node in the fits of the base; -1 without a base.
        hashes: The hash of each training node (`edhnn.data.fingerprints.node_hashes`), to recognise it in other data;
            ``None`` until it is known.
        base: The base predictor, if there is one.
    """

    labels: Tensor
    folds: Int[Tensor, " n"]
    hashes: NodeHashes | None = None
    base: BasePredictor | None = None

    def tensors(self) -> Tensors:
        """Return the tensors to store."""
        assert self.hashes is not None
        hashes = torch.from_numpy(self.hashes.view(np.int64))  # torch computes little with unsigned numbers
        own = {"hashes": hashes, "labels": self.labels.contiguous(), "folds": self.folds}
        return own if self.base is None else own | self.base.tensors()

    def recognise(self, hashes: NodeHashes) -> tuple[Int[Tensor, " k"], Int[Tensor, " k"]]:
        """Find the training nodes in a dataset: their numbers there, and their positions in this object."""
        assert self.hashes is not None
        order = np.argsort(self.hashes, kind="stable")
        place = np.searchsorted(self.hashes, hashes, sorter=order).clip(max=len(order) - 1)
        position = order[place]
        nodes = np.flatnonzero(self.hashes[position] == hashes)
        return torch.from_numpy(nodes), torch.from_numpy(position[nodes])


def knowledge_shapes(
    config: TrainConfig, objective: Objective, features: int
) -> dict[str, tuple[torch.dtype, tuple[int | None, ...]]]:
    """Return the type and the shape of every stored tensor; ``None`` for the number of training nodes."""
    if config.base == "none" and not config.label_inputs:
        return {}
    columns, count = objective.num_outputs, None if config.label_inputs else 0
    classes = objective.task == "classification"
    shapes: dict[str, tuple[torch.dtype, tuple[int | None, ...]]] = {
        "hashes": (torch.int64, (None,)),
        "folds": (torch.int64, (None,)),
        "labels": (torch.int64, (count,)) if classes else (torch.float64, (count, columns)),
    }
    if config.base != "none":
        shapes["weight"] = torch.float32, (1 + FOLDS, columns, features)
        shapes["bias"] = torch.float32, (1 + FOLDS, columns)
    return shapes


def learn_knowledge(
    config: TrainConfig, inputs: Inputs, split: Split, y: Tensor, objective: Objective, seed: int
) -> Knowledge | None:
    """Fit the base predictor of a split and keep its training labels; return ``None`` if neither is an input.

    Args:
        config: The training configuration.
        inputs: The model's inputs.
        split: The parts; the test part is not used.
        y: The labels of all nodes.
        objective: The task.
        seed: Seed of the training.
    """
    if config.base == "none" and not config.label_inputs:
        return None
    fitted = fit_base(config.base, inputs.x.cpu(), y, split, objective, seed)
    none = torch.full((len(split.train),), -1)
    labels = y[split.train] if config.label_inputs else y[:0]
    if objective.task != "classification":
        labels = labels.double()  # values far from 0 differ in digits that 32 bits do not have
    if fitted is None:
        return Knowledge(labels, none)
    base, folds = fitted
    return Knowledge(labels, folds[split.train], base=base)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """The base predictions and the known labels of a dataset, for one model.

    Attributes:
        inputs: The model's inputs, without beliefs.
        base: The base predictions of all nodes.
        nodes: The nodes whose labels are known, in ascending order.
        labels: Their labels.
        objective: The task.
        config: The training configuration.
    """

    inputs: Inputs
    base: Float[Tensor, "N C"] | None
    nodes: Int[Tensor, " n"]
    labels: Tensor
    objective: Objective
    config: TrainConfig

    def given(self, kept: Tensor) -> Inputs:
        """Return the inputs with the labels of some of the known nodes, a mask or numbers over `nodes`."""
        table = None
        if self.config.label_inputs:
            count = self.inputs.hypergraph.num_nodes
            table = label_table(count, self.nodes[kept], self.labels[kept], self.objective)
        return replace(self.inputs, beliefs=Beliefs(self.base, table).to(self.inputs.x.device))

    def everything(self) -> Inputs:
        """Return the inputs with all known labels."""
        return self.given(torch.arange(len(self.nodes)))

    def drawn(self, seed: int, epoch: int) -> tuple[Inputs, Int[Tensor, " m"]]:
        """Draw the labels that an epoch gives; return the inputs and the nodes of its loss, at least one."""
        count = len(self.nodes)
        generator = torch.Generator().manual_seed(derive_seed(seed, "given labels", epoch))
        order = torch.randperm(count, generator=generator)
        given = min(int(self.config.label_inputs * count + 0.5), count - 1)
        return self.given(order[:given].sort().values), self.nodes[order[given:].sort().values]


def told_of(
    knowledge: Knowledge,
    inputs: Inputs,
    objective: Objective,
    config: TrainConfig,
    *,
    found: tuple[Tensor, Tensor],
    labels: tuple[Tensor, Tensor] | None = None,
) -> Told:
    """Put together the base predictions and the known labels of a dataset.

    Args:
        knowledge: The model's knowledge.
        inputs: Its inputs.
        objective: The task.
        config: The training configuration.
        found: The numbers of the training nodes in the dataset, and their positions in the knowledge.
        labels: Further nodes with known labels, and their labels.
    """
    nodes, positions = found
    base, count = None, inputs.hypergraph.num_nodes
    if knowledge.base is not None:
        folds = torch.full((count,), -1).index_copy(0, nodes, knowledge.folds[positions])
        base = knowledge.base.outputs(inputs.x.cpu(), folds)
    if not config.label_inputs:
        return Told(inputs, base, nodes[:0], knowledge.labels[:0], objective, config)
    own = knowledge.labels[positions]
    if labels is not None and len(labels[0]):
        new = ~torch.isin(nodes, labels[0])
        nodes, own = torch.cat([nodes[new], labels[0]]), torch.cat([own[new], labels[1].to(own.dtype)])
    known = own != UNLABELLED if objective.task == "classification" else ~own.isnan().all(dim=1)
    nodes, own = nodes[known], own[known]
    order = nodes.argsort()
    return Told(inputs, base, nodes[order], own[order], objective, config)


def outputs_told(model: nn.Module, told: Told) -> Float[Tensor, "N C"]:
    """Run a model with all known labels. Return the outputs on the CPU.

    The output of a node whose label is known comes from a pass without the labels of its group of nodes. There are as
    many groups as give about the share of labels that the training gave, 2 to 10.
    """
    outputs = outputs_of(model, told.everything()).cpu()
    share, count = told.config.label_inputs, len(told.nodes)
    if not share or not count:
        return outputs
    groups = min(max(2, round(1 / (1 - share))), _MOST_GROUPS)
    group = torch.arange(count) % groups
    outputs = outputs.clone()
    for number in range(groups):
        left_out = told.nodes[group == number]
        if len(left_out):
            outputs[left_out] = outputs_of(model, told.given(group != number)).cpu()[left_out]
    return outputs


def added_columns(model: object, num_outputs: int, config: TrainConfig) -> int:
    """Count the columns that beliefs add to the features of a model; none for one that takes beliefs by themselves."""
    if getattr(model, "takes_beliefs", False):
        return 0
    return (num_outputs if config.base != "none" else 0) + (num_outputs + 1 if config.label_inputs else 0)


def start_small(model: nn.Module, num_outputs: int) -> None:
    """Scale the last map to the outputs by 1/100, so that a correction of a base starts near 0."""
    for dimensions in (2, 1):
        last = [p for p in model.parameters() if p.dim() == dimensions and p.shape[0] == num_outputs][-1:]
        with torch.no_grad():
            for parameter in last:
                parameter.mul_(0.01)

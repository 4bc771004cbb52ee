"""Algorithms 1 and 2 as simple loops over nodes, hyperedges and memberships, in double precision.

The loops take the parameters of a model and the seeds of its dropout masks, in the order of the forward pass. They
share nothing else with it. Every quantity is a list of vectors.
"""

import torch

from edhnn import kernels
from edhnn.seeding import SeedStream


class Loops:
    """The forward pass of `EDHNN`, `Invariant` and `EDHNNII` by loops."""

    def __init__(self, model, hypergraph, x_e=None, *, seed=None):
        self.model, self.hypergraph, self.config = model, hypergraph, model.config
        self.members = list(hypergraph.hyperedges())
        self.pairs = [(v, e) for e, members in enumerate(self.members) for v in members]  # as they are stored
        self.x_e = None if x_e is None else list(x_e)
        self.seeds = None if seed is None else SeedStream(seed)
        like = next(model.parameters())
        ones = [1.0] * len(self.pairs)
        inward = ones if hypergraph.incidence_weight is None else hypergraph.incidence_weight.tolist()
        w_e = [1.0] * len(self.members) if hypergraph.edge_weight is None else hypergraph.edge_weight.tolist()
        outward = [w * w_e[e] for w, (_, e) in zip(inward, self.pairs, strict=True)]
        self.inward, self.outward = (torch.tensor(weights, dtype=like.dtype) for weights in (inward, outward))

    def drop(self, rows, rate):
        if self.seeds is None or rate == 0:
            return rows
        seed = self.seeds()
        if not rows:
            return rows
        mask = kernels.hash_dropout(torch.ones(len(rows), *rows[0].shape, dtype=rows[0].dtype), rate, seed)
        return [row * factors for row, factors in zip(rows, mask, strict=True)]

    def mlp(self, mlp, rows):
        if not hasattr(mlp, "linears"):
            return rows
        if mlp.input_norm is not None:
            rows = [normalised(row, mlp.input_norm) for row in rows]
        for linear, norm in zip(mlp.linears[:-1], mlp.norms, strict=True):
            rows = [(linear.weight @ row + linear.bias).relu() for row in rows]
            if mlp.norm == "layer":
                rows = [normalised(row, norm) for row in rows]
            rows = self.drop(rows, mlp.dropout.rate)
        return [mlp.last.weight @ row + mlp.last.bias for row in rows]

    def aggregate(self, rows, weights, groups, width):
        out = []
        for group in groups:
            total = torch.zeros(width, dtype=self.inward.dtype)
            for i in group:
                total = total + weights[i] * rows[i]
            weight = sum(float(weights[i]) for i in group)
            out.append(total / weight if self.config.aggregate == "mean" and weight > 0 else total)
        return out

    def edge_groups(self):
        return [[i for i, (_, e) in enumerate(self.pairs) if e == edge] for edge in range(len(self.members))]

    def node_groups(self):
        return [[i for i, (v, _) in enumerate(self.pairs) if v == node] for node in range(self.hypergraph.num_nodes)]

    def update(self, update, h, s, x):
        rows = []
        for v in range(self.hypergraph.num_nodes):
            if self.config.update == "restart":
                rows.append((1 - self.config.restart) * s[v] + self.config.restart * x[v])
                continue
            degree = torch.tensor([float(len(self.node_groups()[v]))], dtype=h[v].dtype)
            extra = {"none": [], "count": [degree], "log": [degree.clamp(min=1).log()]}[self.config.degree]
            rows.append(torch.cat([h[v], s[v], x[v], *extra]))
        return self.mlp(update.mlp, rows)

    def messages(self, k, h, state):
        """Return the messages of hyperedges and the next state."""
        model, width = self.model, self.config.hidden
        if not hasattr(model, "phis"):
            node_messages = self.mlp(model.operators[k].phi, h)
            messages = [node_messages[v] for v, _ in self.pairs]
        elif self.config.form == "main-text":
            messages = self.mlp(model.phis[k], [torch.cat([h[v], state[e]]) for v, e in self.pairs])
        else:
            messages = self.mlp(model.phis[k], [torch.cat([state[i], h[v]]) for i, (v, _) in enumerate(self.pairs)])
        m_e = self.aggregate(messages, self.inward, self.edge_groups(), width)
        return m_e, (m_e if getattr(self.config, "form", "") == "main-text" else messages)

    def messages_to_nodes(self, k, h, m_e):
        if self.x_e is not None:
            m_e = [torch.cat([m, x]) for m, x in zip(m_e, self.x_e, strict=True)]
        if hasattr(self.model, "phis"):
            return self.mlp(self.model.rhos[k], [torch.cat([h[v], m_e[e]]) for v, e in self.pairs])
        operator = self.model.operators[k]
        if type(operator).__name__ == "InvariantOperator":
            edge_messages = self.mlp(operator.rho, m_e)
            return [edge_messages[e] for _, e in self.pairs]
        return self.mlp(operator.rho, [torch.cat([h[v], m_e[e]]) for v, e in self.pairs])

    def __call__(self, x):
        config, model = self.config, self.model
        if model.encoder is None:
            h = self.drop(list(x), config.input_dropout)
        else:
            layer = model.encoder.linear
            h = [(layer.weight @ row + layer.bias).relu() for row in self.drop(list(x), config.input_dropout)]
        x_v, state = h, None
        if hasattr(model, "initial"):
            count = len(self.members if config.form == "main-text" else self.pairs)
            state = [model.initial] * count
        for t in range(config.num_iterations):
            k = t % len(model.updates)
            h = self.drop(h, config.dropout)
            m_e, state = self.messages(k, h, state)
            s = self.aggregate(self.messages_to_nodes(k, h, m_e), self.outward, self.node_groups(), config.hidden)
            h = [model.activation(row) for row in self.update(model.updates[k], h, s, x_v)]
        return torch.stack(self.mlp(model.classifier, self.drop(h, config.dropout)))


def normalised(row, norm):
    centred = row - row.mean()
    return centred / (centred.square().mean() + norm.eps).sqrt() * norm.weight + norm.bias

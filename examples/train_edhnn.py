"""ED-HNN in a PyTorch loop of your own: any features, any hyperedges.

python examples/train_edhnn.py
"""

import torch
from torch.nn.functional import cross_entropy

from edhnn import EDHNN, EDHNNConfig, Hypergraph, random_splits


def make_data() -> tuple[torch.Tensor, Hypergraph, torch.Tensor]:
    """Two groups of 100 nodes, noisy features, and 120 hyperedges of five nodes, each within one group."""
    draw = torch.Generator().manual_seed(0)
    y = torch.arange(200) % 2
    x = y[:, None] + 2.0 * torch.randn(200, 8, generator=draw)
    groups = [torch.nonzero(y == label)[:, 0] for label in (0, 1)]
    hyperedges = [groups[k % 2][torch.randperm(100, generator=draw)[:5]].tolist() for k in range(120)]
    return x, Hypergraph.from_hyperedges(hyperedges, num_nodes=200), y


def main() -> float:
    x, hypergraph, y = make_data()
    split = random_splits(200, 1)[0]
    model = EDHNN(EDHNNConfig(hidden=32, classifier_hidden=32, dropout=0.2), in_features=8, num_classes=2)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.005)
    for _ in range(60):
        model.train()
        loss = cross_entropy(model(x, hypergraph)[split.train], y[split.train])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.eval()
    with torch.no_grad():
        right = model(x, hypergraph).argmax(1)[split.test] == y[split.test]
    print(f"loss {loss.item():.3f}, test accuracy {right.float().mean():.3f}")
    return float(right.float().mean())


if __name__ == "__main__":
    main()

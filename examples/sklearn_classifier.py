"""ED-HNN as a scikit-learn classifier, beside label spreading and cross-validation.

python examples/sklearn_classifier.py
"""

from sklearn.model_selection import cross_val_score

from edhnn import EDHNNClassifier, HypergraphLabelSpreading, NodeSamples, contextual_sbm


def main() -> dict[str, float]:
    dataset = contextual_sbm(1, nodes_per_class=150, num_hyperedges=300)
    truth = dataset.y.numpy()
    y = truth.copy()
    y[::2] = -1  # unlabelled
    scores = {}
    for name, model in (
        ("ED-HNN", EDHNNClassifier(hidden=16, epochs=40, dropout=0.1)),
        ("perceptron", EDHNNClassifier("mlp", hidden=16, epochs=40, dropout=0.1)),
        ("label spreading", HypergraphLabelSpreading("lec")),
    ):
        samples = NodeSamples(dataset)
        scores[name] = float((model.fit(samples, y).predict(samples)[::2] == truth[::2]).mean())
        print(f"{name:16} {scores[name]:.3f} of the unlabelled nodes are right")
    folds = cross_val_score(EDHNNClassifier(hidden=16, epochs=30, dropout=0.1), NodeSamples(dataset), truth, cv=2)
    print(f"cross-validation {folds.mean():.3f}")
    return scores


if __name__ == "__main__":
    main()

"""`EDHNNClassifier` and `EDHNNRegressor`: scikit-learn's contract and typical uses."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from edhnn import (
    DataError,
    EDHNNClassifier,
    EDHNNRegressor,
    Hypergraph,
    NodeSamples,
    UsageError,
    contextual_sbm,
    from_pretrained,
)

SMALL = dict(hidden=16, epochs=40, dropout=0.2, options={"input_dropout": 0.2})  # the default of 0.5 is too large here
QUICK = dict(hidden=8, epochs=2)
CANNOT_APPLY = {
    "check_classifiers_classes": "it uses -1 as a class, and here -1 means unlabelled, as in LabelSpreading",
    "check_methods_subset_invariance": "it requires 1e-7, and networks compute in 32 bits; our test requires 1e-5",
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.usefixtures("without_shape_checks")
@parametrize_with_checks(
    [EDHNNClassifier(**SMALL, table="features"), EDHNNRegressor(**SMALL | {"epochs": 100}, table="features")],
    expected_failed_checks=lambda _: CANNOT_APPLY,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_predictions_without_hyperedges_do_not_depend_on_other_samples(data):
    fitted = EDHNNClassifier(**QUICK, table="features").fit(data.x.numpy(), data.y.numpy())
    alone = np.vstack([fitted.predict_proba(row[None]) for row in data.x[:20].numpy()])
    np.testing.assert_allclose(fitted.predict_proba(data.x.numpy())[:20], alone, rtol=1e-5)


@pytest.mark.parametrize("kind", [EDHNNClassifier, EDHNNRegressor])
def test_predicting_before_fitting_raises(kind, data):
    with pytest.raises(NotFittedError, match="not fitted"):
        kind(**SMALL).predict(data.hypergraph, data.x)


@pytest.fixture(scope="module")
def data():
    return contextual_sbm(1, nodes_per_class=100, num_hyperedges=200)


def half_hidden(data):
    y = data.y.numpy().copy()
    y[::2] = -1
    return y


@pytest.fixture(scope="module")
def classifier(data):
    return EDHNNClassifier(**SMALL).fit(data.hypergraph, half_hidden(data), X=data.x)


@pytest.fixture(scope="module")
def regressor(data):
    y = half_hidden(data)
    return EDHNNRegressor(**SMALL).fit(data, np.where(y >= 0, y, np.nan))


def test_unlabelled_nodes_are_predicted_from_labelled_ones(data, classifier):
    truth = data.y.numpy()
    assert (classifier.predict(data)[::2] == truth[::2]).mean() > 0.75
    probabilities = classifier.predict_proba(data.hypergraph, X=data.x)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)


def test_the_random_state_determines_the_fit(data):
    y = half_hidden(data)
    model = EDHNNClassifier(**QUICK).fit(data.hypergraph, y, X=data.x)
    probabilities = model.predict_proba(data)
    again = clone(model).fit(NodeSamples(data), y)
    np.testing.assert_array_equal(again.predict_proba(data), probabilities)
    other = EDHNNClassifier(**QUICK, random_state=1).fit(data, y)
    assert not np.array_equal(other.predict_proba(data), probabilities)


def test_class_names_are_kept(data):
    names = np.array(["left", "right"])[data.y.numpy()]
    model = EDHNNClassifier(**QUICK).fit(data, names)
    assert model.classes_.tolist() == ["left", "right"]
    assert set(model.predict(data)) <= {"left", "right"}


def test_grid_search_over_restart_and_depth(data):
    grid = {"restart": [0.0, 0.5], "num_iterations": [1, 2]}
    search = GridSearchCV(EDHNNClassifier(**QUICK), grid, cv=2).fit(NodeSamples(data), data.y.numpy())
    assert set(search.best_params_) == {"restart", "num_iterations"}
    assert search.predict(NodeSamples(data)[:7]).shape == (7,)


def test_rows_select_nodes_and_keep_the_whole_hypergraph(data):
    samples = NodeSamples(data)
    some = samples[np.array([5, 3])]
    assert some.shape == (2, 100)
    assert some[[1]].nodes.tolist() == [3]
    model = EDHNNClassifier(**QUICK).fit(samples, data.y.numpy())
    np.testing.assert_array_equal(model.predict_proba(some), model.predict_proba(samples)[[5, 3]])


def test_other_models_and_other_hypergraphs(data):
    model = EDHNNClassifier("mlp", epochs=5).fit(data, data.y.numpy())
    grown = Hypergraph.from_hyperedges([[0, 1, 2]], num_nodes=3)
    assert model.predict(grown, X=np.zeros((3, 100))).shape == (3,)
    with pytest.raises(UsageError, match="restart"):
        EDHNNClassifier("mlp", restart=0.3, epochs=5).fit(data, data.y.numpy())


def test_regression_with_unknown_values(data):
    target = data.x[:, :2].sum(1).numpy()
    y = target.copy()
    y[::3] = np.nan
    model = EDHNNRegressor(hidden=16, epochs=80, learning_rate=0.01, dropout=0.0).fit(data, y)
    assert model.predict(data).shape == target.shape
    assert model.score(NodeSamples(data), target) > 0.3
    several = EDHNNRegressor(epochs=3, hidden=8).fit(data, np.stack([y, y], axis=1))
    assert several.predict(data).shape == (200, 2)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_a_plain_table_holds_nodes_without_hyperedges():
    x = np.random.RandomState(0).randn(40, 3)
    y = (x[:, 0] > 0).astype(int)
    options = dict(epochs=60, hidden=16, dropout=0.0, options={"input_dropout": 0.0}, table="features")
    model = EDHNNClassifier(**options).fit(x, y)
    assert model.score(x, y) > 0.8
    sparse = EDHNNClassifier(hidden=8, epochs=5, table="features").fit(sp.csr_matrix(x), y)
    assert sparse.predict(sp.csr_matrix(x)).shape == (40,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: np.full_like(y, -1), "At least one node must be labelled"),
        (lambda y: np.zeros_like(y), "at least 2 classes"),
        (lambda y: y[:-1], "a label per sample"),
    ],
)
def test_useless_labels_raise(data, change, message):
    with pytest.raises(DataError, match=message):
        EDHNNClassifier(**SMALL).fit(data, change(data.y.numpy()))


def test_several_classes_per_sample_raise(data):
    with pytest.raises(DataError, match=r"one class per sample. Got an array of shape \(200, 2\)"):
        EDHNNClassifier(**SMALL).fit(data, np.eye(2, dtype=int)[data.y.numpy()])


def test_nan_features_raise_an_error_with_column_and_node(data):
    x = data.x.clone()
    x[7, 3] = torch.nan
    with pytest.raises(DataError, match="Column '3' is nan at node '7'"):
        EDHNNClassifier(**SMALL).fit(data.hypergraph, data.y.numpy(), X=x)
    model = EDHNNClassifier(**QUICK).fit(data, data.y.numpy())
    with pytest.raises(DataError, match="Column '3' is nan at node '7'"):
        model.predict(data.hypergraph, X=x)


def test_unknown_labels_do_not_count_in_scores(data, classifier, regressor):
    truth, y = data.y.numpy(), half_hidden(data)
    known = y >= 0
    assert classifier.score(NodeSamples(data), y) == (classifier.predict(data)[known] == truth[known]).mean()
    assert classifier.score(data.hypergraph, y, X=data.x) == classifier.score(data, y)
    with pytest.raises(DataError, match="All 200 entries of 'y' are unknown"):
        classifier.score(data, np.full(200, -1))
    values = np.where(known, y, np.nan)
    predicted, true = regressor.predict(data)[known], values[known]
    expected = 1 - ((predicted - true) ** 2).sum() / ((true - true.mean()) ** 2).sum()
    assert regressor.score(data, values) == pytest.approx(expected)


def test_sample_weights_count_in_scores(data, classifier, regressor):
    y, weight = half_hidden(data), np.random.RandomState(0).rand(200)
    right, known = classifier.predict(data) == y, y >= 0
    assert classifier.score(data, y, weight) == pytest.approx((right * weight)[known].sum() / weight[known].sum())
    values = np.where(known, y, np.nan)
    predicted, true, w = regressor.predict(data)[known], values[known], weight[known]
    rest = (w * (true - np.average(true, weights=w)) ** 2).sum()
    assert regressor.score(data, values, weight) == pytest.approx(1 - (w * (true - predicted) ** 2).sum() / rest)


def test_large_values_keep_their_differences(data):
    """Seconds since 1970 differ in digits that 32 bits cannot represent."""
    no_dropout = dict(hidden=16, epochs=40, dropout=0.0, options={"input_dropout": 0.0})
    x, target = data.x.numpy().astype(float)[:, :2], data.x[:, :2].sum(1).numpy().astype(float)
    near = EDHNNRegressor(**no_dropout).fit(data.hypergraph, target, X=x)
    far = EDHNNRegressor(**no_dropout).fit(data.hypergraph, target + 1.7e9, X=x + 1.7e9)
    assert near.score(data.hypergraph, target, X=x) > 0.5
    answers = far.predict(data.hypergraph, X=x + 1.7e9) - 1.7e9
    np.testing.assert_allclose(answers, near.predict(data.hypergraph, X=x), atol=0.01)


def test_a_target_column_without_values_raises(data):
    y = np.stack([data.y.numpy().astype(float), np.full(200, np.nan)], axis=1)
    with pytest.raises(DataError, match="Column '1' has none"):
        EDHNNRegressor(**SMALL).fit(data, y)
    with pytest.raises(DataError, match="at most 3.4e"):
        EDHNNRegressor(**SMALL).fit(data, np.full(200, 1e39))


def test_unknown_values_of_a_plain_table():
    x = np.random.RandomState(0).randn(40, 3)
    y = x[:, 0].copy()
    y[::4] = np.nan
    options = dict(epochs=60, hidden=16, dropout=0.0, options={"input_dropout": 0.0}, table="features")
    model = EDHNNRegressor(**options).fit(x, y)
    assert model.score(x, y) > 0.3
    with pytest.raises(ValueError, match="infinity"):
        EDHNNRegressor(epochs=2, table="features").fit(x, np.where(np.isnan(y), np.inf, y))


def test_columns_in_another_order_raise(data):
    unnamed = NodeSamples(data.hypergraph, data.x[:, :3])
    frame = pd.DataFrame(data.x[:, :3].numpy(), columns=["a", "b", "c"])
    model = EDHNNClassifier(**QUICK).fit(data.hypergraph, data.y.numpy(), X=frame)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    expected = model.predict_proba(data.hypergraph, X=frame)
    np.testing.assert_array_equal(model.predict_proba(unnamed), expected)  # columns without names are not compared
    other = frame[["c", "a", "b"]]
    for given in ((data.hypergraph, other), (NodeSamples(data.hypergraph, other)[:5],)):
        with pytest.raises(DataError, match="in their order: a, b, c. Got c, a, b"):
            model.predict_proba(*given)
    np.testing.assert_array_equal(model.predict_proba(data.hypergraph, X=other[model.feature_names_in_]), expected)
    model.fit(unnamed, data.y.numpy())
    assert not hasattr(model, "feature_names_in_")


def test_features_given_twice_raise(data):
    with pytest.raises(UsageError, match="already holds features"):
        EDHNNClassifier(**QUICK).fit(NodeSamples(data), data.y.numpy(), X=data.x)


@pytest.mark.usefixtures("without_shape_checks")
def test_numpy_numbers_are_accepted_as_parameters(data):
    numbers = dict(epochs=np.int64(3), patience=np.arange(3)[2], learning_rate=np.float32(0.1), hidden=np.int64(8))
    model = EDHNNClassifier(**numbers, dropout=np.float64(0.5)).fit(data, data.y.numpy())
    assert model.n_iter_ <= 3
    assert type(model.model_.config.hidden) is int


def test_minus_one_is_not_a_class(data):
    with pytest.raises(DataError, match=r"Got 1 class, '1', and 100 samples with -1, which means unlabelled"):
        EDHNNClassifier(**SMALL).fit(data, data.y.numpy() * 2 - 1)


def test_features_of_the_wrong_shape_raise(data):
    model = EDHNNClassifier(**QUICK).fit(data, data.y.numpy())
    with pytest.raises(DataError, match="100 features"):
        model.predict(data.hypergraph, X=torch.zeros(200, 3))
    with pytest.raises(DataError, match="row per node"):
        NodeSamples(data.hypergraph, torch.zeros(3, 3))


def test_a_plain_table_needs_the_table_parameter(data):
    """The same table must not be an incidence matrix for one estimator and features for another."""
    for table in (np.eye(4), sp.eye_array(4, format="csr"), pd.DataFrame(np.eye(4))):
        with pytest.raises(UsageError, match=r"must be a Hypergraph, a NodeDataset or a NodeSamples.*table='features'"):
            EDHNNClassifier(**QUICK).fit(table, [0, 1, 0, 1])
    with pytest.raises(UsageError, match="table of EDHNNRegressor must be one of features. Got 'incidence'"):
        EDHNNRegressor(**QUICK, table="incidence").fit(np.eye(4), [0, 1, 0, 1])


def test_an_unavailable_device_raises(data):
    with pytest.raises(UsageError, match="device, on this machine, must be one of auto"):
        EDHNNClassifier(**QUICK, device="cuda:9").fit(data, data.y.numpy())


def test_the_network_can_be_saved(data, tmp_path):
    model = EDHNNClassifier(**QUICK).fit(data, data.y.numpy())
    model.pretrained_.save_pretrained(tmp_path / "model")
    np.testing.assert_allclose(from_pretrained(tmp_path / "model").answers(data), model.predict_proba(data), rtol=1e-6)


def test_predictions_that_are_not_finite_raise_and_far_features_warn():
    data = contextual_sbm(1, nodes_per_class=20, num_hyperedges=20)
    y, table = data.y.numpy(), pd.DataFrame(data.x[:, :3].numpy(), columns=list("abc"))
    classifier = EDHNNClassifier(**QUICK).fit(data.hypergraph, y, X=table)
    regressor = EDHNNRegressor(**QUICK).fit(data.hypergraph, y.astype(float), X=table)
    with torch.no_grad():
        for model in (classifier.model_, regressor.model_):
            next(model.parameters()).mul_(1e3)  # so that the product with a huge feature overflows for sure
    huge, far = table.copy(), table.copy()
    huge.loc[7, "b"], far.loc[7, "b"] = 1.5e38, 1e4
    for predict in (classifier.predict, classifier.predict_proba, regressor.predict):
        predict(data.hypergraph, table)
        with pytest.warns(UserWarning, match=r"1 of 40 nodes .* 1 of 3 columns.*'b', with the value 10000"):
            predict(data.hypergraph, far)
        with pytest.raises(DataError, match=r"column 'b'.* at node '7'"), pytest.warns(UserWarning, match="'b'"):
            predict(data.hypergraph, huge)

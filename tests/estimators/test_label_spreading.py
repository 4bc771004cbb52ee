"""`HypergraphLabelSpreading`: scikit-learn's contract and the properties of label diffusion."""

import inspect
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import edhnn
from edhnn import DataError, Hypergraph, HypergraphLabelSpreading, NodeDataset, NodeSamples, UsageError, diffuse

POTENTIALS = ("ce", "divergence", "tv", "lec")
TRANSDUCTION = "the rows of the fit get the transduction, which other selections or orders of rows cannot reproduce"
CANNOT_APPLY = {
    "check_classifiers_classes": "it uses -1 as a class, and here -1 means unlabelled, as in LabelSpreading",
    "check_methods_sample_order_invariance": TRANSDUCTION,
    "check_methods_subset_invariance": TRANSDUCTION,
}


@pytest.mark.usefixtures("without_shape_checks")  # a check sets invalid parameters, which must not raise
@parametrize_with_checks(
    [HypergraphLabelSpreading(table="incidence"), HypergraphLabelSpreading("tv", table="incidence")],
    expected_failed_checks=lambda _: CANNOT_APPLY,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def spreading(*arguments, **options):
    """Make an estimator that accepts incidence matrices as plain tables."""
    return HypergraphLabelSpreading(*arguments, table="incidence", **options)


def communities(nodes=40, hyperedges=30, size=5, noise=0.1, seed=0):
    """Make two groups; a hyperedge draws mostly from one of them. Node 0 is isolated."""
    random = np.random.RandomState(seed)
    truth = np.arange(nodes) % 2
    incidence = np.zeros((nodes, hyperedges))
    for e in range(hyperedges):
        likely = np.where(truth == e % 2, 1 - noise, noise)
        likely[0] = 0
        incidence[random.choice(nodes, size, replace=False, p=likely / likely.sum()), e] = 1
    return incidence, truth


def hidden(truth, known):
    return np.where(np.isin(np.arange(len(truth)), known), truth, -1)


@pytest.mark.parametrize("potential", POTENTIALS)
def test_a_small_number_of_labels_recovers_the_groups(potential):
    incidence, truth = communities(hyperedges=60, noise=0.02)
    model = spreading(potential).fit(incidence, hidden(truth, range(1, 9)))
    assert (model.transduction_ == truth)[1:].mean() > 0.85
    assert model.classes_.tolist() == [0, 1] and model.n_features_in_ == 60
    assert model.n_iter_ >= 1 and -1e-9 <= model.gap_ <= 1e-4
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1)
    assert (model.label_distributions_ >= 0).all()
    np.testing.assert_array_equal(model.predict(incidence), model.transduction_)
    np.testing.assert_array_equal(model.predict_proba(incidence), model.label_distributions_)


@pytest.mark.parametrize("potential", ["tv", "lec", "divergence"])
@pytest.mark.parametrize("strength", [0.5, 3.0])
def test_distributions_equal_the_diffusion_of_the_one_hot_labels(potential, strength):
    incidence, truth = communities()
    y = hidden(truth, range(10))
    one_hot = torch.from_numpy(np.stack([y == 0, y == 1], axis=1).astype(float))
    hypergraph = Hypergraph.from_scipy(sp.csr_array(incidence))
    h = diffuse(hypergraph, one_hot, potential=potential, strength=strength, tolerance=1e-6).value.numpy().clip(min=0)
    total = h.sum(axis=1, keepdims=True)
    expected = np.where(total > 0, h / np.where(total > 0, total, 1), 0.5)
    model = spreading(potential, strength=strength).fit(incidence, y)
    np.testing.assert_allclose(model.label_distributions_, expected, atol=1e-12)


@pytest.mark.parametrize("strength", [0.0, -1.0, np.inf, np.nan])
def test_the_strength_must_be_positive_and_finite(strength):
    with pytest.raises(UsageError, match="The strength must be finite and positive"):
        spreading(strength=strength).fit(np.eye(3), [0, 1, -1])


@pytest.mark.parametrize("strength", [0.1, 1.0, 20.0])
def test_the_laplacian_clique_expansion_is_label_spreading_with_the_operator_of_hgnn(strength):
    incidence, truth = communities()
    y = hidden(truth, range(10))
    x = np.stack([y == 0, y == 1], axis=1).astype(float)
    scale = 1 / np.sqrt(np.maximum(incidence.sum(axis=1), 1))
    theta = scale[:, None] * (incidence / incidence.sum(axis=0)) @ incidence.T * scale
    alpha = strength / (2 + strength)
    mass = np.linalg.solve(np.eye(40) - alpha * theta, x)[1:]
    model = spreading("ce", strength=strength, tolerance=1e-14).fit(incidence, y)
    np.testing.assert_allclose(model.label_distributions_[1:], mass / mass.sum(axis=1, keepdims=True), atol=3e-5)


@pytest.mark.parametrize("normalisation", ["laplacian", "degree", "none"])
def test_strength_matters_for_every_normalisation(normalisation):
    incidence, truth = communities()
    weak, strong = (
        spreading(normalisation=normalisation, strength=strength)
        .fit(incidence, hidden(truth, range(9)))
        .label_distributions_
        for strength in (0.1, 10.0)
    )
    assert np.abs(weak - strong).max() > 0.01


@pytest.mark.parametrize("potential", POTENTIALS)
def test_a_hypergraph_and_its_incidence_matrix_give_the_same_result(potential):
    incidence, truth = communities(nodes=16, hyperedges=10, size=4)
    y = hidden(truth, range(10))
    stored_zero = sp.coo_array((np.array([1.0, 0.0]), (np.array([0, 1]), np.array([0, 0]))), shape=(2, 1))
    assert spreading().fit(stored_zero, [1, -1]).incidence_.nnz == 1
    hypergraph = Hypergraph.from_scipy(sp.csr_array(incidence))
    models = [
        spreading(potential).fit(X, y)
        for X in (incidence, 7.5 * incidence, sp.csr_array(incidence), sp.csc_matrix(incidence), hypergraph)
    ]
    for model in models:
        np.testing.assert_array_equal(model.label_distributions_, models[0].label_distributions_)
        np.testing.assert_array_equal(model.predict_proba(hypergraph), models[0].label_distributions_)
        np.testing.assert_array_equal(model.predict(incidence[5:9]), models[0].predict(sp.csr_array(incidence[5:9])))


def test_hyperedge_weights_count():
    def fitted(weight):
        between = Hypergraph.from_hyperedges([[0, 1], [1, 2]], edge_weight=weight)
        return spreading("tv").fit(between, [0, -1, 1]).transduction_.tolist()

    assert fitted([5.0, 1.0]) == [0, 0, 1]
    assert fitted([1.0, 5.0]) == [0, 1, 1]


@pytest.mark.parametrize("potential", POTENTIALS)
def test_nodes_that_no_label_reaches_get_the_prior(potential):
    #                    0, 1 | 2, 3, 4 | 5, 6 without labels | 7 isolated | 8 isolated and labelled
    hypergraph = Hypergraph.from_hyperedges([[0, 1], [2, 3, 4], [5, 6], []], num_nodes=9)
    y = [0, -1, 1, 1, -1, -1, -1, -1, 0]
    model = spreading(potential).fit(hypergraph, y)
    np.testing.assert_allclose(model.label_distributions_[[5, 6, 7]], 0.5)
    np.testing.assert_allclose(model.label_distributions_[8], [1, 0])
    assert model.transduction_[[0, 1, 2, 3, 4]].tolist() == [0, 0, 1, 1, 1]
    assert np.isfinite(model.label_distributions_).all()


def test_new_nodes_get_the_mean_of_the_means_of_their_hyperedges():
    incidence = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 0, 0], [0, 1, 0, 1]])
    model = spreading().fit(incidence, [0, -1, 1, 1])
    mean = [model.label_distributions_[[0, 1]].mean(axis=0), model.label_distributions_[[1, 2, 3]].mean(axis=0)]
    new = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    expected = [mean[0], (mean[0] + mean[1]) / 2, mean[0], model.class_prior_, model.class_prior_]
    np.testing.assert_allclose(model.predict_proba(new), expected)
    np.testing.assert_allclose(model.class_prior_, [1 / 3, 2 / 3])
    assert np.isnan(model.edge_distributions_[2]).all()


def test_without_hyperedges_the_labels_stay():
    model = spreading("tv").fit(Hypergraph.from_hyperedges([], num_nodes=3), [1, 0, -1])
    assert model.predict(Hypergraph.from_hyperedges([], num_nodes=3)).tolist() == [1, 0, 0]
    np.testing.assert_allclose(model.label_distributions_[2], 0.5)


@pytest.mark.parametrize(
    "y",
    [
        ["red", "-1", "blue", "-1"],
        np.array(["red", -1, "blue", -1], dtype=object),
        np.array(["red", "-1", "blue", "-1"], dtype=object),
    ],
)
def test_classes_may_be_strings(y):
    model = spreading().fit([[1, 0], [1, 0], [0, 1], [0, 1]], y)
    assert model.classes_.tolist() == ["blue", "red"]
    assert model.transduction_.tolist() == ["red", "red", "blue", "blue"]
    assert model.predict([[0, 1]]).tolist() == ["blue"]


def test_one_class_is_allowed_and_predicted_everywhere():
    model = spreading().fit([[1, 0], [1, 0], [0, 1]], [7, -1, -1])
    assert model.transduction_.tolist() == [7, 7, 7]
    assert model.predict_proba([[0, 0]]).tolist() == [[1.0]]


@pytest.mark.parametrize("potential", POTENTIALS)
def test_repeated_fits_clones_and_pickles_give_the_same_result(potential):
    incidence, truth = communities()
    y = hidden(truth, range(8))
    model = spreading(potential, strength=2.0).fit(incidence, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params() and not hasattr(copy, "classes_")
    np.testing.assert_array_equal(copy.fit(incidence, y).label_distributions_, model.label_distributions_)
    thawed = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(thawed.predict_proba(incidence[:7]), model.predict_proba(incidence[:7]))


def test_reordering_the_nodes_reorders_the_result():
    incidence, truth = communities()
    y, order = hidden(truth, range(8)), np.random.RandomState(1).permutation(40)
    model = spreading("lec", tolerance=1e-10).fit(incidence, y)
    moved = spreading("lec", tolerance=1e-10).fit(incidence[order], y[order])
    np.testing.assert_allclose(moved.label_distributions_, model.label_distributions_[order], atol=1e-4)


def test_grid_search_over_strength_and_potential():
    incidence, truth = communities(nodes=60, hyperedges=60)
    grid = {"strength": [0.1, 1.0], "potential": ["ce", "tv"]}
    search = GridSearchCV(spreading(), grid, cv=StratifiedKFold(2), error_score="raise")
    search.fit(incidence, truth)
    assert search.best_score_ > 0.8
    assert set(search.best_params_) == set(grid)
    assert search.predict(sp.csr_array(incidence)).shape == (60,)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"potential": "tvv"}, UsageError, "potential must be one of ce, divergence, tv, lec. Got 'tvv'"),
        ({"potential": "tv", "power": 3}, UsageError, "power of 'tv' must be 1 or 2. Got 3"),
        ({"strength": 0.0}, UsageError, "strength must be finite and positive. Got 0.0"),
        ({"solver": "newton"}, UsageError, "solver must be one of"),
        ({"potential": "tv", "solver": "cg"}, UsageError, "only solve the clique expansion with the squared distance"),
        ({"normalisation": "degre"}, UsageError, "normalisation must be one of .* Did you mean 'degree'"),
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_parameters_are_checked_when_fitting(parameters, error, message):
    model = spreading(**parameters)
    with pytest.raises(error, match=message):
        model.fit([[1, 0], [1, 1]], [0, 1])


def test_invalid_input_raises():
    incidence = np.array([[1, 0], [1, 1], [0, 1]])
    model = spreading()
    with pytest.raises(DataError, match="At least one node must be labelled. All 3 entries of 'y' are -1"):
        model.fit(incidence, [-1, -1, -1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(incidence, [0, 1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(Hypergraph.from_hyperedges([[0, 1, 2]]), [0, 1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(Hypergraph.from_hyperedges([[0, 1, 2]]))
    with pytest.raises(ValueError, match="Negative values in data"):
        model.fit(-incidence, [0, 1, 1])
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        model.fit(incidence, [0.5, 1.5, -1])
    with pytest.raises(NotFittedError):
        model.predict(incidence)
    model.fit(incidence, [0, -1, 1])
    with pytest.raises(ValueError, match="expecting 2 features"):
        model.predict([[1, 0, 0]])
    with pytest.raises(ValueError, match="expecting 2 features"):
        model.predict(Hypergraph.from_hyperedges([[0, 1, 2]]))
    trio = Hypergraph.from_hyperedges([[0, 1, 2]])
    weighted = Hypergraph(trio.node_index, trio.edge_index, 3, 1, incidence_weight=torch.ones(3))
    with pytest.raises(DataError, match="does not support incidence weights.*Hyperedge weights are supported"):
        model.fit(weighted, [0, 1, -1])


def test_too_few_steps_give_a_warning_and_the_gap():
    incidence, truth = communities()
    model = spreading("tv", max_steps=3, tolerance=1e-12)
    with pytest.warns(ConvergenceWarning, match=r"within the allowed steps. Raise `max_steps=`.*The gap is"):
        model.fit(incidence, hidden(truth, range(8)))
    assert model.n_iter_ == 3 and model.gap_ > 1e-9


@pytest.mark.parametrize("table", [np.eye(3), [[1.0, 0], [0, 1], [1, 1]], sp.eye_array(3, format="csr")])
def test_a_plain_table_needs_the_table_parameter(table):
    with pytest.raises(UsageError, match=r"must be a Hypergraph, a NodeDataset or a NodeSamples.*table='incidence'"):
        HypergraphLabelSpreading().fit(table, [0, 1, -1])
    with pytest.raises(UsageError, match="table of HypergraphLabelSpreading must be one of incidence. Got 'features'"):
        HypergraphLabelSpreading(table="features").fit(table, [0, 1, -1])


def test_samples_and_datasets_give_the_same_result_as_their_hypergraph():
    incidence, truth = communities()
    hypergraph = Hypergraph.from_scipy(sp.csr_array(incidence))
    y = hidden(truth, range(10))
    expected = HypergraphLabelSpreading().fit(hypergraph, y).label_distributions_
    dataset = NodeDataset(name="communities", hypergraph=hypergraph)
    np.testing.assert_array_equal(HypergraphLabelSpreading().fit(dataset, y).label_distributions_, expected)
    samples = NodeSamples(hypergraph)
    chosen = HypergraphLabelSpreading().fit(samples[:10], truth[:10])
    np.testing.assert_array_equal(chosen.label_distributions_, expected)
    np.testing.assert_array_equal(chosen.predict_proba(samples[[7, 30]]), expected[[7, 30]])
    assert chosen.score(samples[10:], truth[10:]) == (expected.argmax(axis=1) == truth)[10:].mean()
    named = HypergraphLabelSpreading().fit(samples[:10], np.array(["even", "odd"])[truth[:10]])
    assert set(named.transduction_) == {"even", "odd"}
    grid = GridSearchCV(HypergraphLabelSpreading(), {"strength": [0.1, 1.0]}, cv=2, error_score="raise")
    assert grid.fit(samples, truth).best_score_ > 0.6
    with pytest.raises(DataError, match="labelled once"):
        HypergraphLabelSpreading().fit(samples[[1, 1]], [0, 1])
    with pytest.raises(DataError, match="a label per sample, 10"):
        HypergraphLabelSpreading().fit(samples[:10], [0, 1])


def test_the_name_is_public():
    assert "HypergraphLabelSpreading" in dir(edhnn) and inspect.getdoc(edhnn.HypergraphLabelSpreading)
    with pytest.raises(AttributeError, match="HypergraphLabelSpreadin"):
        _ = edhnn.HypergraphLabelSpreadin

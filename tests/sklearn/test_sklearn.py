"""The scikit-learn estimators: scikit-learn's own checks, its tools, and the models within."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import streamlearn as sl
from streamlearn.sklearn import StreamClassifier, StreamRegressor
from tests.support.members import brief


@pytest.mark.parametrize("estimator", [StreamClassifier(), StreamRegressor()], ids=brief)
def test_scikit_learn_checks(estimator: Any) -> None:
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    names: dict[str, list[str]] = {status: [] for status in ("passed", "failed", "skipped")}
    for result in results:
        names[result["status"]].append(result["check_name"])
    # As for SGDClassifier and SGDRegressor: one step with weight 2 is not two steps.
    assert names["failed"] == [
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ]
    assert names["skipped"] == ["check_array_api_input"]  # it needs an environment variable
    assert len(names["passed"]) > 40


@pytest.fixture(scope="module")
def binary() -> tuple[Any, Any]:
    X, y = make_classification(2000, 12, n_informative=6, random_state=1)
    return X, np.where(y == 1, "no", "yes")  # the greater label is seen first or second


def test_in_order_it_is_the_model(binary: Any) -> None:
    X, y = binary
    model = sl.LinearClassifier(seed=0)
    model.know_labels(["no", "yes"])
    model.learn_rows(X, y)
    found = StreamClassifier(shuffle=False).fit(X, y)
    np.testing.assert_array_equal(found.decision_function(X), model.score_rows(X))
    np.testing.assert_array_equal(found.coef_, model.coef(12)[None])
    parts = StreamClassifier()
    for rows in np.array_split(np.arange(len(y)), 7):
        parts.partial_fit(X[rows], y[rows])
    np.testing.assert_array_equal(parts.decision_function(X), found.decision_function(X))


@pytest.mark.parametrize("loss", [None, sl.losses.Softmax(), sl.losses.MulticlassHinge()])
@pytest.mark.parametrize("classes", [2, 3])
def test_scores_weights_and_labels_agree(loss: Any, classes: int) -> None:
    rule = None if loss is None else sl.rules.AdaGrad()
    X, codes = make_classification(
        600, 8, n_informative=6, n_classes=classes, class_sep=2.0, random_state=3
    )
    y = np.array(["c", "a", "b"])[codes]
    found = StreamClassifier(rule, loss, random_state=0).fit(X, y)
    assert found.classes_.tolist() == sorted(set(y))
    scores = found.decision_function(X)
    np.testing.assert_allclose(
        scores.reshape(len(y), -1), X @ found.coef_.T + found.intercept_, rtol=1e-9, atol=1e-9
    )
    assert (found.predict(X) == y).mean() > 0.7
    if isinstance(loss, sl.losses.MulticlassHinge):
        assert not hasattr(found, "predict_proba")
        return
    shares = found.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(found.classes_[shares.argmax(axis=1)], found.predict(X))


def test_labels_may_appear_later() -> None:
    X, y = load_iris(return_X_y=True)
    classifier = StreamClassifier().partial_fit(X[:50], y[:50])
    assert classifier.predict(X[:2]).tolist() == [0, 0]
    assert classifier.predict_proba(X[:2]).tolist() == [[1.0], [1.0]]
    classifier.partial_fit(X[50:], y[50:])
    assert classifier.classes_.tolist() == [0, 1, 2]
    assert classifier.predict_proba(X).shape == (150, 3)


@pytest.mark.parametrize("classes", [["a", "b"], ["a", "b", "c"]])
def test_declared_classes_without_rows_are_never_predicted(classes: list[str]) -> None:
    X = np.array([[1.0], [2.0]])
    classifier = StreamClassifier().partial_fit(X, np.array(["b", "b"]), classes=classes)
    assert classifier.predict(X).tolist() == ["b", "b"]
    np.testing.assert_array_equal(classifier.predict_proba(X).argmax(axis=1), [1, 1])
    np.testing.assert_allclose(classifier.predict_proba(X).sum(axis=1), 1.0)
    assert np.isfinite(classifier.decision_function(X)).all()
    assert classifier.coef_.shape == (1 if len(classes) == 2 else 3, 1)
    # its rows come later: as if they had been there from the start
    rest = np.array([[-1.0], [1.5]]), np.array(["a", "b"])
    whole = StreamClassifier(shuffle=False).partial_fit(
        np.concatenate([X, rest[0]]), np.concatenate([["b", "b"], rest[1]]), classes=classes
    )
    classifier.partial_fit(*rest)
    np.testing.assert_array_equal(classifier.decision_function(X), whole.decision_function(X))


def test_sparse_rows_are_learned_without_a_copy(
    binary: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = scipy.sparse.csr_matrix(binary[0]), binary[1]
    seen = []
    learn_rows = sl.LinearClassifier.learn_rows

    def record(model: Any, rows: Any, *arguments: Any) -> None:
        seen.append(rows)
        learn_rows(model, rows, *arguments)

    monkeypatch.setattr(sl.LinearClassifier, "learn_rows", record)
    dense = StreamClassifier(shuffle=False).fit(*binary).coef_
    seen.clear()
    found = StreamClassifier(shuffle=False).fit(X, y)
    assert [np.shares_memory(rows.data, X.data) for rows in seen] == [True]
    np.testing.assert_allclose(found.coef_, dense, rtol=1e-9)


def test_columns_of_a_frame_are_transformed_searched_and_calibrated() -> None:
    import pandas as pd  # noqa: PLC0415 - only here

    random = np.random.default_rng(5)
    X = pd.DataFrame(
        {"age": random.normal(40, 9, 1200), "city": random.choice(["Bern", "Rome", "Oslo"], 1200)}
    )
    y = (X["age"] + 20 * (X["city"] == "Rome") > 45).to_numpy()
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), ["age"]), ("texts", OneHotEncoder(), ["city"])]
    )
    pipeline = make_pipeline(columns, StreamClassifier(random_state=0))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.9
    rules = [sl.rules.DualAveraging(gamma=gamma) for gamma in (0.01, 1.0)]
    search = GridSearchCV(pipeline, {"streamclassifier__rule": rules}, cv=3).fit(X, y)
    assert search.best_params_["streamclassifier__rule"] in rules
    calibrated = CalibratedClassifierCV(pipeline, cv=3).fit(X, y)
    assert calibrated.score(X, y) > 0.9


def test_passes_approach_the_optimum(binary: Any) -> None:
    X, y = binary
    best = LogisticRegression(C=np.inf).fit(X, y)
    found = [StreamClassifier(passes=n, random_state=0).fit(X, y).coef_ for n in (1, 30)]
    distance = [np.linalg.norm(coef - best.coef_) for coef in found]
    assert distance[1] < distance[0]


def test_balanced_classes() -> None:
    X, y = make_classification(3000, 5, weights=[0.97], flip_y=0.0, random_state=2)
    plain, balanced = (
        StreamClassifier(class_weight=weight, random_state=0).fit(X, y).predict(X)[y == 1].mean()
        for weight in (None, "balanced")
    )
    assert balanced > plain
    with pytest.raises(ValueError, match="class_weight"):
        StreamClassifier(class_weight="balanced").partial_fit(X, y)


def test_regressor_is_the_model_in_order() -> None:
    X, y = make_regression(500, 6, noise=1.0, random_state=4)
    model = sl.LinearRegressor(seed=0)
    model.learn_rows(X, y)
    found = StreamRegressor(shuffle=False).fit(X, y)
    np.testing.assert_array_equal(found.predict(X), model.score_rows(X))
    np.testing.assert_array_equal(found.coef_, model.coef(6))
    assert found.intercept_ == model.intercept


def test_the_same_random_state_gives_the_same_order(binary: Any) -> None:
    first, second, other = (
        StreamClassifier(random_state=seed).fit(*binary).coef_.tolist() for seed in (1, 1, 2)
    )
    assert first == second != other


def test_what_is_not_fitted_has_no_weights() -> None:
    for name in ("coef_", "intercept_"):
        for estimator in (StreamClassifier(), StreamRegressor()):
            with pytest.raises(NotFittedError):
                getattr(estimator, name)


def test_passes_must_be_positive(binary: Any) -> None:
    with pytest.raises(ValueError, match="passes"):
        StreamClassifier(passes=0).fit(*binary)


@pytest.mark.parametrize("weight", [2.0, np.float64(0.5), np.array(3.0)])
def test_one_weight_is_that_of_all_rows(binary: Any, weight: Any) -> None:
    X, y = binary
    one = StreamClassifier(random_state=0).fit(X, y, sample_weight=weight)
    each = StreamClassifier(random_state=0).fit(X, y, sample_weight=np.full(len(y), float(weight)))
    np.testing.assert_array_equal(one.coef_, each.coef_)
    np.testing.assert_array_equal(one.intercept_, each.intercept_)


@pytest.mark.parametrize("classes", [2, 3])
def test_without_intercepts_they_are_zero(classes: int) -> None:
    X, y = np.eye(3)[np.arange(90) % 3], np.arange(90) % classes
    model = StreamClassifier(fit_intercept=False, random_state=0).fit(X, y)
    assert model.intercept_.tolist() == [0.0] * (1 if classes == 2 else classes)

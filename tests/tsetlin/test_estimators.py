"""Claims about the scikit-learn classifiers."""

from functools import cache
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from laconic.tsetlin import Fuzzy, include_bits
from laconic.tsetlin.estimators import CoalescedTsetlinClassifier, TsetlinClassifier

KINDS = [TsetlinClassifier, CoalescedTsetlinClassifier]
BOTH = pytest.mark.parametrize("kind", KINDS)
IRIS, SPECIES = load_iris(return_X_y=True)
NAMES = load_iris().target_names
XOR = np.random.default_rng(0).integers(0, 2, (400, 6))
PARITY = XOR[:, 0] ^ XOR[:, 1]


@cache
def digits() -> tuple[Any, Any]:
    """500 images [n, 8, 8] of values 0..16, shuffled: they come ordered by writer."""
    bunch, chosen = load_digits(), np.random.default_rng(0).permutation(500)
    return bunch.images[chosen], bunch.target[chosen]


def small(kind: type, **settings: Any) -> Any:
    return kind(**{"n_clauses": 20, "epochs": 5, "random_state": 0, **settings})


FUZZY = Fuzzy(failures=3, literals=8)


@parametrize_with_checks([small(kind, fuzzy=fuzzy) for kind in KINDS for fuzzy in (None, FUZZY)])
def test_keeps_scikit_learns_conventions(estimator, check):
    check(estimator)


@BOTH
def test_defaults_classify_iris_well(kind):
    assert cross_val_score(kind(random_state=0), IRIS, SPECIES, cv=5).mean() > 0.92


@BOTH
def test_ten_fuzzy_clauses_a_class_classify_iris_well(kind):
    n_clauses = 10 if kind is TsetlinClassifier else 30
    classifier = kind(n_clauses, fuzzy=Fuzzy(failures=4, literals=8), random_state=0)
    assert cross_val_score(classifier, IRIS, SPECIES, cv=5).mean() > 0.92


@BOTH
def test_fuzzy_clauses_learn_images_and_are_read_as_rules(kind):
    images, labels = digits()
    n_clauses = 30 if kind is TsetlinClassifier else 300
    classifier = small(kind, n_clauses=n_clauses, patch=(4, 4), fuzzy=FUZZY).fit(images[:400], labels[:400])
    assert classifier.score(images[400:], labels[400:]) > 0.8
    assert "on some patch: at least " in str(classifier.rules_[0])


@BOTH
def test_machines_are_balanced_unless_fuzzy_clauses_have_few_examples_a_class(kind):
    few = slice(None, None, 3)  # 50 of three species
    for fuzzy, chosen, balanced, expected in (
        (None, few, None, True),
        (FUZZY, few, None, False),
        (FUZZY, slice(None), None, True),
        (FUZZY, few, True, True),
        (None, few, False, False),
    ):
        classifier = small(kind, fuzzy=fuzzy, balanced=balanced).fit(IRIS[chosen], SPECIES[chosen])
        assert (classifier.machine_.rivalry is not None) == expected


@BOTH
def test_fuzzy_settings_that_are_none_are_refused(kind):
    with pytest.raises(ValueError, match=r"fuzzy is 3; give Fuzzy\(failures, literals\)"):
        small(kind, fuzzy=3).fit(IRIS, SPECIES)


@BOTH
def test_learns_xor_from_bits_as_they_are(kind):
    classifier = small(kind, epochs=20).fit(XOR[:300], PARITY[:300])
    assert classifier.booleanizer_ is None
    assert classifier.score(XOR[300:], PARITY[300:]) == 1


@BOTH
def test_same_seed_gives_same_machine_for_any_number_of_jobs(kind):
    one, many = (small(kind, n_jobs=n).fit(IRIS, SPECIES) for n in (1, 3))
    assert (include_bits(one.machine_) == include_bits(many.machine_)).all()
    assert (one.machine_.weights == many.machine_.weights).all()
    assert (one.decision_function(IRIS) == many.decision_function(IRIS)).all()


@BOTH
def test_another_seed_gives_another_machine(kind):
    one, other = (small(kind, random_state=seed).fit(IRIS, SPECIES) for seed in (0, 1))
    assert (include_bits(one.machine_) != include_bits(other.machine_)).any()


@BOTH
def test_partial_fit_keeps_what_was_learnt(kind):
    classifier = small(kind, epochs=20).fit(XOR, PARITY)
    assert classifier.partial_fit(XOR[:5], PARITY[:5]).score(XOR, PARITY) == 1


@BOTH
def test_partial_fit_learns_classes_that_come_later(kind):
    classifier = small(kind)
    for _ in range(10):
        for label in range(3):
            others = np.flatnonzero(SPECIES - label)
            classifier.partial_fit(IRIS[others], SPECIES[others], classes=[0, 1, 2])
    assert classifier.score(IRIS, SPECIES) > 0.85


@BOTH
def test_string_labels_work_in_a_pipeline_and_a_grid_search(kind):
    pipeline = make_pipeline(StandardScaler(), small(kind))
    step = pipeline.steps[-1][0]
    search = GridSearchCV(pipeline, {f"{step}__n_clauses": [10, 20]}, cv=2).fit(IRIS, NAMES[SPECIES])
    assert set(search.predict(IRIS)) <= set(NAMES)
    assert search.score(IRIS, NAMES[SPECIES]) > 0.85


@BOTH
def test_image_stacks_and_rows_with_an_image_shape_are_the_same(kind):
    images, labels = digits()
    settings = {"patch": (4, 4), "epochs": 1}
    stack = small(kind, **settings).fit(images, labels)
    rows = small(kind, image_shape=(8, 8), **settings).fit(images.reshape(500, 64), labels)
    assert stack.n_features_in_ == rows.n_features_in_ == 64
    assert (stack.decision_function(images) == rows.decision_function(images.reshape(500, 64))).all()
    assert (stack.predict(images) == rows.predict(images)).all()


def test_images_may_have_channels():
    images, labels = digits()
    coloured = np.stack([images, 16 - images], axis=3)
    classifier = small(TsetlinClassifier, patch=(3, 3), epochs=1).fit(coloured, labels)
    assert classifier.machine_.shape.layers == 2 * classifier.machine_.shape.levels
    assert classifier.predict(coloured).shape == (500,)
    assert any("channel 1" in literal for rule in classifier.rules_ for literal in rule.literals)


@BOTH
def test_a_convolution_learns_digits(kind):
    images, labels = digits()
    classifier = small(kind, n_clauses=300, patch=(5, 5), epochs=10).fit(images[:400], labels[:400])
    assert classifier.score(images[400:], labels[400:]) > 0.85


@BOTH
def test_one_class_only_is_always_predicted(kind):
    classifier = small(kind).fit(IRIS, np.full(len(IRIS), "iris"))
    assert set(classifier.predict(IRIS)) == {"iris"}


@BOTH
def test_two_classes_have_one_decision_value_that_agrees_with_predict(kind):
    classifier = small(kind).fit(XOR, PARITY)
    assert classifier.decision_function(XOR).shape == (400,)
    assert ((classifier.decision_function(XOR) > 0) == classifier.predict(XOR)).all()


@BOTH
def test_a_stored_classifier_predicts_and_trains_on_the_same(kind, tmp_path):
    classifier = small(kind).fit(IRIS, SPECIES)
    joblib.dump(classifier, tmp_path / "classifier")
    copy = joblib.load(tmp_path / "classifier")
    for each in (classifier, copy):
        each.partial_fit(IRIS, SPECIES)
    assert (classifier.decision_function(IRIS) == copy.decision_function(IRIS)).all()


def test_a_clone_forgets_what_was_learnt():
    assert not hasattr(clone(small(TsetlinClassifier).fit(IRIS, SPECIES)), "machine_")


@BOTH
def test_on_epoch_gets_an_estimator_that_predicts(kind):
    seen = []
    watched = small(kind, on_epoch=lambda estimator, epoch: seen.append((epoch, estimator.score(IRIS, SPECIES))))
    unwatched = small(kind).fit(IRIS, SPECIES)
    assert (watched.fit(IRIS, SPECIES).decision_function(IRIS) == unwatched.decision_function(IRIS)).all()
    assert [epoch for epoch, _ in seen] == [1, 2, 3, 4, 5]
    assert seen[-1][1] == watched.score(IRIS, SPECIES)


@BOTH
def test_rules_are_worded_in_the_users_names(kind):
    classifier = small(kind).fit(IRIS, NAMES[SPECIES])
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    named = classifier.rules(IRIS, NAMES[SPECIES], feature_names=names)
    assert all(any(name in literal for name in names) for rule in named for literal in rule.literals)
    assert all("x" in literal for rule in classifier.rules_ for literal in rule.literals)
    classifier.feature_names_in_ = np.array(names, object)
    assert [str(rule) for rule in classifier.rules_] == [str(rule) for rule in named]


def test_a_rules_support_and_precision_are_those_of_its_text():
    classifier = small(TsetlinClassifier, booleanizer=None).fit(XOR, PARITY)
    rules = [rule for rule in classifier.rules(XOR, PARITY) if rule.support]
    assert rules
    for rule in rules:
        fires = np.ones(len(XOR), bool)
        for literal in rule.literals:
            fires &= XOR[:, int(literal[-1])] == (not literal.startswith("NOT "))
        assert rule.support == fires.mean()
        assert rule.precision == ((PARITY[fires] == rule.label) == rule.is_for).mean()


def test_names_that_do_not_fit_the_features_are_refused():
    classifier = small(TsetlinClassifier, epochs=1).fit(XOR, PARITY)
    with pytest.raises(ValueError, match="6 names"):
        classifier.rules(XOR, PARITY, feature_names=["a", "b"])


def test_bits_of_any_scikit_learn_transformer_are_named_by_it():
    encoder = OneHotEncoder(dtype=np.uint8, sparse_output=False)
    classifier = small(TsetlinClassifier, booleanizer=encoder).fit(XOR, PARITY)
    assert classifier.score(XOR, PARITY) > 0.9
    assert all(
        literal.removeprefix("NOT ")[:3] in {f"x{k}_" for k in range(6)} for literal in classifier.rules_[0].literals
    )


def test_rules_of_many_samples_are_weighed_on_at_most_two_thousand():
    x = np.tile(XOR, (11, 1))
    classifier = small(TsetlinClassifier, epochs=1).fit(x, x[:, 0])
    assert classifier._evidence.n_examples <= 2000


@pytest.mark.parametrize(
    ("settings", "x", "message"),
    [
        ({"booleanizer": None}, IRIS, "boolean"),
        ({"booleanizer": None}, np.full((150, 3), 2), "0"),
        ({"booleanizer": "median"}, IRIS, "median"),
        ({}, np.where(IRIS > 7, np.nan, IRIS), "NaN"),
        ({}, np.zeros((150, 3, 3)), "dim"),
        ({"patch": (2, 2)}, IRIS, "image_shape"),
        ({"patch": 2, "image_shape": (2, 2)}, IRIS, "patch"),
        ({"patch": (2, 2), "image_shape": (2, 3)}, IRIS, "image_shape"),
        ({"patch": (3, 2), "image_shape": (2, 2)}, IRIS, "patch"),
        ({"n_clauses": 0}, IRIS, "n_clauses"),
        ({"n_clauses": 2.5}, IRIS, "n_clauses"),
        ({"specificity": 0.5}, IRIS, "specificity"),
        ({"threshold": 0}, IRIS, "threshold"),
        ({"epochs": -1}, IRIS, "epochs"),
    ],
)
@BOTH
def test_bad_input_is_one_clear_error(kind, settings, x, message):
    with pytest.raises(ValueError, match=message):
        small(kind, **settings).fit(x, SPECIES)


@BOTH
def test_a_label_outside_the_classes_is_named(kind):
    classifier = small(kind)
    with pytest.raises(ValueError, match=r"\[2\]"):
        classifier.partial_fit(IRIS, SPECIES, classes=[0, 1])
    assert classifier.partial_fit(IRIS, SPECIES, classes=[0, 1, 2]).predict(IRIS).shape == (150,)
    with pytest.raises(ValueError, match="classes"):
        small(kind).partial_fit(IRIS, SPECIES).partial_fit(IRIS, SPECIES, classes=[0, 1])


def test_images_of_another_size_are_refused():
    images, labels = digits()
    classifier = small(TsetlinClassifier, patch=(4, 4), epochs=1).fit(images, labels)
    with pytest.raises(ValueError, match=r"\(8, 8\)"):
        classifier.predict(images[:, :7])

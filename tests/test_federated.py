import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.utils.estimator_checks import parametrize_with_checks

from clinics import write_clinics
from laconic import FederatedClassifier

SMALL = {"n_clauses": 20, "epochs": 3, "threshold": 20}


# All of them, none left out: without groups there is one client, and the federation is a classifier like any other.
@parametrize_with_checks([FederatedClassifier(rounds=2, settings={"n_clauses": 60, "epochs": 20}, random_state=0)])
def test_is_a_scikit_learn_classifier(estimator, check) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    x, y = load_digits(return_X_y=True)
    owners = np.array(["ann", "bob", "eve"])[np.digitize(y, [4, 7])]  # ann has 0 to 3, bob 4 to 6, eve the rest
    return train_test_split(x, y, owners, random_state=0)


def test_each_row_is_predicted_by_its_own_client(digits) -> None:
    x, x_test, y, y_test, owners, owners_test = digits
    alone = FederatedClassifier("local-tm", rounds=3, settings=SMALL, random_state=0).fit(x, y, groups=owners)
    assert alone.score(x_test, y_test, groups=owners_test) > 0.9
    by_bob = alone.predict(x_test, groups=np.full(len(x_test), "bob"))
    assert np.isin(by_bob, [4, 5, 6]).mean() > 0.8  # he knows no others, but may still vote for nobody
    assert all(sum(sent.values()) == 0 for sent in alone.traffic_)


def test_sharing_costs_bytes_and_tells_them_each_round(digits) -> None:
    x, x_test, y, y_test, owners, _ = digits
    heard = []
    shared = FederatedClassifier(
        "fedtm", rounds=3, settings=SMALL, random_state=0, on_round=lambda n, sent: heard.append((n, sent))
    )
    shared.fit(x, y, groups=owners)
    assert [number for number, _ in heard] == [1, 2, 3]
    assert all(sent["up"] > 0 < sent["down"] for _, sent in heard)
    assert [sent for _, sent in heard] == shared.traffic_[1:]
    assert shared.score(x_test, y_test) > 0.3  # all vote with one and the same machine


def test_networks_get_values_and_end_with_a_model_each(digits) -> None:
    x, x_test, y, y_test, owners, owners_test = digits
    settings = {"training.rate": 0.1}  # a setting in a group, by the key that `laconic list separate` names
    network = FederatedClassifier("separate", rounds=5, settings=settings, random_state=0).fit(x, y, groups=owners)
    assert network.algorithm_.training.rate == 0.1
    assert network.score(x_test, y_test, groups=owners_test) > 0.9


def test_images_keep_their_shape() -> None:
    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8)
    groups = np.arange(len(images)) % 2
    federation = FederatedClassifier("local-tm", rounds=1, settings=SMALL | {"patch": 4}, random_state=0)
    federation.fit(images[::4], labels[::4], groups[::4])
    assert federation.states_[0].machine.shape.patch_height == 4
    with pytest.raises(ValueError, match=r"images are \(4, 8\) but \(8, 8\) was expected"):
        federation.predict(images[:2, :4])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "fedtmm"}, r'unknown method "fedtmm"\.  Closest: fedtm'),
        ({"rounds": 0}, "rounds = 0 must be at least 1"),
        ({"rounds": -1}, "rounds = -1 must be at least 1"),
        ({"validation": 1.0}, r"data.validation = 1\.0 must be"),
        ({"budget": "few"}, '"few" is no number of bytes'),
        ({"settings": {"n_clauses": 0}}, "n_clauses = 0 must be at least 1"),
        ({"settings": {"epochs": "two"}}, 'method.epochs = "two" must be a whole number'),
        ({"settings": {"n_claus": 5}}, r"unknown key method.n_claus  Did you mean n_clauses\?"),
        ({"booleanizer": "magic"}, "booleanizer is 'magic'"),
        ({"unseen": "guess"}, "unseen is 'guess'; 'refuse' or 'vote' was expected"),
    ],
)
def test_bad_settings_are_refused_by_name(change, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        FederatedClassifier(**change).fit(np.eye(4), [0, 1, 0, 1])


def test_settings_of_a_group_may_come_as_a_mapping() -> None:
    nested = FederatedClassifier("separate", rounds=1, settings={"training": {"rate": 0.25}}, random_state=0)
    assert nested.fit(np.eye(4), [0, 1, 0, 1]).algorithm_.training.rate == 0.25


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ("north", "groups is 'north'; the client of each of 4 rows was expected"),
        (["a", None, "a", "b"], "groups has None in row 1"),
        ([0.0, 1.0, np.nan, 1.0], "groups has nan in row 2"),
    ],
)
def test_a_row_without_a_client_is_named(groups, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        FederatedClassifier(rounds=1, settings=SMALL).fit(np.eye(4, dtype=int), [0, 1, 0, 1], groups)


def test_chances_add_up_and_agree_with_predictions(digits) -> None:
    x, x_test, y, _, owners, owners_test = digits
    for method in ("fedtm", "clausepool"):
        fitted = FederatedClassifier(method, rounds=2, settings={"n_clauses": 20, "epochs": 3}, random_state=0)
        fitted.fit(x, y, groups=owners)
        chances = fitted.predict_proba(x_test, owners_test)
        assert np.allclose(chances.sum(axis=1), 1)
        assert (fitted.classes_[chances.argmax(axis=1)] == fitted.predict(x_test, owners_test)).all()


def test_a_client_has_a_score_and_a_model_of_its_own_that_can_be_saved(digits, tmp_path) -> None:
    import laconic

    x, x_test, y, y_test, owners, owners_test = digits
    fitted = FederatedClassifier("clausepool", rounds=2, settings={"n_clauses": 20, "epochs": 3}, random_state=0)
    fitted.fit(x, y, groups=owners)
    scores = fitted.scores_by_client(x_test, y_test, owners_test)
    assert set(scores) == {"ann", "bob", "eve"}
    fitted.client_model("bob").save(tmp_path / "bob.safetensors")
    mine = owners_test == "bob"
    predicted = laconic.load(tmp_path / "bob.safetensors").predict(x_test[mine])
    assert np.mean(predicted == y_test[mine].astype(str)) == scores["bob"]


def test_a_budget_is_kept(digits) -> None:
    x, _, y, _, owners, _ = digits
    fitted = FederatedClassifier("fedtm", rounds=2, budget="4kB", settings={"epochs": 2}, random_state=0)
    fitted.fit(x, y, groups=owners)
    assert fitted.algorithm_.n_clauses < 100
    assert all(sum(sent.values()) <= 3 * 4000 for sent in fitted.traffic_)


def test_groups_must_fit_the_rows_and_be_known_to_predict(digits) -> None:
    x, _, y, _, owners, _ = digits
    with pytest.raises(ValueError, match=r"groups has 2 entries for \d+ rows"):
        FederatedClassifier(rounds=1, settings=SMALL).fit(x, y, groups=["a", "b"])
    fitted = FederatedClassifier("local-tm", rounds=1, settings=SMALL, random_state=0).fit(x[:90], y[:90], owners[:90])
    with pytest.raises(ValueError, match=r"groups has \['zoe'\], who took no part"):
        fitted.predict(x[:1], groups=["zoe"])


# ---------------------------------------------------------------- frames with text and gaps
@pytest.fixture(scope="module")
def clinics(tmp_path_factory: pytest.TempPathFactory):
    pandas = pytest.importorskip("pandas")
    path = write_clinics(tmp_path_factory.mktemp("frames") / "clinics.csv", 200)
    return pandas.read_csv(path, keep_default_na=False, na_values=["", "NA"])


def test_a_frame_with_text_and_gaps_gives_rules_in_its_words(clinics) -> None:
    x = clinics[["age", "dose", "eyes"]]
    federation = FederatedClassifier("local-tm", rounds=2, settings=SMALL, random_state=0)
    federation.fit(x, clinics.finding, groups=clinics.clinic)
    assert federation.score(x, clinics.finding, groups=clinics.clinic) > 0.8
    assert federation.feature_names_in_.tolist() == ["age", "dose", "eyes"]
    words = "\n".join(map(str, federation.rules("north", x, clinics.finding)))
    assert "eyes is" in words
    model = federation.client_model("north")
    assert model.predict(x).tolist() == federation.predict(x, groups=np.full(len(x), "north")).tolist()
    with pytest.raises(ValueError, match="column eyes holds 'red' in row 0"):
        federation.predict(x.head(1).assign(eyes="red"), groups=["north"])


def test_rows_of_a_group_never_seen_are_refused_or_voted_on_by_all(clinics) -> None:
    x, owners = clinics[["age", "dose", "eyes"]], np.full(len(clinics), "west")
    federation = FederatedClassifier("local-tm", rounds=1, settings=SMALL, random_state=0)
    federation.fit(x, clinics.finding, groups=clinics.clinic)
    with pytest.raises(ValueError, match=r"\['west'\], who took no part in fit; .*unseen=\"vote\""):
        federation.predict(x, groups=owners)
    federation.set_params(unseen="vote")
    assert federation.predict(x, groups=owners).tolist() == federation.predict(x).tolist()
    np.testing.assert_allclose(federation.predict_proba(x, groups=owners), federation.predict_proba(x))


def test_frames_of_polars_and_columns_called_by_numbers_give_the_same(clinics) -> None:
    polars = pytest.importorskip("polars")
    x = clinics[["age", "dose", "eyes"]]
    frames = [x, polars.from_pandas(x), x.set_axis([0, 1, 2], axis=1)]
    fitted = [
        FederatedClassifier("local-tm", rounds=1, settings=SMALL, random_state=0).fit(
            frame, clinics.finding, groups=clinics.clinic
        )
        for frame in frames
    ]
    expected = fitted[0].predict(x, groups=clinics.clinic)
    for one, frame in zip(fitted, frames, strict=True):
        assert (one.predict(frame, groups=clinics.clinic) == expected).all()
    shuffled = x[["eyes", "age", "dose"]].assign(other=1)  # columns are taken by name
    assert (fitted[0].predict(shuffled, groups=clinics.clinic) == expected).all()
    assert fitted[2].feature_names_in_.tolist() == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda x, y: (x, np.where(y == "ill", y, None)), "y has None in row"),
        (lambda x, y: (x, np.where(y == "ill", 1.0, np.nan)), "y has nan in row"),
        (lambda x, y: (x.head(0), y[:0]), "the frame has no rows"),
        (lambda x, y: (x.set_axis(["a", "a", "b"], axis=1), y), "more than one column called a"),
        (
            lambda x, y: (x.assign(seen="2024-01-05"), y),
            "column seen holds '2024-01-05' in row 0 .*make numbers of dates",
        ),
    ],
)
def test_frames_and_labels_that_cannot_be_learned_from_are_refused(clinics, spoil, words: str) -> None:
    x, y = spoil(clinics[["age", "dose", "eyes"]], clinics.finding.to_numpy())
    with pytest.raises(ValueError, match=words):
        FederatedClassifier(rounds=1, settings=SMALL).fit(x, y)


def test_groups_pass_through_cross_validation(digits) -> None:
    x, y, owners = (part[:200] for part in (digits[0], digits[2], digits[4]))
    federation = FederatedClassifier("local-tm", rounds=1, settings=SMALL, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = clone(federation).set_fit_request(groups=True).set_score_request(groups=True)
        scores = cross_val_score(routed, x, y, params={"groups": owners}, cv=2)
    by_hand = [
        federation.fit(x[train], y[train], owners[train]).score(x[test], y[test], owners[test])
        for train, test in StratifiedKFold(2).split(x, y)
    ]
    assert scores.tolist() == by_hand

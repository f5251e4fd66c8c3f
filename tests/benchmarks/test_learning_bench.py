"""The learning benchmark measures what it says: tables, splits, scores, cache and page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.learning import __main__ as command
from benchmarks.learning import census, ours, run, table
from benchmarks.learning.cache import Cache, Record
from benchmarks.learning.data import Table, encoded, split
from benchmarks.learning.data import table as load
from benchmarks.learning.jobs import PEER_GRID, Job, Plan
from benchmarks.learning.peers import public_reach
from benchmarks.learning.tasks import BY_NAME, TASKS, captured, chosen, inertia, problem, score
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from sulq import Category, InvalidQuery, Number


class TooNoisy(Exception):
    """By its name, as the product's."""


# --- tables ---------------------------------------------------------------------------------------


def test_the_census_repeats_itself_and_lies_strictly_within_its_bounds() -> None:
    frame = census.generate(3_000)
    assert frame.equals(census.generate(3_000))
    assert not frame.equals(census.generate(3_000, seed=1))
    for column in census.COLUMNS:
        values = frame[column.name]
        if isinstance(column, Number):
            low, high = column.range
            assert low <= values.min() and values.max() < high
        else:
            assert set(values) <= set(column.values or ())
    assert (frame["income"] == "high").mean() == pytest.approx(0.24, abs=0.001)


def test_the_census_has_structure_to_learn() -> None:
    """Marriage goes with age, pay with schooling and marriage."""
    frame = census.generate(5_000)
    rich = frame["income"] == "high"
    married = frame["marital"] == "married"
    assert frame["age"][married].mean() > frame["age"][~married].mean() + 5
    assert rich[married].mean() > 2 * rich[~married].mean()
    assert frame["school_years"][rich].mean() > frame["school_years"][~rich].mean() + 1
    assert (frame["gain"] == 0).mean() > 0.85


def test_encoding_scales_by_bounds_and_spreads_categories() -> None:
    columns = (Number("n", 10, 20), Category("c", ("x", "y", "z")))
    frame = census.pd.DataFrame({"n": [10, 15], "c": ["z", "x"]})
    data = Table("t", frame, columns, Category("l", ("a", "b")))
    assert encoded(data, ["n", "c"], frame).tolist() == [[0, 0, 0, 1], [0.5, 1, 0, 0]]


def test_the_census_has_fifty_coordinates_and_a_public_reach() -> None:
    wide = problem("pca-wine", 0)
    assert wide.x.shape[1] == 13
    centre, reach = public_reach(wide)
    assert np.linalg.norm(wide.x - centre, axis=1).max() <= reach
    assert sum(len(c.values or ()) for c in census.CATEGORIES) + len(census.NUMBERS) == 50


def test_splits_are_disjoint_stratified_and_their_own_for_each_repeat() -> None:
    strata = np.repeat([0, 1], [90, 10])
    train, test = split(strata, 0.3, 4)
    assert sorted([*train, *test]) == list(range(100))
    assert sorted(strata[train]) != list(strata[train]), "classes that lie in rows are mixed"
    assert [int((strata[test] == value).sum()) for value in (0, 1)] == [27, 3]
    assert split(strata, 0.3, 4)[1].tolist() == test.tolist() != split(strata, 0.3, 5)[1].tolist()


def test_another_table_has_another_fingerprint() -> None:
    wine = load("wine")
    changed = wine.frame.copy()
    changed.iloc[3, 2] += 0.01
    assert replace(wine, frame=changed).fingerprint != wine.fingerprint
    assert replace(wine, columns=wine.columns[:-1]).fingerprint != wine.fingerprint


# --- scores ---------------------------------------------------------------------------------------


def test_inertia_is_scikit_learns() -> None:
    given = problem("kmeans-wine", 1)
    fitted = KMeans(3, n_init=1, random_state=0).fit(given.x)
    assert inertia(given.x, fitted.cluster_centers_) == pytest.approx(fitted.inertia_)
    assert score(given, fitted.cluster_centers_) >= 1 - 1e-6
    assert score(given, given.x.mean(axis=0)[None]) == pytest.approx(given.floor)


def test_captured_is_one_for_the_true_components_whatever_their_scale() -> None:
    given = problem("pca-wine", 1)
    found = PCA(2).fit(given.x).components_
    assert score(given, found) == pytest.approx(1)
    assert score(given, np.array([[3.0], [0.1]]) * found) == pytest.approx(1)
    assert score(given, np.eye(13)[:2]) < 0.9


def test_the_floor_of_pca_is_what_random_subspaces_capture() -> None:
    given = problem("pca-wine", 1)
    random = np.random.default_rng(0)
    tried = [score(given, random.normal(size=(2, 13))) for _ in range(2_000)]
    deviation = np.std(tried) / len(tried) ** 0.5
    assert abs(np.mean(tried) - given.floor) < 5 * deviation  # false alarm below 1e-6


def test_captured_adds_the_moments_of_an_orthonormal_basis() -> None:
    assert captured(np.eye(3)[:2], np.diag([5.0, 3.0, 1.0])) == pytest.approx(8)


def test_accuracy_and_r_squared() -> None:
    given = problem("classify-wine", 0)
    actual = given.codes(given.test)
    assert score(given, actual) == 1
    assert score(given, np.full(len(actual), -1)) == 0
    assert 0.3 < given.floor < 0.5
    number = problem("regress-diabetes", 0)
    truth = number.codes(number.test)
    assert score(number, truth) == 1
    assert score(number, np.full(len(truth), truth.mean())) == pytest.approx(0)
    far = score(number, np.where(truth > truth.mean(), 1e9, -1e9))
    assert -5 < far < 1, "predictions are cut to the public bounds"


def test_predictions_are_read_by_their_declared_values() -> None:
    label = Category("l", ("no", "yes"))
    assert ours.codes_of(label, ["yes", "no", "perhaps"]).tolist() == [1, 0, -1]
    numbers = Category("l", (3, 7))
    assert ours.codes_of(numbers, np.array([7, 3])).tolist() == [1, 0]


# --- jobs, cache, runs ----------------------------------------------------------------------------


def test_the_plan_tunes_the_peer_and_never_the_product() -> None:
    jobs = list(Plan([BY_NAME["classify-wine"]], ("1",), 1).jobs())
    assert len([job for job in jobs if job.side == "peer"]) == 30
    assert len([job for job in jobs if job.side == "peer"]) == sum(
        len(settings) for settings in PEER_GRID["classify"].values()
    )
    assert {job.setting for job in jobs if job.side == "ours"} == {()}
    assert {job.promise for job in jobs if job.side == "ours"} == {"add-remove", "replace", "pure"}


def test_tasks_are_chosen_by_name_kind_or_table() -> None:
    assert [t.name for t in chosen(["classify-wine"], TASKS)] == ["classify-wine"]
    assert {t.kind for t in chosen(["wine"], TASKS)} == {"classify", "kmeans", "pca"}
    assert {t.table for t in chosen(["regress"], TASKS)} == {"diabetes", "census"}
    with pytest.raises(SystemExit, match="no task"):
        chosen(["vine"], TASKS)


def test_the_cache_continues_and_forgives_a_torn_line(tmp_path: Path) -> None:
    job = Job("classify-wine", "ours", "NaiveBayes", 3, "0.1", "pure", (("depth", 2),))
    cache = Cache(tmp_path)
    cache.add(Record(job, "v1", 0.5, 1.25))
    failed = replace(job, repeat=4)
    cache.add(Record(failed, "v1", None, error="ValueError: no"))
    with cache.path.open("a") as file:
        file.write('{"task": "cla')
    again = Cache(tmp_path)
    assert again.has(job, "v1") and not again.has(job, "v2")
    assert not again.has(failed, "v1"), "a failure is tried again"
    again.add(Record(failed, "v1", None, error="TimeoutError: no fit within 20 s"))
    assert again.has(failed, "v1"), "but not what took too long"
    again.add(Record(failed, "v1", 0.75))
    assert Cache(tmp_path).records[failed, "v1"].score == 0.75
    assert (tmp_path / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize(
    ("error", "expected"),
    [(TooNoisy("noise"), (True, "")), (InvalidQuery("bad"), (False, "InvalidQuery: bad"))],
)
def test_a_refusal_scores_as_the_floor_and_a_failure_not_at_all(
    error: Exception, expected: tuple[bool, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(run, "result", fails)
    monkeypatch.setattr(ours, "version", lambda model: "v")
    found = run.done(Job("kmeans-wine", "ours", "KMeans", 0, "1", "replace"), None)
    assert (found.refused, found.error) == expected
    assert found.score == (problem("kmeans-wine", 0).floor if found.refused else None)


def test_an_absent_estimator_is_reported_and_its_jobs_left_out() -> None:
    jobs = [Job("classify-wine", side, "Absent", 0, "1") for side in ("ours", "peer")]
    there, missing = command.split_off_missing(jobs)
    assert [job.side for job in there] == ["peer"]
    assert missing == ["Absent: sulq.learn has no Absent"]


def test_rewording_keeps_the_version_and_recoding_changes_it(tmp_path: Path) -> None:
    path = tmp_path / "code.py"
    said = []
    for text in ('"""A."""\nx = 1  # a\n', '"""B."""\n\nx = 1\n', '"""A."""\nx = 2\n'):
        path.write_text(text)
        said.append(ours.meaning(path))
    assert said[0] == said[1] != said[2]


# --- the page -------------------------------------------------------------------------------------


def records(task: str, side: str, scores: list[float], **more: str) -> list[Record]:
    model = more.pop("model", "")
    jobs = [Job(task, side, model, k, **more) for k in range(len(scores))]
    return [Record(job, "v", score) for job, score in zip(jobs, scores, strict=True)]


def test_the_page_takes_the_best_of_each_column_and_says_who_leads() -> None:
    known = {"eps": "1"}
    found = [
        *records("classify-wine", "floor", [0.4, 0.4]),
        *records("classify-wine", "peer", [0.6, 0.62], model="GaussianNB", **known),
        *records("classify-wine", "peer", [0.7, 0.72], model="RandomForestClassifier", **known),
        *records("classify-wine", "ours", [0.9, 0.92], model="NaiveBayes", promise="pure", **known),
        *records("kmeans-wine", "peer", [1.5, 1.5], model="KMeans", **known),
        *records("kmeans-wine", "ours", [3.0, 3.0], model="KMeans", promise="replace", **known),
    ]
    page = table.document(found, ["SVD: sulq.learn has no SVD"])
    few = "(2 repeats)"
    line = f"| wine | 1 | 0.400 | 0.710 ± 0.010 forest {few} | – | – | – | 0.910 ± 0.010 NB {few} |"
    assert line in page
    assert "| ours, pure | 1 | 0 | 0 | – |" in page
    assert "| ours, replace | 0 | 0 | 1 | kmeans wine at 1 (1.500) |" in page
    assert "- SVD: sulq.learn has no SVD" in page


def test_a_method_with_fewer_repeats_does_not_win_by_luck() -> None:
    one = records("classify-wine", "peer", [0.99], model="GaussianNB", eps="1")
    many = records("classify-wine", "peer", [0.5] * 3, model="RandomForestClassifier", eps="1")
    best = table.best(table.summaries([*one, *many]))
    assert best is not None and best.job.model == "RandomForestClassifier"


def test_one_diverging_fit_does_not_spoil_a_median() -> None:
    given = records("regress-diabetes", "peer", [0.1, 0.2, 0.3, -1e9], eps="1")
    assert table.summary(given).value == pytest.approx(0.15)


def test_the_classifier_counts_as_ours_and_has_its_own_column() -> None:
    known = {"eps": "1", "promise": "replace"}
    found = [
        *records("classify-wine", "ours", [0.5, 0.5], model="NaiveBayes", **known),
        *records("classify-wine", "ours", [0.9, 0.9], model="Classifier", **known),
    ]
    (row,) = table.rows(table.summaries(found), [BY_NAME["classify-wine"]], ["1"])
    values = {name: cell.value for name, cell in row.cells.items() if cell}
    assert values == {"replace": 0.9, "choice replace": 0.9}

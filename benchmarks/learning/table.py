"""Records become summaries, and summaries a table for the terminal or the documents."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table as Screen

from benchmarks.learning.cache import Record
from benchmarks.learning.jobs import EPSILONS, Job
from benchmarks.learning.tasks import BY_NAME, KINDS, TASKS, Task

SHORT = {
    "LogisticRegression": "LR",
    "LinearDiscriminant": "LD",
    "LinearSVC": "SVC",
    "Perceptron": "perceptron",
    "DecisionTree": "tree",
    "NaiveBayes": "NB",
    "Classifier": "auto",
    "GaussianNB": "NB",
    "DecisionTreeClassifier": "tree",
    "RandomForestClassifier": "forest",
    "RandomForest": "forest",
}
DASH = "–"
USUAL = 20
"""Repeats; a cell with fewer says so."""


@dataclass(frozen=True, slots=True)
class Summary:
    """All repeats of one method. `value` is their mean; for R² their median."""

    job: Job  # of any repeat
    value: float
    error: float
    count: int
    refused: int
    seconds: float

    @property
    def task(self) -> Task:
        return BY_NAME[self.job.task]

    @property
    def text(self) -> str:
        name = SHORT.get(self.job.model, "") if self.task.kind == "classify" else ""
        told = number(self.value)
        if self.job.side != "floor":
            told += f" ± {number(self.error)}"
        refused = f", {self.refused} of {self.count} refused" if self.refused else ""
        fewer = (
            f" ({self.count} repeats)" if self.job.side != "floor" and self.count < USUAL else ""
        )
        return f"{told} {name}".strip() + fewer + refused


def number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 100 else f"{value:.1e}"


def summary(records: Sequence[Record]) -> Summary:
    """Mean with its standard error; R² has tails that only a median survives."""
    scores = [record.score for record in records if record.score is not None]
    count, job = len(scores), records[0].job
    if BY_NAME[job.task].kind == "regress" and count > 1:
        low, value, high = statistics.quantiles(scores, n=4, method="inclusive")
        error = 0.93 * (high - low) / count**0.5  # of a median, were the scores normal
    else:
        value = statistics.fmean(scores)
        error = statistics.stdev(scores) / count**0.5 if count > 1 else 0.0
    took = statistics.fmean(record.seconds for record in records)
    return Summary(job, value, error, count, sum(r.refused for r in records), took)


def summaries(records: Iterable[Record]) -> list[Summary]:
    groups: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for record in records:
        if record.score is not None:
            groups[record.job.method].append(record)
    return [summary(group) for group in groups.values()]


def failures(records: Iterable[Record]) -> list[str]:
    """What failed, how often, and with which words."""
    counts = Counter(
        f"{r.job.side} {r.job.model} on {r.job.task}"
        + (f" (epsilon {r.job.eps})" if r.job.eps else "")
        + f": {r.error}"
        for r in records
        if r.error
    )
    return [f"{text} ({count} times)" for text, count in sorted(counts.items())]


def best(found: Iterable[Summary]) -> Summary | None:
    """Of methods with the most repeats, the one with the best value."""
    among = list(found)
    most = max((s.count for s in among), default=0)
    full = [s for s in among if s.count == most]
    if not full:
        return None
    return (min if full[0].task.low_is_good else max)(full, key=lambda s: s.value)


@dataclass(frozen=True, slots=True)
class Row:
    """One task at one epsilon: a cell is the best method of its column."""

    task: Task
    eps: str
    cells: dict[str, Summary | None]

    def lead(self, column: str) -> tuple[float, float] | None:
        """How far ahead of the peer, and the standard error of that."""
        mine, theirs = self.cells[column], self.cells["peer"]
        if mine is None or theirs is None:
            return None
        sign = -1 if self.task.low_is_good else 1
        ahead = sign * (mine.value - theirs.value)
        return ahead, (mine.error**2 + theirs.error**2) ** 0.5


COLUMNS = {
    "floor": "floor",
    "peer": "best diffprivlib",
    "paper": "paper-literal",
    "add-remove": "ours, add-remove",
    "replace": "ours, replace",
    "pure": "ours, pure",
    "choice add-remove": "`Classifier`, add-remove",
    "choice replace": "`Classifier`, replace",
    "choice pure": "`Classifier`, pure",
    "ceiling": "ceiling",
}


def columns_of(job: Job) -> list[str]:
    """`Classifier` is one of ours, and has columns of its own."""
    if job.side != "ours":
        return [job.side]
    own = [f"choice {job.promise}"] if job.model == "Classifier" else []
    return [job.promise, *own]


def rows(found: Sequence[Summary], tasks: Sequence[Task], eps: Sequence[str]) -> list[Row]:
    made = []
    for task in tasks:
        own = [s for s in found if s.job.task == task.name]
        for value in eps:
            fit = [s for s in own if s.job.eps in ("", value)]
            cells = {name: best(s for s in fit if name in columns_of(s.job)) for name in COLUMNS}
            made.append(Row(task, value, cells))
    return made


def headline(found: Sequence[Summary], tasks: Sequence[Task], eps: Sequence[str]) -> Screen:
    """The table of the document."""
    made = rows(found, tasks, eps)
    filled = [name for name in COLUMNS if any(row.cells[name] for row in made)]
    shown = Screen("task", "eps", *(COLUMNS[name] for name in filled))
    for row in made:
        cells = [cell.text if (cell := row.cells[name]) else DASH for name in filled]
        shown.add_row(row.task.name, row.eps, *cells)
    return shown


def screen(found: Sequence[Summary], tasks: Sequence[Task], eps: Sequence[str]) -> Screen:
    """Every method of ours in a line of its own, beside the best peer."""
    shown = Screen("task", "eps", "ours", "promise", "score", "refused", "s/fit", "peer", "ends")
    for row in rows(found, tasks, eps):
        peer, low, high = (row.cells[name] for name in ("peer", "floor", "ceiling"))
        top = number(high.value) if high else "1"
        between = f"{number(low.value) if low else DASH} to {top}"
        for one in found:
            job = one.job
            if (job.task, job.eps) == (row.task.name, row.eps) and job.side in ("ours", "paper"):
                name = job.model + (" (paper)" if job.side == "paper" else "")
                score = f"{number(one.value)} ± {one.error:.3f}"
                part = f"{one.refused}/{one.count}"
                cells = (name, job.promise, score, part, f"{one.seconds:.2f}")
                shown.add_row(job.task, job.eps, *cells, peer.text if peer else DASH, between)
    return shown


# --- the document ---------------------------------------------------------------------------------

HEAD = """# Learning, measured

Written by `make bench-learning`. Higher is better, except for k-means.

How it was measured:

- One repeat is one split into rows to learn from and rows to judge on (2/3 and 1/3 of the census,
  else 70 % and 30 %; classes in equal shares), the same for everybody. k-means and PCA are judged
  on the rows they were learned from.
- Public bounds, the same for everybody: 0 to 16 for digits; the least and greatest value of the
  whole set for breast_cancer, wine and diabetes; declared wider than the data for the census. The
  census is generated: 50,000 rows, 5 numbers and 7 categories, 50 coordinates when categories are
  one-hot.
- Ours is (epsilon, 1e-6)-private under the relation named; *pure* is delta 0 with Laplace noise
  under add-remove, the stronger promise. Ours is the best mean over the estimators of this
  package with their defaults; `Classifier` is the one that chooses by itself, from public facts.
- diffprivlib 0.6.6 (with scikit-learn 1.5.2) claims delta 0. Its figure is the best mean over its
  models and settings, chosen on the rows it is judged on, which favours it: GaussianNB,
  LogisticRegression (C of 0.001 to 3, rows clipped to the greatest possible norm or half of it),
  DecisionTreeClassifier (depth 1 to 6), RandomForestClassifier (3, 10 or 30 trees, depth 2, 4 or
  6), KMeans, PCA (norms of 1 to 8 times the possible one), LinearRegression. A fit of more than
  10 CPU seconds was given up: its PCA draws by rejection, and rarely ends where data speak loudly.
- *Paper-literal* is `method="paper"` under replace: the published algorithms as they stand.
- A fit that refuses (`TooNoisy`) scores as the floor, and is counted.
- Floor: the most frequent class; one centre at the exact mean; a random subspace; R² 0. Ceiling:
  scikit-learn without privacy (the best of logistic regression, tree and forest).
- Shown are mean ± standard error; for R² median ± its standard error, since some fits of the peer
  diverge; predictions are cut to the public bounds for everybody.
"""


def document(records: Sequence[Record], missing: Sequence[str]) -> str:
    found = summaries(records)
    made = rows(found, TASKS, EPSILONS)
    parts = [HEAD, *(section(kind, made) for kind in ("classify", "kmeans", "pca", "regress"))]
    parts.append(standing(made))
    wrong = [*missing, *failures(records)]
    if wrong:
        parts.append("## What failed\n\n" + "".join(f"- {text}\n" for text in wrong))
    return "\n".join(parts)


TITLES = {
    "classify": "Classification: accuracy",
    "kmeans": "k-means: inertia / non-private inertia (low is good)",
    "pca": "PCA: captured variance / the most possible",
    "regress": "Linear regression: R²",
}
NOTES = {
    "classify": "LR logistic regression, LD linear discriminant, SVC linear support vectors,"
    " NB naive Bayes.",
    "kmeans": "Clusters: census 8 (its five numbers), digits 10, breast_cancer 2, wine 3.",
    "pca": "Components: census and digits 10, breast_cancer 3, wine 2.",
    "regress": "diabetes: its own target. census: age, from all other columns but income.",
}


def section(kind: str, made: Sequence[Row]) -> str:
    assert kind in KINDS
    hidden = {name for name in COLUMNS if kind != "classify" and name.startswith("choice")}
    if kind in ("kmeans", "pca"):
        hidden.add("ceiling")  # 1 by definition
    columns = {name: title for name, title in COLUMNS.items() if name not in hidden}
    lines = [f"## {TITLES[kind]}\n", NOTES[kind] + "\n"]
    lines.append("| table | epsilon | " + " | ".join(columns.values()) + " |")
    lines.append("|---" * (len(columns) + 2) + "|")
    for row in made:
        if row.task.kind == kind:
            cells = [found.text if (found := row.cells[name]) else DASH for name in columns]
            lines.append(f"| {row.task.table} | {row.eps} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def standing(made: Sequence[Row]) -> str:
    """Cells ahead, level (within two standard errors) and behind, with the latter named."""
    lines = [
        "## Standing against diffprivlib\n",
        "Level: within two standard errors of the difference. Cells without two results are left"
        " out.\n",
        "| column | ahead | level | behind | behind where |",
        "|---|---|---|---|---|",
    ]
    for column, title in COLUMNS.items():
        if column in ("floor", "peer", "ceiling"):
            continue
        count, behind = Counter[str](), []
        for row in made:
            lead = row.lead(column)
            if lead is None:
                continue
            ahead, error = lead
            place = "level" if abs(ahead) <= 2 * error else "ahead" if ahead > 0 else "behind"
            count[place] += 1
            if place == "behind":
                behind.append(f"{row.task.kind} {row.task.table} at {row.eps} ({-ahead:.3f})")
        numbers = " | ".join(str(count[place]) for place in ("ahead", "level", "behind"))
        lines.append(f"| {title} | {numbers} | {', '.join(behind) or DASH} |")
    return "\n".join(lines) + "\n"

"""`sulq learn`: a learner on a published table; a table of what it found, and a picture."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sulq.cli.change import Yes, confirm
from sulq.cli.context import Receipts, Session, Where, append_receipts, check_receipts, command
from sulq.cli.output import (
    Stopped,
    charging,
    key_values,
    number_text,
    print_note,
    show,
    show_json,
    stored,
    table,
)
from sulq.cli.question_text import credits_of, hinted
from sulq.errors import InvalidQuery, SulqError
from sulq.formatting import credits_left, credits_text

if TYPE_CHECKING:
    from sulq.learn.budget import FitQuote
    from sulq.learn.estimator import Learner


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A word of the command line, the estimator it names, and the options it takes."""

    estimator: str
    label: bool = False
    options: tuple[str, ...] = ()


COMPONENTS, CLUSTERS, DEPTH, TOPICS = "--components", "--clusters", "--depth", "--topics"
ALGORITHMS = {
    "pca": Algorithm("PCA", options=(COMPONENTS,)),
    "svd": Algorithm("SVD", options=(COMPONENTS,)),
    "factors": Algorithm("FactorAnalysis", options=(COMPONENTS,)),
    "kmeans": Algorithm("KMeans", options=(CLUSTERS,)),
    "mixture": Algorithm("GaussianMixture", options=(COMPONENTS,)),
    "classify": Algorithm("Classifier", label=True),
    "discriminant": Algorithm("LinearDiscriminant", label=True),
    "logistic": Algorithm("LogisticRegression", label=True),
    "svc": Algorithm("LinearSVC", label=True),
    "perceptron": Algorithm("Perceptron", label=True),
    "bayes": Algorithm("NaiveBayes", label=True),
    "tree": Algorithm("DecisionTree", label=True, options=(DEPTH,)),
    "regression": Algorithm("LinearRegression", label=True),
    "rules": Algorithm("AssociationRules"),
    "links": Algorithm("LinkAnalysis"),
    "lsi": Algorithm("LSI", options=(COMPONENTS,)),
    "topics": Algorithm("PLSI", options=(TOPICS,)),
}
PARAMETER = {
    COMPONENTS: "n_components",
    CLUSTERS: "n_clusters",
    DEPTH: "max_depth",
    TOPICS: "n_topics",
}
PICTURES = (".svg", ".png", ".html")


@dataclass(frozen=True, slots=True)
class Model:
    """What is learned, from which columns, with which parameters of the estimator."""

    columns: Annotated[str | None, typer.Option(help="Columns to learn from: age,bmi,smoker.")] = (
        None
    )
    label: Annotated[
        str | None, typer.Option(help='What to predict: a column, or a condition: "bmi >= 30".')
    ] = None
    where: Where = None
    clusters: Annotated[int | None, typer.Option(help="For kmeans.")] = None
    components: Annotated[
        int | None, typer.Option(help="For pca, svd, factors, mixture and lsi.")
    ] = None
    depth: Annotated[int | None, typer.Option(help="For tree: the most splits in a row.")] = None
    topics: Annotated[int | None, typer.Option(help="For topics.")] = None
    method: Annotated[
        str, typer.Option(help='"auto", or "paper" for the papers\' own algorithm.')
    ] = "auto"
    seed: Annotated[int | None, typer.Option(help="Of random starts; never of noise.")] = None
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Show the result even if it is below its noise.")
    ] = False

    def sizes(self) -> dict[str, int]:
        """The options of single algorithms that were given."""
        told = {COMPONENTS: self.components, CLUSTERS: self.clusters}
        told |= {DEPTH: self.depth, TOPICS: self.topics}
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Cap:
    """What a fit may spend, and whether to ask before."""

    credits: Annotated[
        str | None,
        typer.Option(help="The most to spend; without it, it asks first.", show_default=False),
    ] = None
    yes: Yes = False
    quote: Annotated[bool, typer.Option("--quote", help="Only say what it would cost. Free.")] = (
        False
    )
    rows: Annotated[
        int | None, typer.Option(help="With --quote, where the number of rows is private: a guess.")
    ] = None


@command
def learn(
    algorithm: Annotated[str, typer.Argument(help=", ".join(ALGORITHMS) + ".", show_default=False)],
    session: Session,
    model: Model,
    cap: Cap,
    name: Annotated[str | None, typer.Argument(metavar="[TABLE]", show_default=False)] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Where the picture goes: .svg, .png or .html; ALGORITHM.svg else."),
    ] = None,
    no_plot: Annotated[bool, typer.Option("--no-plot", help="No picture.")] = False,
    receipts: Receipts = None,
) -> None:
    """Learn from noisy sums alone: components, clusters, classifiers, rules.

    It spends at most --credits, charged question by question. Without them it is a tenth of what is
    left, and it asks first: --yes says so beforehand.
    """
    chosen = _algorithm(algorithm)
    _check(algorithm, chosen, model)
    source = session.source(name)
    features = [part.strip() for part in (model.columns or "").split(",")]
    credits = credits_of(cap.credits)
    learner = _learner(chosen, credits, model)
    with hinted(model.where, model.label):
        asked = (features, _label(model.label, source.schema()))
        keeping = _condition(model.where)

    def price() -> FitQuote:
        with session.oracle(source, prices=True) as oracle:
            return learner.quote(oracle, *asked, where=keeping, rows=cap.rows)

    if cap.quote:
        _show_quote(source.name, algorithm, price(), session.as_json)
        return
    picture = None if no_plot else _picture(plot, algorithm)
    check_receipts(receipts)
    if credits is None and not cap.yes:
        found = price()
        if not session.as_json:
            _show_quote(source.name, algorithm, found, session.as_json)
        most = credits_text(found.credits)
        confirm(f"This spends up to {most}; --credits sets another amount.", cap.yes)
    with session.oracle(source) as oracle:
        with (
            charging(),
            hinted(model.where, model.label),
            _counted(learner, session.as_json) as doubts,
        ):
            learner.fit(oracle, *asked, where=keeping)
        left = oracle.remaining
    with stored(learner.credits_):
        append_receipts(receipts, learner.receipts_)
        drawn = _draw(learner, picture, needed=plot is not None)
        _show(learner, algorithm, source.name, left, drawn, doubts, session.as_json)


# --- what was typed -----------------------------------------------------------------------------


def _algorithm(word: str) -> Algorithm:
    if word not in ALGORITHMS:
        near = get_close_matches(word, ALGORITHMS, 1)
        meant = f"did you mean {near[0]!r}? " if near else ""
        raise InvalidQuery(f"no algorithm {word!r:.40}; {meant}there are {', '.join(ALGORITHMS)}")
    return ALGORITHMS[word]


def _check(word: str, chosen: Algorithm, model: Model) -> None:
    if model.columns is None:
        raise InvalidQuery(f"{word} needs --columns: what to learn from, as in --columns age,bmi")
    if chosen.label and model.label is None:
        raise InvalidQuery(f"{word} needs --label: the column to predict")
    if model.label is not None and not chosen.label:
        raise InvalidQuery(f"{word} takes no --label; name the column among --columns")
    for name in model.sizes():
        if name not in chosen.options:
            takes = f"it takes {', '.join(chosen.options)}" if chosen.options else "leave it out"
            raise InvalidQuery(f"{word} takes no {name}; {takes}")


def _learner(chosen: Algorithm, credits: Fraction | None, model: Model) -> Learner:
    try:
        from sulq import learn as page

        kind = getattr(page, chosen.estimator)
    except ImportError as missing:
        raise InvalidQuery(str(missing)) from None
    wanted = {
        "credits": credits,
        "method": model.method,
        "random_state": model.seed,
        "on_noise": "warn" if model.anyway else "raise",
        **{PARAMETER[name]: value for name, value in model.sizes().items()},
    }
    takes = set(kind().get_params())
    learner: Learner = kind(**{name: value for name, value in wanted.items() if name in takes})
    return learner


def _label(text: str | None, schema: Any) -> Any:
    from sulq.sql import parse_condition

    return text if text is None or text in schema else parse_condition(text)


def _condition(text: str | None) -> Any:
    from sulq.sql import parse_condition

    return None if text is None else parse_condition(text)


# --- the fit ------------------------------------------------------------------------------------


@contextmanager
def _counted(learner: Learner, as_json: bool) -> Iterator[list[str]]:
    """Warnings as notes; a fit that stops says what it had spent by then."""
    import warnings

    doubts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield doubts
        except SulqError as error:
            raise Stopped(error, getattr(learner, "credits_", Fraction(0))) from None
        except KeyboardInterrupt:
            print_note(f"stopped; {credits_text(getattr(learner, 'credits_', Fraction(0)))} spent")
            raise
    doubts += [str(one.message) for one in caught if one.category.__name__ == "NoisyResult"]


def _picture(plot: Path | None, algorithm: str) -> Path:
    """Where the picture will go: checked before anything is charged."""
    path = plot or Path(f"{algorithm}.svg")
    if path.suffix.lower() not in PICTURES:
        raise InvalidQuery(f"a picture is one of {', '.join(PICTURES)}, got {path.name!r:.60}")
    if plot is not None:
        from sulq.learn.plotting.registry import ready

        try:
            ready()
        except ImportError as missing:
            raise InvalidQuery(f"{missing}, or --no-plot") from None
    if not path.exists():
        path.open("a").close()  # found out before the charge
        path.unlink()
    return path


def _draw(learner: Learner, path: Path | None, *, needed: bool) -> Path | None:
    if path is None:
        return None
    from sulq.learn.plotting.registry import save

    try:
        save(learner.plot(), path)
    except ImportError as missing:
        print_note(f"no picture: {missing}")
        return None
    return path


# --- what is shown ------------------------------------------------------------------------------


def _show(
    learner: Learner,
    algorithm: str,
    name: str,
    left: Fraction,
    picture: Path | None,
    doubts: list[str],
    as_json: bool,
) -> None:
    summary = learner.summary()
    records = summary.records()
    notes = list(dict.fromkeys((*learner.notes_, *doubts)))
    if as_json:
        show_json(
            {
                "table": name,
                "algorithm": algorithm,
                "method": learner.method_,
                "found": records,
                **summary.facts,
                "credits": learner.credits_,
                "left": left,
                "receipts": [receipt.seq for receipt in learner.receipts_],
                "plot": picture,
                "notes": notes,
            }
        )
        return
    for note in notes:
        print_note(f"note: {note}")
    if records:
        heads = list(records[0])
        show(table(heads, [[number_text(record[head]) for head in heads] for record in records]))
    pairs = [(key.replace("_", " "), _told(value)) for key, value in summary.facts.items()]
    pairs += [
        ("method", learner.method_),
        ("cost", credits_text(learner.credits_) + ("" if learner.credits_ else " (nothing new)")),
        ("left", credits_left(left)),
        ("receipts", _numbers([receipt.seq for receipt in learner.receipts_])),
    ]
    if picture is not None:
        pairs.append(("plot", str(picture)))
    show(key_values(pairs))


def _told(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(number_text(part) for part in value)
    return number_text(value)


def _numbers(numbers: list[int]) -> str:
    """A few numbers, or the first and the last of many."""
    if len(numbers) > 4:
        return f"{len(numbers)}, from {numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers)) or "none"


def _show_quote(name: str, algorithm: str, found: FitQuote, as_json: bool) -> None:
    if as_json:
        show_json(
            {
                "table": name,
                "algorithm": algorithm,
                "method": found.method,
                "credits": found.credits,
                "left_after": found.left_after,
                "steps": found.rows(),
                "notes": found.plan.notes,
            }
        )
        return
    lines = [(row["step"], str(row["rounds"]), number_text(row["credits"])) for row in found.rows()]
    show(table(("step", "rounds", "credits"), lines))
    pairs = [
        ("method", found.method),
        ("cost", f"at most {credits_text(found.credits)}"),
        ("left after", f"at least {credits_left(found.left_after)}"),
    ]
    show(key_values([*pairs, *(("note", note) for note in found.plan.notes)]))

"""`sulq explain-exact`: the printed checks for sums without noise, corrected, beside our own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sulq.cli.context import LocalSession, chosen, command, named
from sulq.cli.output import key_values, number_text, print_note, show, show_json, table

if TYPE_CHECKING:
    from sulq.exact.domain import Assumptions
    from sulq.exact.printed.auditor import Audit
    from sulq.exact.printed.checks import PrintedCheck
    from sulq.exact.printed.counterexamples import Counterexample
    from sulq.exact.terms import ExactTerms
    from sulq.kernel.engines.engine import Engine
    from sulq.kernel.schema.bind import BoundQuery
    from sulq.kernel.schema.columns import Schema

FEWEST, MOST = 2, 5_000_000
OWN_DATA = "exact functions of your data: for the owner alone, never to be shown to analysts"
Questions = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TABLE] QUESTION...",
        help="Each question in quotes, as `sulq ask` takes it: \"count --where 'age >= 65'\".",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class AssumptionOptions:
    """What is promised for exact answers, and what is assumed of an adversary."""

    epsilon: Annotated[str, typer.Option(help="Of the exact answers together.")] = "1"
    delta: Annotated[str, typer.Option(help="Of the exact answers together.")] = "1e-6"
    known_rows: Annotated[int, typer.Option(help="Rows an adversary may know.")] = 0
    least: Annotated[
        list[str] | None,
        typer.Option(
            help="smoker=0.05: each value has at least this chance, whatever else is known.",
            show_default=False,
        ),
    ] = None


@command
def explain_exact(
    session: LocalSession,
    options: AssumptionOptions,
    questions: Questions = None,
    fictional: Annotated[
        int | None,
        typer.Option(
            help="So many people of the demo's register instead of a file.", show_default=False
        ),
    ] = None,
    counterexample: Annotated[
        str | None,
        typer.Option(
            help="sparse, digit, public or span: passes the printed check, is not private.",
            show_default=False,
        ),
    ] = None,
    reasons: Annotated[
        bool, typer.Option("--reasons", help="What each check means, and why it is not enough.")
    ] = False,
) -> None:
    """Would these sums be safe without noise? Duan's checks, corrected, and our certificate.

    Reads the rows of your own file and prints exact functions of them: not for analysts.
    """
    from sulq.errors import InvalidQuery
    from sulq.exact.domain import Assumptions
    from sulq.exact.printed.counterexamples import counterexample as made

    shares = dict(map(_share, options.least or ()))
    # without --least only epsilon and delta are used; any column stands for none
    assumed = Assumptions(options.epsilon, options.delta, options.known_rows, shares or {"none": 1})
    if counterexample is not None:
        if questions or fictional is not None or shares:
            raise InvalidQuery("--counterexample brings its own question and rows; leave yours out")
        _show_counterexample(made(counterexample), session.as_json)
        return
    if not questions:
        raise InvalidQuery("say which questions, each in quotes, or --counterexample sparse")
    with _table(session.policy, questions, fictional) as (engine, schema, spelled):
        if schema.unit != "row":
            raise InvalidQuery("exact release protects rows; this table protects persons")
        bound = [_bound(text, schema) for text in spelled]
        checks, audit = _checks(bound, engine, assumed)
        verdict = _certificate(bound, schema, engine, assumed) if shares else None
    note = OWN_DATA if fictional is None else "of fictional people"
    print_note(note)
    if session.as_json:
        show_json(
            {
                "note": note,
                "questions": spelled,
                "checks": list(map(asdict, checks)),
                "auditor": asdict(audit),
                "certificate": None if verdict is None else _verdict_json(verdict),
            }
        )
        return
    _show(checks, audit, _sums(spelled, bound), verdict, reasons)


# --- reading ------------------------------------------------------------------------------------


def _share(text: str) -> tuple[str, str]:
    from sulq.errors import InvalidQuery

    name, equals, share = text.partition("=")
    if not equals:
        raise InvalidQuery(f"want --least column=share, got {text!r:.60}")
    return name, share


@contextmanager
def _table(
    policy: Path, words: Sequence[str], fictional: int | None
) -> Iterator[tuple[Engine, Schema, list[str]]]:
    """The rows, by an engine of their own: no ledger, nothing is published."""
    from tempfile import TemporaryDirectory

    from sulq.cli.question_text import FORMS
    from sulq.demo import SCHEMA, fictional_people
    from sulq.errors import InvalidQuery
    from sulq.kernel.engines.engine import open_engine

    with TemporaryDirectory() as directory:
        if fictional is None:
            if len(words) > 1 and words[0].isidentifier() and words[0] not in FORMS:
                source, rest = named(policy, words[0]), list(words[1:])
            else:
                source, rest = chosen(policy, words)
            path, schema = source.rows, source.schema()
        else:
            if not FEWEST <= fictional <= MOST:
                raise InvalidQuery(f"--fictional makes {FEWEST} to {MOST:,} people")
            path, schema, rest = f"{directory}/people.parquet", SCHEMA, list(words)
            fictional_people(fictional).write(Path(path))
        if not rest:
            raise InvalidQuery("say which questions, each in quotes")
        engine = open_engine(path, schema)
        try:
            yield engine, schema, rest
        finally:
            engine.close()


def _bound(text: str, schema: Schema) -> BoundQuery:
    """One question in one line."""
    from sulq.cli.question_text import spelled
    from sulq.kernel.schema.bind import NoiseGrid, bind

    return bind(spelled(text, schema), schema, grid=NoiseGrid(0))


def _sums(spelled: Sequence[str], bound: Sequence[BoundQuery]) -> list[str]:
    """A name for each sum of the batch; a mean has two."""
    return [
        text if len(query.terms) == 1 else f"{text} ({number})"
        for text, query in zip(spelled, bound, strict=True)
        for number, _ in enumerate(query.terms, start=1)
    ]


# --- checking -----------------------------------------------------------------------------------


def _checks(
    bound: Sequence[BoundQuery], engine: Engine, assumed: Assumptions
) -> tuple[list[PrintedCheck], Audit]:
    from sulq.exact.printed import auditor
    from sulq.exact.printed import checks as papers
    from sulq.exact.printed.moments import moments_program, read_moments

    rows = engine.size()
    moments = read_moments(bound, rows, engine.exact_sums(moments_program(bound)))
    epsilon, delta = float(assumed.epsilon), float(assumed.delta)
    covariance = moments.covariance
    least = min(covariance[i][i] for i in range(len(covariance)))
    found = [
        papers.lemma_3(float(least), len(covariance), epsilon, delta),
        papers.theorem_2(covariance, epsilon, delta),
        papers.theorem_4(covariance, epsilon, delta, rows),
    ]
    if len(covariance) > 1:
        found.append(papers.theorem_5(covariance, epsilon, delta))
    found.append(auditor.offline(moments, epsilon, delta))
    share = next((p for i in range(len(covariance)) if (p := moments.share(i)) and 0 < p < 1), None)
    if share is not None:
        found.append(auditor.theorem_6(rows, share))
    found += [papers.berry_esseen(rows, epsilon, delta), papers.averaging(covariance)]
    return found, auditor.online(moments, epsilon, delta)


def _certificate(
    bound: Sequence[BoundQuery], schema: Schema, engine: Engine, assumed: Assumptions
) -> ExactTerms | str:
    """What `ask --exact` would do: it reads public sizes only, though this command reads more."""
    from sulq.errors import UnsafeExactly
    from sulq.exact.release import Menu

    try:
        return Menu.certified([bound], schema, engine.exact_sums, assumed).terms
    except UnsafeExactly as refusal:
        return str(refusal)


# --- showing ------------------------------------------------------------------------------------


def _verdict_json(verdict: ExactTerms | str) -> dict[str, Any]:
    if isinstance(verdict, str):
        return {"certified": False, "refusal": verdict}
    return {
        "certified": True,
        "guarantee": verdict.guarantee,
        "reached": verdict.reached,
        "factor": verdict.factor,
        "top_up_variance": verdict.top_up,
        "terms": str(verdict),
    }


def _show(
    checks: Sequence[PrintedCheck],
    audit: Audit,
    names: Sequence[str],
    verdict: ExactTerms | str | None,
    reasons: bool,
) -> None:
    print(f"our certificate: {_verdict_text(verdict)}\n")
    show(
        table(
            ("check", "printed", "wants", "", "corrected", "wants", ""),
            [
                (
                    check.name,
                    number_text(check.printed),
                    _wanted(check.wanted),
                    _said(check.passes, check.wanted, "holds"),
                    number_text(check.corrected),
                    _wanted(check.corrected_wanted),
                    _said(check.corrected_passes, check.corrected_wanted, ""),
                )
                for check in checks
            ],
        )
    )
    lines = zip(names, audit.printed, audit.corrected, strict=True)
    show(
        table(
            (f"Figure 2 online, wants {number_text(audit.wanted)}", "printed", "", "corrected", ""),
            [
                (
                    name,
                    number_text(as_printed.statistic),
                    _answered(as_printed.answered),
                    number_text(corrected.statistic),
                    _answered(corrected.answered),
                )
                for name, as_printed, corrected in lines
            ],
        )
    )
    if not reasons:
        print_note("--reasons says for each check what it means and why passing it is not safe")
        return
    for name, why, not_safe in [
        *((check.name, check.why, check.not_safe) for check in checks),
        ("Figure 2 online", audit.why, audit.not_safe),
    ]:
        print(f"\n{name}: {why}\n  passing is not safe: {not_safe}")


def _verdict_text(verdict: ExactTerms | str | None) -> str:
    if verdict is None:
        return "not asked: say what is uncertain, --least column=share"
    if isinstance(verdict, str):
        return verdict
    noise = f" with noise of standard deviation {verdict.top_up**0.5:.3g}" if verdict.top_up else ""
    return (
        f"certified ({verdict.guarantee}){noise}: delta {verdict.reached:.3g} of"
        f" {float(verdict.assumptions.delta):.3g} at epsilon"
        f" {float(verdict.assumptions.epsilon):g}; noisy answers on these rows then count as for"
        f" {verdict.factor} rows: credits are divided by {verdict.factor**2} (Gaussian noise)"
    )


def _show_counterexample(found: Counterexample, as_json: bool) -> None:
    if as_json:
        show_json({**asdict(found), "refused": found.refused})
        return
    check = found.printed
    show(
        key_values(
            [
                ("question", found.question),
                (
                    "printed condition",
                    f"{_said(check.passes, check.wanted, '')} at epsilon 1, delta 1e-6: variance"
                    f" {check.printed:.7g}, wants {check.wanted:.7g}",
                ),
                ("true delta", f"{found.true_delta:.7g}"),
                ("our certificate", found.refusal or "certified"),
                ("lesson", found.lesson),
            ]
        )
    )


def _wanted(wanted: float | None) -> str:
    return "" if wanted is None else number_text(float(wanted))


def _said(passes: bool, wanted: float | None, true: str) -> str:
    if wanted is None:
        return true if passes else "false" if true else ""
    return "passes" if passes else "fails"


def _answered(yes: bool) -> str:
    return "answers" if yes else "denies"

"""What refusals, errors and prices tell: they must be the same whatever the rows hold.

A refusal decided by the data is itself an answer, exact and free (Kenthapadi, Mishra, Nissim).
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import zip_longest

import numpy as np

from sulq.answers.oracle import Oracle
from sulq.answers.statistics import cdf, count, histogram, mean, quantiles, total, variance
from sulq.attacks.audit import all_credits
from sulq.attacks.result import AttackResult, guessed
from sulq.attacks.target import ROW, SECRET, Target
from sulq.errors import SulqError
from sulq.kernel.query.expressions import Expression, col, hashed, lit, when
from sulq.kernel.query.sum_query import SumQuery

Question = Callable[[], object]
"""Built when it is asked: building a bad one fails, and that must show nothing either."""
Terms = dict[str, object]


def denials(
    target: Target, *, rows: int = 64, bits: int = 400, seed: int = 9
) -> list[AttackResult]:
    """Everything but the answers, on neighbours; and bits read from who is refused."""
    secrets = target.secrets(seed, rows)
    neighbours = []
    for changed in ([], [0], [rows - 1], range(rows)):  # the last is far beyond a neighbour
        other = secrets.copy()
        other[list(changed)] ^= True
        neighbours.append(target.publish(other))
    return [told_apart(neighbours, battery(rows - 1)), refused_bits(target, rows=bits, seed=seed)]


def told_apart(
    oracles: Sequence[Oracle], questions: Iterable[tuple[Question, Terms]] | None = None
) -> AttackResult:
    """How many observables of a battery differ between tables with the same public facts."""
    asked = list(battery() if questions is None else questions)
    seen = [observed(oracle, asked) for oracle in oracles]
    differ = [
        place
        for other in seen[1:]
        for place, (one, two) in enumerate(zip_longest(seen[0], other))
        if one != two
    ]
    note = f"{len(asked)} questions on {len(oracles)} tables"
    if differ:
        note += f"; the first that differs: observable {differ[0]}"
    trials = (len(oracles) - 1) * len(seen[0])
    measure = "observables that differ"
    return AttackResult(
        "refusals and prices", measure, float(len(differ)), 0.0, 0.0, trials, note=note
    )


def observed(oracle: Oracle, questions: Iterable[tuple[Question, Terms]]) -> list[str]:
    """All that shows but the noisy values and what is computed from them."""
    seen = [f"{oracle.size} {Fraction(oracle.remaining)} {oracle.promise} {oracle.schema}"]
    for build, terms in questions:
        try:
            question = build()
            quote = oracle.quote(question, **terms)  # type: ignore[arg-type]
            seen.append(f"{quote.credits} {quote.left_after} {quote.repeat}")
            if quote.sizes is None:  # else the bar may be by noisy counts that were told
                seen.append(f"{quote.note} {quote.standard_error!r} {quote!r}")
            answer = oracle.ask(question, **terms)  # type: ignore[arg-type]
            shape, keys = np.shape(answer.value), answer.keys
            seen.append(f"{answer.kind} {answer.axes} {answer.credits} {shape} {keys}")
        except Exception as problem:  # noqa: BLE001 - whatever comes out is what shows
            seen.append(f"{type(problem).__name__}: {problem} {problem.__cause__!r}")
        seen.append(str(Fraction(oracle.remaining)))
    return seen


def refused_bits(target: Target, *, rows: int = 400, seed: int = 9) -> AttackResult:
    """One question for each row; the bit is guessed from whether, and how, it is refused."""
    secrets = target.secrets(seed, rows)
    oracle = target.publish(secrets)
    kinds = []
    for row in range(rows):
        mine = SumQuery((lit(1),), (col(ROW) == row) & col(SECRET))
        try:
            oracle.ask(mine, credits=all_credits(oracle, Fraction(1, 2 * rows)))
            kinds.append("answered")
        except SulqError as problem:
            kinds.append(type(problem).__name__)
    cells = np.unique(kinds, return_inverse=True)[1]
    if oracle.promise.noise not in ("gaussian", "laplace"):
        cells[:] = 0  # one size: the budget ends half-way, for every table at the same question
        cells += [int(kind not in ("answered", "BudgetSpent")) for kind in kinds]
    training = np.arange(rows) % 2 == 0
    right = 0
    for cell in np.unique(cells):
        here = cells == cell
        guess = secrets[here & training].mean() > 0.5 if (here & training).any() else False
        right += int((secrets[here & ~training] == guess).sum())
    note = "from refusals alone; the answers are not looked at"
    return guessed("refusals as answers", right, rows // 2, 0.5, Fraction(0), note)


def battery(last: int = 63) -> list[tuple[Question, Terms]]:
    """Good, bad, dear, empty, huge and malformed questions about rows and their secret."""
    row, secret = col(ROW), col(SECRET)
    flag = when(secret).then(1).otherwise(0)
    good: list[Question] = [
        lambda: count(),
        lambda: count(where=secret),
        lambda: count(where=~secret),
        lambda: count(SECRET),
        lambda: total(flag),
        lambda: total(ROW),
        lambda: total(ROW, where=secret),
        lambda: mean(ROW, where=secret),
        lambda: mean(flag),
        lambda: variance(ROW, where=secret),
        lambda: histogram(SECRET),
        lambda: histogram(SECRET, other=True),
        lambda: histogram(ROW, where=secret, edges=[0, 1, 8, 32]),
        lambda: cdf(ROW, where=secret),
        lambda: quantiles(ROW, [0.25, 0.5], where=secret),
        lambda: SumQuery((flag, row), secret),
        lambda: count(where=hashed(ROW, 1) & secret),
        lambda: count(where=(row == 0) & secret),
        lambda: count(where=(row == last) & secret),
        lambda: count(where=(row != last) & secret),
        lambda: count(where=(row < 2) & secret),
    ]
    empty: list[Question] = [
        lambda: count(where=secret & ~secret),
        lambda: count(where=secret.is_null()),
        lambda: mean(ROW, where=(row < 0) & secret),
        lambda: mean(ROW, where=(row == 0) & secret),
        lambda: variance(ROW, where=(row == 0) & secret),
        lambda: total(ROW, where=lit(False)),
        lambda: quantiles(ROW, [0.5], where=(row == 0) & secret),
        lambda: histogram(SECRET, where=row < 0),
    ]
    dividing: list[Expression] = [
        1 / flag,
        flag / flag,
        row / (row - row),
        1 / (flag - 1),
        (row / flag) / flag,
        1 / (row - 3),
        row * row * row * row * flag,
        -row * 9_007_199_254_740_991,
        (1 / (row + 1)) * flag,
    ]
    total_of: list[Question] = [_total(value) for value in dividing]
    total_of += [_total(value.clip(0, 1)) for value in dividing]
    bad: list[Question] = [
        lambda: count(where=col("nowhere") > 5),
        lambda: count(where=col("nowhere' OR 1=1 --") == 1),
        lambda: total("nowhere"),
        lambda: total(SECRET),
        lambda: count(where=secret > 5),
        lambda: count(where=row),
        lambda: count(where=secret.like("%")),
        lambda: count(where=row.like("_%\\")),
        lambda: count(where=row == "1); DROP TABLE people"),
        lambda: count(where=row == "\ud800"),
        lambda: count(where=row == "a\x00b"),
        lambda: count(where=row > float("nan")),
        lambda: count(where=row > datetime.date(2024, 1, 1)),
        lambda: count(where=row.isin([])),
        lambda: histogram(ROW),
        lambda: histogram(ROW, edges=[5, 1]),
        lambda: quantiles(SECRET, [0.5]),
        lambda: quantiles(ROW, [2]),
        lambda: "count(*)",
        lambda: None,
        lambda: hashed(SECRET, 1),
        lambda: count(where=hashed(SECRET, 1)),
    ]
    huge: list[Question] = [
        lambda: count(where=row.isin(range(2_000)) & secret),
        lambda: count(where=row.isin(range(20_000)) & secret),
        lambda: SumQuery((flag,) * 1_001, secret),
    ]
    small: Terms = {"credits": Fraction(1, 1_000)}
    asked: list[tuple[Question, Terms]] = []
    asked += [(build, terms) for build in good[:3] for terms in ({}, small)]
    asked += [(build, small) for build in (*good[3:], *empty, *total_of, *bad, *huge)]
    asked += [(good[1], terms) for terms in _odd_terms()]
    asked += [(good[1], {"credits": 10**9}), (good[4], {"within": 1e-6}), (good[1], {})]
    return asked


def _odd_terms() -> list[Terms]:
    return [
        {"within": 0},
        {"within": float("nan")},
        {"credits": -1},
        {"credits": float("inf")},
        {"credits": 1, "within": 1},
        {"confidence": 2},
        {"rows": 0},
    ]


def _total(value: Expression) -> Question:
    return lambda: total(value)

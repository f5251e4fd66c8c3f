"""Many quantiles at one (epsilon, delta): one tree of counts against one quantile at a time.

    python -m benchmarks.quantiles [--repeats 40] [--opendp 8]

All protect a replaced row at (1, 1e-6) with their whole budget spent on one column of 100,000 rows.
opendp: `make_private_quantile` per quantile, epsilon split evenly, n known, on the same grid of
candidates as our cells and on a grid 20 times finer. diffprivlib: `tools.quantile`, which splits
epsilon evenly over an exponential mechanism on the gaps of the sorted values; rewritten here (it
needs older packages), equal to diffprivlib 0.6.6 within sampling error. Errors are means, over
repeats, of the largest error over all quantiles asked: in ranks (rows), and in the column's units.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from sulq import Database, Number, Promise, Schema
from sulq.answers.statistics import distribution

ROWS = 100_000
EPSILON, DELTA = 1.0, 1e-6
Quantiles = Callable[[np.ndarray], np.ndarray]


def columns(random: np.random.Generator) -> Iterator[tuple[str, Number, np.ndarray]]:
    income = np.clip(random.lognormal(10.3, 0.7, ROWS), 0, 500_000)
    yield "incomes, 0 to 500,000", Number("x", 0, 500_000), income
    yield "uniform, 0 to 1", Number("x", 0, 1), random.random(ROWS)
    ages = np.clip(np.rint(random.gamma(9, 5, ROWS)), 0, 120)
    yield "ages in years, 0 to 120", Number("x", 0, 120, step=1), ages


def ours(column: Number, values: np.ndarray, resolution: int | None = None) -> Quantiles:
    frame = pd.DataFrame({"x": values})
    schema, promise = Schema(column), Promise(EPSILON, DELTA)

    def ask(shares: np.ndarray) -> np.ndarray:
        with Database.open(frame, schema, promise, ledger=":memory:") as db:
            found = db.ask(distribution("x", resolution=resolution), credits=db.remaining)
            return np.array([found.distribution.quantile(share) for share in shares])

    return ask


def split(column: Number, values: np.ndarray, random: np.random.Generator) -> Quantiles:
    """diffprivlib's rule: P(gap i) ~ length exp(-epsilon/k |i - share n| / 2), uniform inside."""
    low, high = (float(end) for end in column.range)
    ends = np.concatenate([[low], np.sort(values), [high]])
    lengths = np.diff(ends)
    ranks = np.arange(len(lengths))

    def ask(shares: np.ndarray) -> np.ndarray:
        found = []
        for share in shares:
            with np.errstate(divide="ignore"):
                score = np.log(lengths) - EPSILON / len(shares) * np.abs(ranks - share * ROWS) / 2
            score += random.gumbel(size=len(score))
            gap = int(np.argmax(score))
            found.append(ends[gap] + random.random() * lengths[gap])
        return np.array(found)

    return ask


def opendp(column: Number, values: np.ndarray, candidates: int) -> Quantiles:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    low, high = (float(end) for end in column.range)
    grid = np.linspace(low, high, candidates).tolist()
    rows = values.tolist()
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=ROWS)

    def ask(shares: np.ndarray) -> np.ndarray:
        found = []
        for share in shares:

            def make(scale: float, share: float = float(share)) -> object:
                return dp.m.make_private_quantile(
                    domain, dp.symmetric_distance(), dp.max_divergence(), grid, share, scale
                )

            found.append(
                make(dp.binary_search_param(make, d_in=2, d_out=EPSILON / len(shares)))(rows)
            )
        return np.array(found)

    return ask


def errors(ask: Quantiles, values: np.ndarray, shares: np.ndarray, repeats: int) -> tuple:
    """Mean and standard error of the largest rank error and of the largest error in units."""
    ordered = np.sort(values)
    truth = np.quantile(ordered, shares, method="inverted_cdf")
    worst = []
    for _ in range(repeats):
        found = ask(shares)
        below = np.searchsorted(ordered, found, side="left")
        to_here = np.searchsorted(ordered, found, side="right")
        wanted = shares * ROWS
        ranks = np.maximum(np.maximum(below - wanted, wanted - to_here), 0)
        worst.append((ranks.max(), np.abs(found - truth).max()))
    table = np.array(worst)
    return *table.mean(axis=0), *(table.std(axis=0) / np.sqrt(repeats))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--opendp", type=int, default=8, help="repeats of the slower peer; 0: none")
    given = parser.parse_args()
    random = np.random.default_rng(1)
    print("| column | quantiles | method | largest rank error | largest error | ratio of ranks |")
    print("|---|---|---|---|---|---|")
    for name, column, values in columns(random):
        cells = 1_024
        grid = 121 if column.step else cells + 1  # whole years, or the edges of our cells
        for count in (9, 19, 99):
            shares = np.arange(1, count + 1) / (count + 1)
            methods = [
                ("sulq", ours(column, values), given.repeats),
                ("diffprivlib's split", split(column, values, random), given.repeats),
            ]
            if given.opendp and count == 9:
                methods.append(("opendp, same grid", opendp(column, values, grid), given.opendp))
                if not column.step:
                    fine = opendp(column, values, 20 * cells + 1)
                    methods.append(("opendp, 20 times finer", fine, given.opendp))
            base = None
            for method, ask, repeats in methods:
                ranks, units, rank_error, unit_error = errors(ask, values, shares, repeats)
                base = ranks if base is None else base
                ratio = f"{ranks / base:.1f}" if base else "-"
                print(
                    f"| {name} | {count} | {method} | {ranks:,.1f} +- {rank_error:.1f}"
                    f" | {units:,.4g} +- {unit_error:.2g} | {ratio} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()

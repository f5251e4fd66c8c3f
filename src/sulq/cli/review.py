"""What `sulq check` says before anything is published."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from sulq.accounting.calibration import calibrate
from sulq.accounting.sizing import NORMAL_95, Sizing, equal_subset, sizing
from sulq.cli.screen import number_text, show, table
from sulq.engines.engine import open_engine
from sulq.policy import TablePolicy
from sulq.policy.survey import Survey
from sulq.schema.promise import Promise

SIZES = (10_000, 100_000, 1_000_000)
USEFUL = 0.01
"""A count's bar above this share of the rows is too wide to be of much use."""


@dataclass(frozen=True, slots=True)
class Review:
    """A table's policy, looked at closely."""

    policy: TablePolicy
    rows: int | None
    sigma: float
    sizes: Sizing | None
    fewer: int | None

    @property
    def ready(self) -> bool:
        return not self.policy.unready

    @property
    def bar(self) -> float:
        return NORMAL_95 * self.sigma

    def to_json(self) -> dict[str, Any]:
        sizes = self.sizes
        return {
            "table": self.policy.name,
            "ready": self.ready,
            "not_askable_yet": self.policy.unready,
            "askable": [column.name for column in self.policy.columns if not column.lacks],
            "promise": self.policy.promise.to_json(),
            "rows": self.rows,
            "sigma_of_a_count": self.sigma,
            "bar_of_a_count": self.bar,
            "bar_of_a_mean": {str(n): self.bar / n for n in self._sizes()},
            "sampling_error": sizes and sizes.sampling_error,
            "noise_below_sampling_error": sizes and sizes.noise_is_smaller,
            "noise_below_sampling_error_when_rare": sizes and sizes.noise_is_smaller_when_rare,
            "as_good_as_a_random_subset_of": sizes and sizes.subset,
            "too_small": self.fewer is not None,
            "suggested_queries": self.fewer,
        }

    def _sizes(self) -> tuple[int, ...]:
        return (self.rows,) if self.rows else SIZES

    def show(self) -> None:
        if self.policy.unready:
            print(f"{self.policy.name} is not ready to publish:")
            for name, why in self.policy.unready.items():
                print(f"  {name} {why}")
            print()
        rows = "" if self.rows is None else f", {self.rows:,} rows"
        verdict = "ready to publish" if self.ready else "not ready"
        print(f"{self.policy.name}: {verdict}{rows}")
        print(f"promise: {self.policy.promise}")
        print()
        show(_prospects(self.policy, self._sizes()))
        print()
        for line in self._sayings():
            print(line)

    def _sayings(self) -> list[str]:
        if self.sizes is None:
            return ["how many rows match is private here (add-remove), so no size is read"]
        sizes = self.sizes
        beside = "below" if sizes.noise_is_smaller else "ABOVE"
        rare = "below" if sizes.noise_is_smaller_when_rare else "ABOVE"
        said = [
            f"a count: noise of {number_text(sizes.standard_error)} is {beside} the sampling error"
            f" of {number_text(sizes.sampling_error)} that these {sizes.rows:,} rows have anyway"
            f" (half the rows match); {rare} it if 1 in 100 match"
            f" ({number_text(sizes.sampling_error_rare)})",
            f"as good as an exact answer from a random subset of {sizes.subset:,} of the"
            f" {sizes.rows:,} rows, and here everybody is protected",
        ]
        if self.fewer is not None:
            said.append(self._warning(sizes, self.fewer))
        return said

    def _warning(self, sizes: Sizing, fewer: int) -> str:
        if fewer == 0:
            return (
                f"WARNING: {sizes.rows:,} rows are too few for this promise: even a single question"
                " would have a bar above 1% of all rows. Publish more rows"
            )
        return (
            f"WARNING: {sizes.rows:,} rows are few for so many questions: a bar of"
            f" ± {number_text(sizes.bar)} is {sizes.bar / sizes.rows:.3g} of all rows."
            f" Promise fewer questions (queries = {fewer:,}), not less privacy"
        )


def _prospects(policy: TablePolicy, sizes: tuple[int, ...]) -> Any:
    """The sizing table: this promise, and a tenth and ten times of its questions."""
    heads = [
        "questions",
        "sigma of a count",
        "95% bar",
        *(f"mean of [0,1], n={n:,}" for n in sizes),
    ]
    lines, promise = [], policy.promise
    for queries in _beside(promise):
        sigma = _sigma(promise, queries) * policy.max_rows
        bar = NORMAL_95 * sigma
        mark = " (yours)" if queries == promise.credits else ""
        means = [f"± {bar / n:.2g}" if 2 * bar < n else "no use" for n in sizes]
        lines.append([f"{queries:,}{mark}", number_text(sigma), f"± {number_text(bar)}", *means])
    return table(heads, lines)


def _beside(promise: Promise) -> list[int]:
    own = promise.credits
    if promise.noise in ("binomial", "huber"):  # their calibration takes a while
        return [own]
    return sorted({max(1, own // 10), own, own * 10})


def _sigma(promise: Promise, queries: int) -> float:
    """sigma of a unit question; S4.1, S4.13."""
    other = Promise(promise.epsilon, promise.delta, queries, promise.noise, promise.neighbours)
    return calibrate(other).unit_standard_deviation


def review(policy: TablePolicy) -> Review:
    """Look at a policy; under replace also at the number of rows, which is public."""
    schema = policy.schema() if not policy.unready else None
    rows = None
    if policy.promise.neighbours == "replace":
        if schema is not None:
            engine = open_engine(policy.source_path, schema)  # also: types fit the declaration
            rows = engine.size()
            engine.close()
        elif policy.unit == "row":
            survey = Survey(policy.source_path)
            rows = survey.rows()
            survey.close()
    elif schema is not None:
        open_engine(policy.source_path, schema).close()
    sizes = sizing(policy.promise, rows) if rows and rows > 1 else None
    if sizes is not None and policy.max_rows > 1:  # a person moves a count by up to max_rows
        error = sizes.standard_error * policy.max_rows
        subset = equal_subset(sizes.rows, error**2)
        sizes = replace(sizes, standard_error=error, bar=NORMAL_95 * error, subset=subset)
    sigma = calibrate(policy.promise).unit_standard_deviation * policy.max_rows
    return Review(policy, rows, sigma, sizes, _fewer(policy.promise, sizes))


def _fewer(promise: Promise, sizes: Sizing | None) -> int | None:
    """How many questions a small table can bear (0: none); None where the promise is fine.

    sigma grows as sqrt(T) (Gaussian) or T (Laplace): S4.1, S4.13.
    """
    if sizes is None or sizes.bar <= USEFUL * sizes.rows:
        return None
    power = 1 if promise.noise == "laplace" else 2
    shrink = (USEFUL * sizes.rows / sizes.bar) ** power
    return math.floor(promise.credits * shrink)

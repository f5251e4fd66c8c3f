"""OpenDP, its Context on Polars: Laplace for one question, Gaussian under zCDP for many."""

import math

import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")
REGIONS = [f"region {i}" for i in range(50)]


def rho_of(epsilon, delta):
    """The largest rho that OpenDP itself converts to (epsilon, delta)."""
    space = dp.atom_domain(T=int), dp.absolute_distance(T=float)

    def fits(scale):
        release = dp.m.make_gaussian(*space, scale)
        return dp.c.make_zCDP_to_approxDP(release).map(1.0).epsilon(delta) <= epsilon

    low, high = 0.1, 1e5
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return 1 / (2 * high * high)


class Peer:
    def __init__(self, path):
        self.data = pl.scan_parquet(path)
        self.keys = pl.LazyFrame({"region": REGIONS})

    def _context(self, loss, questions=1):
        return dp.Context.compositor(
            data=self.data,
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=loss,
            split_evenly_over=questions,
            margins=[dp.polars.Margin(max_length=10_000_000)],
        )

    def _rows(self, context, at):
        return context.query().filter(pl.col("age") >= at)

    def count(self, at, epsilon, delta):
        rows = self._rows(self._context(dp.loss_of(epsilon=epsilon)), at)
        return rows.select(dp.len()).release().collect().item()

    def mean(self, at, epsilon, delta):
        rows = self._rows(self._context(dp.loss_of(epsilon=epsilon)), at)
        income = pl.col("income").cast(int).fill_null(0)
        found = rows.select(income.dp.sum((0, 500_000)).alias("s"), dp.len().alias("n"))
        total, number = found.release().collect().row(0)
        return total / max(1, number)

    def groups(self, at, epsilon, delta):
        rows = self._rows(self._context(dp.loss_of(epsilon=epsilon)), at)
        found = rows.group_by("region").agg(dp.len().alias("n")).with_keys(self.keys)
        counts = dict(found.release().collect().select("region", "n").iter_rows())
        return [counts.get(name) or 0 for name in REGIONS]

    def many(self, ats, epsilon, delta):
        context = self._context(dp.loss_of(rho=rho_of(epsilon, delta)), len(ats))
        for at in ats:
            yield self._rows(context, at).select(dp.len()).release().collect().item()

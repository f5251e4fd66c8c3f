"""OpenDP, its Context on Polars: Laplace for one question, Gaussian under zCDP for many.

Scales of noise are given: the Context's own search for them takes seconds of CPU a question. It
still checks that a question costs no more than its share.
"""

import math

import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")
BARELY = 1 + 1e-9
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
        self.shape = pl.LazyFrame(schema=self.data.collect_schema())  # plans are over no data
        self.keys = pl.LazyFrame({"region": REGIONS})

    def _context(self, loss, questions=1):
        return dp.Context.compositor(
            data=self.data,
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=loss,
            split_evenly_over=questions,
            margins=[dp.polars.Margin(max_length=10_000_000)],
        )

    def _released(self, context, plan):
        room = context.accountant
        space = room.input_domain, room.input_metric, room.output_measure
        return context(dp.m.make_private_lazyframe(*space, plan, 1.0)).collect()

    def _whole(self, plan, epsilon):
        return self._released(self._context(dp.loss_of(epsilon=epsilon)), plan)

    def _rows(self, at):
        return self.shape.filter(pl.col("age") >= at)

    def count(self, at, epsilon, delta):
        return self._whole(self._rows(at).select(dp.len(scale=BARELY / epsilon)), epsilon).item()

    def mean(self, at, epsilon, delta):
        """Half of epsilon for the deviations from the middle, half for the number."""
        off = (pl.col("income") - 250_000).cast(int).fill_null(0)
        scale = 2 * BARELY / epsilon
        total = off.dp.sum((-250_000, 250_000), scale=250_000 * scale)
        plan = self._rows(at).select(total.alias("s"), dp.len(scale=scale).alias("n"))
        total, number = self._whole(plan, epsilon).row(0)
        return 250_000 + total / max(1, number)

    def groups(self, at, epsilon, delta):
        wanted = dp.len(scale=BARELY / epsilon).alias("n")
        found = self._rows(at).group_by("region").agg(wanted)
        plan = self.keys.join(found, on="region", how="left")
        counts = dict(self._whole(plan, epsilon).select("region", "n").iter_rows())
        return [counts.get(name) or 0 for name in REGIONS]

    def many(self, ats, epsilon, delta):
        rho = rho_of(epsilon, delta)
        context = self._context(dp.loss_of(rho=rho), len(ats))
        scale = math.sqrt(len(ats) / (2 * rho)) * BARELY
        for at in ats:
            plan = self._rows(at).select(dp.len(scale=scale))
            yield self._released(context, plan).item()

"""PipelineDP, its local backend: Laplace for one question; many are known beforehand, with
Gaussian noise that its accountant of privacy loss distributions finds for all of them.

Every row is a person, so bounds on contributions hold already.
"""

import pipeline_dp
import pyarrow.parquet as parquet

REGIONS = [f"region {i}" for i in range(50)]
Metrics = pipeline_dp.Metrics


class Peer:
    def __init__(self, path):
        table = parquet.read_table(path)
        columns = (table[name].to_pylist() for name in ("age", "income", "region"))
        self.rows = list(zip(*columns, strict=True))
        self.extract = pipeline_dp.DataExtractors(
            partition_extractor=lambda row: row[2], value_extractor=lambda row: row[1]
        )
        self.together = pipeline_dp.DataExtractors(
            partition_extractor=lambda row: "all", value_extractor=lambda row: row[1]
        )

    def _declared(self, accountant, at, metric, noise, keys, extract):
        """Worked out when it is read, after the accountant has computed the budgets."""
        params = pipeline_dp.AggregateParams(
            metrics=[metric],
            noise_kind=noise,
            max_partitions_contributed=1,
            max_contributions_per_partition=1,
            min_value=0,
            max_value=500_000,
            contribution_bounds_already_enforced=True,
        )
        rows = (row for row in self.rows if row[0] >= at)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        return engine.aggregate(rows, params, extract, public_partitions=keys)

    def _whole(self, at, epsilon, metric, keys, extract):
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=1e-15)
        noise = pipeline_dp.NoiseKind.LAPLACE
        found = self._declared(accountant, at, metric, noise, keys, extract)
        accountant.compute_budgets()
        return dict(found)

    def count(self, at, epsilon, delta):
        return self._whole(at, epsilon, Metrics.COUNT, ["all"], self.together)["all"].count

    def mean(self, at, epsilon, delta):
        return self._whole(at, epsilon, Metrics.MEAN, ["all"], self.together)["all"].mean

    def groups(self, at, epsilon, delta):
        found = self._whole(at, epsilon, Metrics.COUNT, REGIONS, self.extract)
        return [found[name].count for name in REGIONS]

    def many(self, ats, epsilon, delta):
        accountant = pipeline_dp.PLDBudgetAccountant(epsilon, delta, pld_discretization=0.01)
        noise = pipeline_dp.NoiseKind.GAUSSIAN
        declared = [
            self._declared(accountant, at, Metrics.COUNT, noise, ["all"], self.together)
            for at in ats
        ]
        accountant.compute_budgets()
        for found in declared:
            yield dict(found)["all"].count

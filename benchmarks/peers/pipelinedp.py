"""PipelineDP, its local backend. Questions one after the other: epsilon is divided."""

import pipeline_dp
import pyarrow.parquet as parquet

REGIONS = [f"region {i}" for i in range(50)]
Metrics = pipeline_dp.Metrics


class Peer:
    def __init__(self, path):
        table = parquet.read_table(path)
        columns = (table[name].to_pylist() for name in ("age", "income", "region"))
        self.rows = [(number, *row) for number, row in enumerate(zip(*columns, strict=True))]
        self.extract = pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: row[3],
            value_extractor=lambda row: row[2],
        )
        self.together = pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: "all",
            value_extractor=lambda row: row[2],
        )

    def _asked(self, at, epsilon, metric, keys, extract):
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=1e-15)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        params = pipeline_dp.AggregateParams(
            metrics=[metric],
            noise_kind=pipeline_dp.NoiseKind.LAPLACE,
            max_partitions_contributed=1,
            max_contributions_per_partition=1,
            min_value=0,
            max_value=500_000,
            contribution_bounds_already_enforced=False,
        )
        rows = [row for row in self.rows if row[1] >= at]
        found = engine.aggregate(rows, params, extract, public_partitions=keys)
        accountant.compute_budgets()
        return dict(found)

    def count(self, at, epsilon, delta):
        return self._asked(at, epsilon, Metrics.COUNT, ["all"], self.together)["all"].count

    def mean(self, at, epsilon, delta):
        return self._asked(at, epsilon, Metrics.MEAN, ["all"], self.together)["all"].mean

    def groups(self, at, epsilon, delta):
        found = self._asked(at, epsilon, Metrics.COUNT, REGIONS, self.extract)
        return [found[name].count for name in REGIONS]

    def many(self, ats, epsilon, delta):
        for at in ats:
            yield self.count(at, epsilon / len(ats), delta)

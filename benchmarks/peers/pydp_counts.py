"""PyDP (python-dp, Google's C++ library): lists of numbers; it has no accounting.

Many counts get its Gaussian mechanism: that a row moves all of them together by no more than
sqrt(their number) is the caller's argument.
"""

import math

import pyarrow.parquet as parquet
from pydp.algorithms.laplacian import BoundedMean, Count
from pydp.algorithms.numerical_mechanisms import GaussianMechanism

REGIONS = [f"region {i}" for i in range(50)]


class Peer:
    def __init__(self, path):
        table = parquet.read_table(path)
        names = ("age", "income", "region")
        self.age, self.income, self.region = (table[name].to_pylist() for name in names)

    def _chosen(self, values, at):
        return [value for age, value in zip(self.age, values, strict=True) if age >= at]

    def count(self, at, epsilon, delta):
        return Count(epsilon=epsilon, dtype="float").quick_result(self._chosen(self.income, at))

    def mean(self, at, epsilon, delta):
        asked = BoundedMean(epsilon=epsilon, lower_bound=0, upper_bound=500_000, dtype="float")
        return asked.quick_result(self._chosen(self.income, at))

    def groups(self, at, epsilon, delta):
        """A count for each; that they share no row is the caller's argument."""
        parts = {name: [] for name in REGIONS}
        for age, region in zip(self.age, self.region, strict=True):
            if age >= at:
                parts[region].append(1)
        return [Count(epsilon=epsilon, dtype="int").quick_result(parts[name]) for name in REGIONS]

    def many(self, ats, epsilon, delta):
        noise = GaussianMechanism(epsilon, delta, math.sqrt(len(ats)))
        for at in ats:
            yield noise.add_noise(float(sum(age >= at for age in self.age)))

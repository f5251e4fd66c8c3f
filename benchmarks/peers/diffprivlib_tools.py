"""diffprivlib's tools. Many counts get its analytic Gaussian mechanism: that a row moves all of
them together by no more than sqrt(their number) is the caller's argument. Its accountant with
slack, which needs none, has half as much error again.
"""

import math

import numpy as np
import pyarrow.parquet as parquet
from diffprivlib import tools
from diffprivlib.mechanisms import GaussianAnalytic


class Peer:
    def __init__(self, path):
        table = parquet.read_table(path)
        self.age, self.income = (table[name].to_numpy() for name in ("age", "income"))
        codes = table["region"].to_numpy()
        self.region = np.char.replace(codes.astype(str), "region ", "").astype(int)

    def count(self, at, epsilon, delta):
        return tools.count_nonzero(self.age >= at, epsilon=epsilon)

    def mean(self, at, epsilon, delta):
        """A sum over a count: its own mean takes the number of rows for public."""
        chosen = self.income[self.age >= at]
        total = tools.sum(chosen, epsilon=epsilon / 2, bounds=(0, 500_000))
        return total / max(1, self.count(at, epsilon / 2, delta))

    def groups(self, at, epsilon, delta):
        chosen = self.region[self.age >= at]
        return tools.histogram(chosen, epsilon=epsilon, bins=50, range=(-0.5, 49.5))[0]

    def many(self, ats, epsilon, delta):
        sensitivity = math.sqrt(len(ats))
        noise = GaussianAnalytic(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
        for at in ats:
            yield noise.randomise(float(np.count_nonzero(self.age >= at)))

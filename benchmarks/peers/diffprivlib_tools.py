"""diffprivlib's tools; for many questions its accountant with slack (advanced composition)."""

import numpy as np
import pyarrow.parquet as parquet
from diffprivlib import BudgetAccountant, tools


class Peer:
    def __init__(self, path):
        table = parquet.read_table(path)
        self.age, self.income = (table[name].to_numpy() for name in ("age", "income"))
        codes = table["region"].to_numpy()
        self.region = np.char.replace(codes.astype(str), "region ", "").astype(int)

    def count(self, at, epsilon, delta, accountant=None):
        return tools.count_nonzero(self.age >= at, epsilon=epsilon, accountant=accountant)

    def mean(self, at, epsilon, delta):
        """A sum over a count: its own mean takes the number of rows for public."""
        chosen = self.income[self.age >= at]
        total = tools.sum(chosen, epsilon=epsilon / 2, bounds=(0, 500_000))
        return total / max(1, self.count(at, epsilon / 2, delta))

    def groups(self, at, epsilon, delta):
        chosen = self.region[self.age >= at]
        return tools.histogram(chosen, epsilon=epsilon, bins=50, range=(-0.5, 49.5))[0]

    def many(self, ats, epsilon, delta):
        accountant = BudgetAccountant(epsilon, delta, slack=delta)
        each = accountant.remaining(len(ats))[0] * (1 - 1e-9)
        for at in ats:
            yield self.count(at, each, delta, accountant)

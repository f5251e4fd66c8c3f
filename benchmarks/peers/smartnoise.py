"""SmartNoise SQL on a pandas frame; for many questions its own odometer says what each may cost."""

import pandas as pd
import snsql
from snsql import Privacy
from snsql.sql.odometer import Odometer

TINY = 1e-15
"""A delta that its counts do not use, but that it asks for."""
REGIONS = [f"region {i}" for i in range(50)]
META = {
    "": {
        "db": {
            "people": {
                "row_privacy": True,
                "rows": 1_000_000,
                "age": {"type": "float", "lower": 0, "upper": 120},
                "income": {"type": "float", "lower": 0, "upper": 500_000},
                "region": {"type": "string"},
            }
        }
    }
}


def each_of(number, epsilon, delta):
    """The largest epsilon of which so many are (epsilon, delta) together."""

    def fits(one):
        odometer = Odometer(Privacy(epsilon=one, delta=TINY))
        odometer.tol = delta - 2 * number * TINY
        odometer.spend(number)
        spent = odometer.spent
        return spent[0] <= epsilon and spent[1] <= delta

    low, high = epsilon / number, epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


class Peer:
    def __init__(self, path):
        self.data = pd.read_parquet(path)

    def _reader(self, epsilon, delta):
        privacy = Privacy(epsilon=epsilon, delta=delta)
        reader = snsql.from_df(self.data, privacy=privacy, metadata=META)
        reader._options.censor_dims = False  # all regions are public
        return reader

    def _one(self, reader, what, at, tail=""):
        return reader.execute(f"SELECT {what} FROM db.people WHERE age >= {at} {tail}")[1:]

    def count(self, at, epsilon, delta):
        return self._one(self._reader(epsilon, delta), "COUNT(*) AS n", at)[0][0]

    def mean(self, at, epsilon, delta):
        """AVG is a sum and a count, each charged: half of epsilon for each."""
        return self._one(self._reader(epsilon / 2, delta / 2), "AVG(income) AS m", at)[0][0]

    def groups(self, at, epsilon, delta):
        reader = self._reader(epsilon, delta)
        found = dict(self._one(reader, "region, COUNT(*) AS n", at, "GROUP BY region"))
        return [found.get(name, 0) for name in REGIONS]

    def many(self, ats, epsilon, delta):
        reader = self._reader(each_of(len(ats), epsilon, delta), TINY)
        for at in ats:
            yield self._one(reader, "COUNT(*) AS n", at)[0][0]

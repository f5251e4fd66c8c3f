"""`make bench`: every figure the project states, as ratios within one run."""

from __future__ import annotations

import argparse
import importlib
import os

PARTS = (
    "engines",
    "postgres",
    "spark",
    "blocks",
    "components",
    "clusters",
    "start",
    "noise",
    "ledger",
    "sql",
    "derivation",
    "service",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="which parts (all)")
    wanted = parser.parse_args().parts or PARTS
    print(f"load before: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    for part in wanted:
        print(f"\n{part}")
        for name, value, unit in importlib.import_module(f"benchmarks.{part}").figures():
            print(f"  {name:64} {value:14,.3f} {unit}", flush=True)
    print(f"\nload after: {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main()

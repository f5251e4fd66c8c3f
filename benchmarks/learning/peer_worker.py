"""Runs in .venv-peers/diffprivlib: fits it as told by JSON lines on stdin, answers on stdout.

It imports nothing of the project. Told: the model, its settings, epsilon, and a file of arrays
(x scaled by its public bounds to 0..1, y, x_test, the public centre and the greatest distance a
row can have from it). Answers: predictions, centres or components.
"""

from __future__ import annotations

import json
import signal
import sys
import warnings
from typing import Any

import numpy as np
from diffprivlib import models  # type: ignore[import-not-found]

warnings.simplefilter("ignore")


def fitted(job: dict[str, Any], data: dict[str, Any]) -> Any:
    x, y, x_test = data["x"], data["y"], data["x_test"]
    model, kept, eps = job["model"], dict(job["setting"]), job["eps"]
    bounds = (np.zeros(x.shape[1]), np.ones(x.shape[1]))
    norm = float(data["norm"]) * kept.pop("reach", 1)
    if model == "KMeans":
        found = models.KMeans(job["size"], epsilon=eps, bounds=bounds).fit(x)
        return found.cluster_centers_
    if model == "PCA":
        found = models.PCA(job["size"], epsilon=eps, bounds=bounds, data_norm=norm).fit(x)
        return found.components_
    if model == "LinearRegression":
        ends = tuple(job["ends"])
        found = models.LinearRegression(epsilon=eps, bounds_X=bounds, bounds_y=ends)
        return found.fit(x, y).predict(x_test)
    if model == "LogisticRegression":
        found = models.LogisticRegression(epsilon=eps, data_norm=norm, max_iter=1000, **kept)
        return found.fit(x - data["centre"], y).predict(x_test - data["centre"])
    if model == "GaussianNB":
        found = models.GaussianNB(epsilon=eps, bounds=bounds)
    else:
        classes = np.arange(job["classes"])
        found = getattr(models, model)(epsilon=eps, bounds=bounds, classes=classes, **kept)
    return found.fit(x, y).predict(x_test)


def out_of_time(number: int, frame: object) -> None:
    raise TimeoutError("out of time")


def main() -> None:
    signal.signal(signal.SIGVTALRM, out_of_time)  # CPU time: others may be busy
    path, data = "", dict[str, Any]()
    for line in sys.stdin:
        job = json.loads(line)
        if job["path"] != path:
            path = job["path"]
            with np.load(path) as file:
                data = dict(file)
        signal.setitimer(signal.ITIMER_VIRTUAL, job["seconds"])
        try:
            reply = {"result": np.asarray(fitted(job, data)).tolist()}
        except Exception as error:  # noqa: BLE001  # told to who asked
            reply = {"error": f"{type(error).__name__}: {error}"[:200]}
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()

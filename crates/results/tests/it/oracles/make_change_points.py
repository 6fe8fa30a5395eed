"""Writes change_points.json: how ruptures divides series into segments.

The series are natural logarithms of rates around 1 Mpps, drawn from numpy's
PCG64 with the seed that the case names. The noise is measured here once more,
and the penalty is the one that the case names; PELT and the plain dynamic
program over the number of segments must agree before a case is written.
"""

import json
import math
import pathlib

import numpy as np
import ruptures

LENGTHS = {"none": [5, 12, 40, 100], "step": [8, 15, 30, 60, 100], "two steps": [12, 40, 100],
           "drift": [20, 60], "many steps": [60, 100], "ties": [24, 50], "spike": [16, 40]}


def series(kind, n, random):
    place = np.arange(n)
    level = {
        "none": np.zeros(n),
        "step": np.where(place >= 2 * n // 3, -0.05, 0.0),
        "two steps": np.where((place >= n // 3) & (place < 3 * n // 4), 0.03, 0.0),
        "drift": 0.001 * place,
        "many steps": 0.04 * ((place // 10) % 3),
        "ties": np.where(place >= n // 2, 0.03, 0.0),
        "spike": np.where(place == n // 2, -0.1, 0.0),
    }[kind]
    logs = math.log(1e6) + level + 0.01 * random.standard_normal(n)
    return np.round(logs, 2) if kind == "ties" else logs


def noise(logs):
    """Standard deviation of the noise from the differences of neighbours."""
    return float(np.median(np.abs(np.diff(logs))) / 0.6744897501960817 / math.sqrt(2))


def cases():
    seed = 0
    for kind, lengths in LENGTHS.items():
        for n in lengths:
            seed += 1
            logs = series(kind, n, np.random.default_rng(seed))
            scale = noise(logs)
            penalty = 3 * math.log(n) * (1 + (9 / n) ** 1.5)
            scaled = (logs - np.median(logs)) / scale
            pelt = ruptures.Pelt(model="l2", min_size=2, jump=1).fit(scaled).predict(pen=penalty)
            cost = ruptures.costs.CostL2().fit(scaled).sum_of_costs(pelt)
            for segments in range(1, min(n // 2, 9) + 1):
                exact = ruptures.Dynp(model="l2", min_size=2, jump=1).fit(scaled)
                other = exact.predict(n_bkps=segments - 1) if segments > 1 else [n]
                total = ruptures.costs.CostL2().fit(scaled).sum_of_costs(other)
                assert total + penalty * (segments - 1) >= cost + penalty * (len(pelt) - 1) - 1e-9
            yield {
                "name": f"{kind}, {n} points, seed {seed}",
                "logs": logs.tolist(),
                "scale": scale,
                "penalty": penalty,
                "change_points": pelt[:-1],
            }


lines = ",\n".join(json.dumps(case) for case in cases())
pathlib.Path(__file__).with_name("change_points.json").write_text(f"[\n{lines}\n]\n")

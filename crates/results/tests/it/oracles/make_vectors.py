"""Writes vectors.json: what other programs say about the statistics here.

Each function returns the cases of one statistic. A case holds its input and
what the oracle answers, every float in its shortest exact form. Rates are in
packets per second; comparisons are of natural logarithms, `b` over `a`.

All draws come from numpy's PCG64 with the seed that the case names.
"""

import itertools
import json
import math
import pathlib
import statistics
from fractions import Fraction

import diptest
import mpmath
import numpy as np
import pandas
import statsmodels.formula.api as formula
from savvi.linear_regression import log_bf
from scipy import integrate, optimize, special, stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import ttost_ind, ttost_paired
from statsmodels.tsa.stattools import acf

mpmath.mp.dps = 30
CONFIDENCES = [80.0, 90.0, 95.0, 98.0, 99.0, 99.9]
POWER = 0.9


def lists():
    """Lists of figures: easy ones and those that lose digits."""
    random = np.random.default_rng(1)
    small = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]
    # base + step * (i * factor % modulus) for i below count: exact everywhere.
    many = {"base": 14.88e6, "step": 0.5, "factor": 7919, "modulus": 100_003, "count": 100_000}
    return {
        "two": [1.0, 2.0],
        "two far apart": [1.0, 1e9],
        "three": [1488e3, 1473e3, 1495e3],
        "three beside 1e15": [1e15, 1e15 + 1, 1e15 + 3],
        "ten beside 1e15": [1e15 + k for k in (4, 7, 13, 16, 10, 1, 2, 9, 30, 5)],
        "small": small,
        "ties": [2.0, 2.0, 2.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0],
        "equal": [14.88e6] * 7,
        "thousandths of nothing": [1e-9 * v for v in small],
        "rates near 1": random.normal(1.0, 1e-3, 25).tolist(),
        "rates near 1e9": random.normal(1e9, 1e7, 40).tolist(),
        "heavy lower tail": (1e6 * (1 - random.exponential(0.02, 31))).tolist(),
        "100,000": many,
        "100,000 beside 1e15": {**many, "base": 1e15, "step": 1.0},
    }


def values_of(data):
    """The figures themselves."""
    if isinstance(data, list):
        return data
    base, step, factor, modulus = (data[k] for k in ("base", "step", "factor", "modulus"))
    return [base + step * (i * factor % modulus) for i in range(data["count"])]


def t_critical(confidence, df):
    """Two-sided quantile of Student's t by scipy."""
    return float(stats.t.isf((100 - confidence) / 200, df))


def summaries():
    """Moments by exact fractions (numpy's lose digits beside 1e15), quantiles by
    numpy, intervals by scipy."""
    cases = []
    for name, data in lists().items():
        values = values_of(data)
        n = len(values)
        exact = [Fraction(v) for v in values]
        mean = sum(exact) / n
        variance = sum((v - mean) ** 2 for v in exact) / (n - 1)
        sd = float(mpmath.sqrt(mpmath.mpf(variance.numerator) / variance.denominator))
        assert sd == 0 or abs(statistics.stdev(values) / sd - 1) < 1e-14
        intervals, medians = {}, {}
        for confidence in CONFIDENCES:
            half = t_critical(confidence, n - 1) * sd / math.sqrt(n)
            intervals[confidence] = [float(mean - Fraction(half)), float(mean + Fraction(half))]
            if n < 1000:
                found = stats.quantile_test(values, p=0.5).confidence_interval(confidence / 100)
                ends = [float(found.low), float(found.high)]
                medians[confidence] = None if np.isnan(ends).any() else ends
        probabilities = [0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0]
        cases.append(
            {
                "name": name,
                "values": data,
                "mean": float(mean),
                "sd": sd,
                "median": float(np.median(values)),
                "quantiles": [[p, float(np.quantile(values, p))] for p in probabilities],
                "mean_intervals": [[c, *ends] for c, ends in intervals.items()],
                "median_intervals": [[c, ends] for c, ends in medians.items()],
            }
        )
    return cases


def t_quantiles():
    """Two-sided quantiles of Student's t: mpmath inverts the incomplete beta."""
    cases = []
    for df in [1, 1.5, 2, 3, 4.241729735517912, 7, 19, 198, 99_998]:
        for confidence in [50.5, *CONFIDENCES]:
            tail = (100 - mpmath.mpf(confidence)) / 100

            def miss(t, df=mpmath.mpf(df), tail=tail):
                return mpmath.betainc(df / 2, 0.5, 0, df / (df + t * t), regularized=True) - tail

            value = mpmath.findroot(miss, t_critical(confidence, df))
            cases.append({"name": f"df {df} at {confidence} %", "df": df,
                          "confidence": confidence, "t": float(value)})
    return cases


def largest_scatter(df):
    """Upper 90 % limit of the true scatter over the one that is seen."""
    return math.sqrt(df / float(stats.chi2.ppf(0.1, df)))


def power_of(delta, critical, df):
    """Chance that |t| exceeds `critical` for a noncentral t, by quadrature over
    the logarithm of the standard error's own chi distribution."""

    def weight(x):
        return math.exp(df * (x - math.expm1(2 * x) / 2))

    def found(x):
        centre = critical * math.exp(x)
        return weight(x) * (special.ndtr(delta - centre) + special.ndtr(-delta - centre))

    width = 1 / math.sqrt(2 * df)
    lowest, highest = -40 / df - 1, min(9 * width, 3.0)
    # Pieces about the density's peak and about where the test turns.
    turn = math.log(max(delta, 1e-3) / critical)
    cuts = [k * width for k in (-20, -6, -2, 0, 2)]
    cuts += [turn + k / (1 + delta) for k in (-20, -4, 0, 4, 20)]
    cuts = [lowest, *sorted(c for c in cuts if lowest < c < highest), highest]

    def integral(f):
        pieces = zip(cuts, cuts[1:])
        return sum(integrate.quad(f, *ends, epsabs=1e-16, epsrel=1e-13, limit=200)[0] for ends in pieces)

    return integral(found) / integral(weight)


MULTIPLES = {}


def detectable_multiple(confidence, df, power=POWER):
    """The effect in standard errors that is found with that chance."""
    key = (confidence, df, power)
    if key not in MULTIPLES:
        critical = t_critical(confidence, df)
        guess = critical + float(stats.t.ppf(power, df))
        MULTIPLES[key] = optimize.brentq(
            lambda d: power_of(d, critical, df) - power, 0.2 * guess, 2 * guess, xtol=1e-14, rtol=1e-15
        )
    return MULTIPLES[key]


def powers():
    """Detectable multiples; statsmodels' noncentral t is good for six digits."""
    cases = []
    for df in [1, 2, 4, 4.241729735517912, 9, 19, 99, 999]:
        for confidence, power in [(95.0, 0.9), (80.0, 0.9), (99.0, 0.8)]:
            multiple = detectable_multiple(confidence, df, power)
            if df >= 4 and df == int(df):
                theirs = TTestPower().solve_power(
                    nobs=df + 1, alpha=1 - confidence / 100, power=power, alternative="two-sided"
                ) * math.sqrt(df + 1)
                assert abs(theirs / multiple - 1) < 1e-5, (df, theirs, multiple)
            cases.append({"name": f"df {df} at {confidence} %, power {power}", "df": df,
                          "confidence": confidence, "power": power, "multiple": multiple})
    return cases


def normal_rates(seed, n, level=1.4e6, cv=0.01, shift=0.0):
    """Rates whose logarithms are normal."""
    return np.exp(np.random.default_rng(seed).normal(math.log(level) + shift, cv, n)).tolist()


def by_t(effect, se, df, confidence, p):
    """What is said of an effect on the log scale."""
    wide, narrow = t_critical(confidence, df), t_critical(2 * confidence - 100, df)
    return {
        "ratio": math.exp(effect),
        "interval": [math.exp(effect - wide * se), math.exp(effect + wide * se)],
        "equivalence": [math.exp(effect - narrow * se), math.exp(effect + narrow * se)],
        "p": p,
        "mde": math.expm1(detectable_multiple(confidence, df) * se * largest_scatter(df)),
    }


def unblocked_inputs():
    """Two lists each."""
    return {
        "unequal numbers": (normal_rates(11, 5), normal_rates(12, 7, shift=0.02)),
        "three and three": (normal_rates(13, 3), normal_rates(14, 3, shift=-0.01)),
        "two and two": (normal_rates(15, 2), normal_rates(16, 2, shift=0.03)),
        "variances 1 to 1e12": (normal_rates(17, 6, cv=1e-8), normal_rates(18, 9, cv=1e-2)),
        "ties": ([100.0, 101.0, 101.0, 102.0, 103.0], [101.0, 101.0, 102.0, 104.0, 105.0, 105.0]),
        "rates near 1": (normal_rates(19, 10, level=1.0), normal_rates(20, 10, level=1.0)),
        "rates near 1e9": (normal_rates(21, 20, level=1e9, cv=0.05),
                           normal_rates(22, 18, level=1e9, cv=0.002, shift=0.01)),
        "a log ratio of 1e-9": (normal_rates(23, 12), normal_rates(23, 12, shift=1e-9)),
        "p of 1e-30": (normal_rates(25, 20, cv=0.003), normal_rates(26, 20, cv=0.003, shift=0.1)),
        "p of 1e-80": (normal_rates(25, 60, cv=0.003), normal_rates(26, 60, cv=0.003, shift=0.1)),
        "one of them without scatter": ([1e6] * 5, normal_rates(27, 5, level=1e6)),
        "equivalent": (normal_rates(28, 20), normal_rates(29, 20)),
        "a hundred": (normal_rates(30, 100), normal_rates(31, 100, shift=0.002)),
    }


def unblocked():
    """Welch's t on logs, TOST with its variances, the rank sum beside."""
    cases = []
    for name, (a, b) in unblocked_inputs().items():
        log_a, log_b = np.log(a), np.log(b)
        effect = float(log_b.mean() - log_a.mean())
        for confidence, margin in [(95.0, 0.02), (80.0, 0.05), (99.9, 0.005)]:
            found = stats.ttest_ind(log_b, log_a, equal_var=False)
            ends = found.confidence_interval(confidence / 100)
            se, df = effect / float(found.statistic), float(found.df)
            expected = by_t(effect, se, df, confidence, float(found.pvalue))
            theirs = [math.exp(ends.low), math.exp(ends.high)]
            assert np.allclose(expected["interval"], theirs, rtol=1e-12)
            bound = math.log1p(margin)
            tost = ttost_ind(log_b, log_a, -bound, bound, usevar="unequal")[0]
            cases.append(
                {"name": f"{name} at {confidence} %", "a": a, "b": b, "confidence": confidence,
                 "margin": margin, "t": expected,
                 "within_margin": bool(tost < 1 - confidence / 100),
                 "rank": rank_sum(log_a, log_b, confidence)}
            )
    return cases


def blocked_inputs():
    """Blocks of (baseline runs, candidate runs)."""

    def blocks(seed, sizes, cv=0.01, shift=0.0, drift=0.03, level=1.4e6):
        random = np.random.default_rng(seed)
        made = []
        for n_a, n_b in sizes:
            centre = math.log(level) + random.normal(0, drift)
            runs = [np.exp(random.normal(centre + by, cv, n)).tolist()
                    for n, by in ((n_a, 0.0), (n_b, shift))]
            made.append(runs)
        return made

    pair = (1, 1)
    tied = [[[100.0], [101.0]]] * 3 + [[[100.0], [102.0]]] * 3 + [[[100.0], [100.0]], [[102.0], [100.0]]]
    return {
        "two pairs": blocks(41, [pair] * 2),
        "three pairs": blocks(42, [pair] * 3, shift=0.02),
        "six pairs": blocks(43, [pair] * 6, cv=0.004),
        "eight pairs": blocks(44, [pair] * 8, shift=-0.012),
        "twelve pairs": blocks(45, [pair] * 12, shift=0.01),
        "forty pairs": blocks(46, [pair] * 40, shift=0.005),
        "tied pairs": tied,
        "pairs with p of 1e-30": blocks(47, [pair] * 30, cv=0.001, shift=0.2),
        "pairs 1e-9 apart": [[[a], [a * (1 + 1e-9 * (1 + k % 3)) * math.exp(0.01 * (-1) ** k)]]
                             for k, a in enumerate(normal_rates(48, 10))],
        "three blocks of four": blocks(49, [(2, 2)] * 3, shift=0.02),
        "five blocks of four": blocks(50, [(2, 2)] * 5, shift=-0.008),
        "unequal blocks": blocks(51, [(1, 2), (3, 1), (2, 2), (2, 3)], shift=0.015),
        "rates near 1": blocks(52, [(2, 2)] * 4, level=1.0),
        "rates near 1e9": blocks(53, [(2, 1)] * 5, level=1e9, cv=0.05),
        "eleven pairs that are the same": blocks(54, [pair] * 11, cv=0.003),
    }


def blocked():
    """Least squares with block effects, for pairs the same as the paired t;
    the randomisation test by enumeration; signed ranks beside."""
    cases = []
    for name, blocks in blocked_inputs().items():
        logs = [(np.log(a), np.log(b)) for a, b in blocks]
        table = pandas.DataFrame(
            [(i, arm, y) for i, both in enumerate(logs) for arm in (0, 1) for y in both[arm]],
            columns=["block", "arm", "y"],
        )
        # Centred by block, which changes nothing but spares digits.
        table["y"] -= table.groupby("block")["y"].transform("mean")
        fit = formula.ols("y ~ C(block) + arm", table).fit()
        effect, se = float(fit.params["arm"]), float(fit.bse["arm"])
        p, df = float(fit.pvalues["arm"]), float(fit.df_resid)
        pairs = all(len(a) == len(b) == 1 for a, b in blocks)
        differences = np.array([b.mean() - a.mean() for a, b in logs])
        if pairs:
            related = stats.ttest_rel([b[0] for _, b in logs], [a[0] for a, _ in logs])
            assert p < 1e-12 or abs(related.pvalue / p - 1) < 1e-9, (name, related.pvalue, p)
            effect, p = float(differences.mean()), float(related.pvalue)
            se = effect / float(related.statistic)
        exact = Assignments(logs) if number_of_assignments(blocks) <= 8192 else None
        if exact and pairs and name != "tied pairs":
            theirs = stats.permutation_test(
                (np.array([b[0] for _, b in logs]), np.array([a[0] for a, _ in logs])),
                lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=np.inf,
            ).pvalue
            assert abs(theirs - exact.p()) < 1e-12, (name, theirs, exact.p())
        for confidence, margin in [(95.0, 0.02), (80.0, 0.05), (99.9, 0.005)]:
            within = None
            if pairs:
                bound = math.log1p(margin)
                zeros = np.zeros_like(differences)
                within = bool(ttost_paired(differences, zeros, -bound, bound)[0] < 1 - confidence / 100)
            cases.append(
                {"name": f"{name} at {confidence} %", "blocks": blocks, "confidence": confidence,
                 "margin": margin, "t": by_t(effect, se, df, confidence, p),
                 "t_within_margin": within,
                 "exact": exact and exact.answer(confidence),
                 "rank": signed_rank(differences, confidence)}
            )
    return cases


def number_of_assignments(blocks):
    """Ways to give each block's runs to the two variants."""
    return math.prod(math.comb(len(a) + len(b), len(b)) for a, b in blocks)


class Assignments:
    """The within-block randomisation test by its definition."""

    def __init__(self, logs):
        # An assignment's effect when the candidate's runs are shifted back by
        # theta is effects - theta * shifts.
        self.effects, self.shifts = np.zeros(1), np.zeros(1)
        observed, shifted = 0.0, 0.0
        for a, b in logs:
            runs, arm = np.concatenate([a, b]), np.repeat([0.0, 1.0], [len(a), len(b)])
            runs = runs - runs.mean()
            weight = len(a) * len(b) / len(runs)
            effects, shifts = [], []
            for chosen in itertools.combinations(range(len(runs)), len(b)):
                mask = np.isin(np.arange(len(runs)), chosen)
                effects.append(weight * (runs[mask].mean() - runs[~mask].mean()))
                shifts.append(weight * (arm[mask].mean() - arm[~mask].mean()))
            # The observed one is the last combination: the candidates come last.
            observed, shifted = observed + effects[-1], shifted + shifts[-1]
            self.effects = np.add.outer(self.effects, effects).ravel()
            self.shifts = np.add.outer(self.shifts, shifts).ravel()
        self.observed, self.shifted = observed, shifted

    def counts(self, theta):
        """Assignments at least as large as the observed one, and at most."""
        against = self.effects - theta * self.shifts - (self.observed - theta * self.shifted)
        return int((against >= -1e-13).sum()), int((against <= 1e-13).sum())

    def p(self):
        return min(1.0, 2 * min(self.counts(0.0)) / len(self.effects))

    def end(self, side, confidence):
        """Bisects for the end of what is not rejected; side 0 the lower."""
        allowed = math.floor(len(self.effects) * (1 - confidence / 100) / 2 + 1e-9)
        rejected, kept = (-10.0, 10.0) if side == 0 else (10.0, -10.0)
        if self.counts(rejected)[side] > allowed:
            return None
        for _ in range(70):
            middle = 0.5 * (rejected + kept)
            if self.counts(middle)[side] > allowed:
                kept = middle
            else:
                rejected = middle
        return math.exp(0.5 * (rejected + kept))

    def answer(self, confidence):
        ends = [self.end(side, confidence) for side in (0, 1)]
        return {"assignments": len(self.effects), "p": self.p(),
                "interval": None if None in ends else ends}


def signed_rank(differences, confidence):
    """Walsh averages; the null counts of the sum of positive ranks."""
    n = len(differences)
    averages = [(x + y) / 2 for x, y in itertools.combinations_with_replacement(differences, 2)]
    counts = [1]
    for rank in range(1, n + 1):
        counts = [x + y for x, y in zip(counts + [0] * rank, [0] * rank + counts)]
    answer = shift(averages, counts, confidence)
    if answer and len(set(np.abs(differences))) == n and 0 not in differences:
        theirs = stats.wilcoxon(differences, method="exact").pvalue
        assert abs(theirs / answer["p"] - 1) < 1e-9, (theirs, answer)
    return answer


def rank_sum(log_a, log_b, confidence):
    """Differences of all pairs; the null counts of Mann and Whitney's U."""
    m, n = len(log_a), len(log_b)
    differences = [y - x for x in log_a for y in log_b]
    # Gaussian binomial coefficient: the partitions that fit an m by n box.
    counts = [1]
    for k in range(1, m + 1):
        counts = times_one_minus_power(counts, n + k)
        counts = divided_by_one_minus_power(counts, k)
    answer = shift(differences, counts, confidence)
    if answer and len(set(log_a) | set(log_b)) == m + n:
        theirs = stats.mannwhitneyu(log_b, log_a, method="exact").pvalue
        assert abs(theirs / answer["p"] - 1) < 1e-9, (theirs, answer)
    return answer


def times_one_minus_power(polynomial, k):
    padded = polynomial + [0] * k
    return [c - (padded[i - k] if i >= k else 0) for i, c in enumerate(padded)]


def divided_by_one_minus_power(polynomial, k):
    out = []
    for i, c in enumerate(polynomial):
        out.append(c + (out[i - k] if i >= k else 0))
    return out[: len(out) - k]


def shift(candidates, counts, confidence):
    """Hodges and Lehmann's estimate and the order statistics that end its
    interval; values of exactly 0 speak for 0."""
    total = sum(counts)
    tail = (1 - Fraction(confidence) / 100) / 2
    below = list(itertools.accumulate(counts))
    skip = sum(1 for c in below if Fraction(c, total) <= tail)
    if skip == 0:
        return None
    most = max(sum(c > 0 for c in candidates), sum(c < 0 for c in candidates))
    ordered = sorted(candidates)
    return {
        "ratio": math.exp(np.median(ordered)),
        "interval": [math.exp(ordered[skip - 1]), math.exp(ordered[-skip])],
        "p": min(1.0, float(Fraction(2 * sum(counts[most:]), total))),
    }


def ministat():
    """Pooled t as ministat prints it: its table of t has three decimals."""
    cases = []
    inputs = {
        "different": ([1488e3, 1473e3, 1495e3, 1466e3, 1481e3], [1459e3, 1450e3, 1462e3, 1441e3, 1449e3]),
        "not proven": ([1488e3, 1473e3, 1495e3], [1480e3, 1470e3, 1499e3]),
        "unequal numbers": (normal_rates(61, 12), normal_rates(62, 4, shift=0.03)),
        "three and three": (normal_rates(63, 3, cv=0.001), normal_rates(64, 3, shift=0.05, cv=0.001)),
    }
    for name, (a, b) in inputs.items():
        for confidence in [80.0, 90.0, 95.0, 98.0, 99.0]:
            found = stats.ttest_ind(b, a, equal_var=True)
            critical = math.floor(1000 * t_critical(confidence, found.df) + 0.5) / 1000
            change = np.mean(b) - np.mean(a)
            se = change / found.statistic
            pooled = se / math.sqrt(1 / len(a) + 1 / len(b))
            proven = bool(abs(change) > critical * se)
            lines = [f"\t{change:.6g} +/- {critical * se:.6g}",
                     f"\t(Student's t, pooled s = {pooled:.6g})"]
            cases.append({"name": f"{name} at {confidence} %", "a": a, "b": b,
                          "confidence": confidence, "lines": lines if proven else
                          [f"No difference proven at {confidence:.1f}% confidence"]})
    return cases


def families():
    """Holm and Benjamini-Hochberg by statsmodels."""
    random = np.random.default_rng(71)
    inputs = {
        "five": [0.01, 0.04, 0.03, 0.005, 0.2],
        "ties": [0.02, 0.02, 0.02, 0.5, 0.5, 1.0],
        "one": [0.03],
        "tiny": [1e-300, 1e-20, 1e-5, 0.04, 0.9],
        "forty": (random.uniform(0, 1, 40) ** 3).tolist(),
    }
    return [{"name": name, "p": p, "holm": multipletests(p, method="holm")[1].tolist(),
             "benjamini_hochberg": multipletests(p, method="fdr_bh")[1].tolist()}
            for name, p in inputs.items()]


def orders():
    """Trend over the order by linregress, lag-1 correlation by acf."""
    random = np.random.default_rng(81)
    inputs = {
        "drifting": [10.0, 11.0, 9.5, 12.0, 12.5, 11.8, 13.0, 12.2],
        "three": [5.0, 7.0, 6.0],
        "noise near 1e9": random.normal(1e9, 1e7, 30).tolist(),
        "steep": [float(1000 + 10 * i + (i * 7 % 5)) for i in range(40)],
        "walk": (1e6 + 1e3 * np.cumsum(random.normal(0, 1, 60))).tolist(),
    }
    cases = []
    for name, y in inputs.items():
        line = stats.linregress(np.arange(len(y)), np.array(y) / np.mean(y) - 1)
        cases.append({"name": name, "figures": y, "slope": float(line.slope),
                      "p": float(line.pvalue), "lag1": float(acf(y, nlags=1, fft=False)[1])})
    return cases


def e_process():
    """Natural logarithm of the evidence by savvi, prior variance 1 (g = 1)."""
    return [{"name": f"n {n}, t {t}", "n": n, "t": t,
             "log_e": float(log_bf(np.float64(t * t), n - 1, 1.0, float(n)))}
            for n in [2, 3, 6, 10, 50, 1000] for t in [0.0, 1e-6, 0.5, 2.0, 4.5, 30.0, 1e5]]


def obrien_fleming():
    """Bounds of |z| at equally spaced looks for Lan and DeMets' spending in the
    manner of O'Brien and Fleming, each side spending half of the level (as ldbounds
    does by default), by multivariate normal rectangles."""
    cases = []
    for looks in [1, 2, 3]:
        for level in [0.05, 0.01]:
            share = np.arange(1, looks + 1) / looks
            spent = 4 * stats.norm.sf(stats.norm.isf(level / 4) / np.sqrt(share))
            covariance = np.sqrt(np.minimum.outer(share, share) / np.maximum.outer(share, share))
            bounds = []
            for k in range(looks):

                def stays(z, k=k):
                    ends = np.array([*bounds, z])
                    return stats.multivariate_normal.cdf(
                        ends, mean=np.zeros(k + 1), cov=covariance[: k + 1, : k + 1],
                        lower_limit=-ends, abseps=1e-10, releps=1e-10, maxpts=2_000_000,
                        rng=np.random.default_rng(91),
                    ) - (1 - spent[k])

                bounds.append(float(optimize.brentq(stays, 1.0, 9.0, xtol=1e-9)))
            cases.append({"name": f"{looks} looks at {level}", "looks": looks, "level": level,
                          "bounds": bounds, "good_to": 1e-6})
    return cases


def grubbs():
    """Grubbs' statistic and Bonferroni's bound of its p-value by scipy's t."""
    cases = []
    for name, data in lists().items():
        x = np.array(values_of(data))
        n = len(x)
        if not 3 <= n <= 100 or x.std() == 0 or name.endswith("1e15"):
            continue
        g = float(np.abs(x - x.mean()).max() / x.std(ddof=1))
        rest = (n - 1) ** 2 - n * g * g
        t2 = n * (n - 2) * g * g / rest if n > 3 and rest > 0 else None
        if t2 is None:
            continue
        p = min(1.0, 2 * n * float(stats.t.sf(math.sqrt(t2), n - 2)))
        cases.append({"name": name, "figures": x.tolist(), "statistic": g, "p": p})
    return cases


def dips():
    """The Hartigans' dip statistic by diptest; never below 1 / (2 n), as they define it."""
    random = np.random.default_rng(101)
    inputs = {
        "one heap": random.normal(0, 1, 30).tolist(),
        "two modes": np.concatenate([random.normal(0, 1, 15), random.normal(9, 1, 12)]).tolist(),
        "even": [float(i) for i in range(20)],
        "ties": [1.0, 1.0, 1.0, 2.0, 5.0, 5.0, 5.0, 6.0],
        "three modes": [0.0, 0.1, 0.2, 5.0, 5.1, 5.2, 9.0, 9.1, 9.2, 9.3],
    }
    return [{"name": name, "figures": x, "dip": float(diptest.dipstat(np.array(x), allow_zero=False))}
            for name, x in inputs.items()]


def scalability():
    """The universal scalability law on log rates by curve_fit, one block."""
    cases = []
    for name, truth, seed in [("falls", (1e6, 0.05, 0.002), 111), ("contends", (3e6, 0.2, 0.01), 112)]:
        levels = np.repeat([1.0, 2.0, 4.0, 8.0, 16.0, 32.0], 3)

        def law(n, log_rate, sigma, kappa):
            return log_rate + np.log(n) - np.log1p(sigma * (n - 1) + kappa * n * (n - 1))

        truth = (math.log(truth[0]), *truth[1:])
        y = law(levels, *truth) + np.random.default_rng(seed).normal(0, 0.01, len(levels))
        rates = np.exp(y)
        best, covariance = optimize.curve_fit(law, levels, np.log(rates), p0=truth,
                                              ftol=1e-15, xtol=1e-15, gtol=1e-15)
        half = t_critical(95.0, len(levels) - 3) * np.sqrt(np.diag(covariance))
        cases.append({
            "name": name, "levels": levels.astype(int).tolist(), "rates": rates.tolist(),
            "lambda": math.exp(best[0]), "sigma": float(best[1]), "kappa": float(best[2]),
            "lambda_interval": [math.exp(best[0] - half[0]), math.exp(best[0] + half[0])],
            "sigma_interval": [float(best[1] - half[1]), float(best[1] + half[1])],
            "kappa_interval": [float(best[2] - half[2]), float(best[2] + half[2])],
            "good_to": 1e-5,
        })
    return cases


STATISTICS = [summaries, t_quantiles, powers, unblocked, blocked, ministat, families, orders,
              e_process, obrien_fleming, grubbs, dips, scalability]


def main():
    """One line per case, so that a change shows as the cases that changed."""
    parts = []
    for statistic in STATISTICS:
        cases = [json.dumps(case, allow_nan=False) for case in statistic()]
        parts.append(f' "{statistic.__name__}": [\n  ' + ",\n  ".join(cases) + "\n ]")
    text = "{\n" + ",\n".join(parts) + "\n}\n"
    (pathlib.Path(__file__).parent / "vectors.json").write_text(text)


if __name__ == "__main__":
    main()

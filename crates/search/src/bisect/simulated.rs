//! Histories with known changes, for testing bisections.

use super::{Bisection, Ending, Noisy, Options, Step, Verdict};
use std::f64::consts::TAU;

/// Parameters of a simulated history. Shares are relative to the first candidate's figure.
#[derive(Clone, Copy, Debug)]
pub struct History {
    /// Number of consecutive candidates.
    pub candidates: usize,
    /// Size of each change, as a share; their places are random.
    pub changes: &'static [f64],
    /// Standard deviation of a run, as a share.
    pub scatter: f64,
    /// Step of a random walk from run to run, in units of the scatter.
    pub drift: f64,
    /// Standard deviation between builds, as a share.
    pub layout: f64,
    /// Share of candidates that cannot be built.
    pub broken: f64,
    /// Share of runs that are bad starts, and their slowdown.
    pub bad: (f64, f64),
}

/// A search of a simulated history.
#[derive(Clone, Debug)]
pub struct SearchRun {
    /// True places of the changes.
    pub places: Vec<usize>,
    /// Verdict of the search.
    pub verdict: Verdict,
}

impl SearchRun {
    /// True if the verdict names one change correctly, with as little doubt as the broken
    /// candidates allow.
    pub fn is_right(&self) -> bool {
        let verdict = &self.verdict;
        match verdict.ending {
            Some(Ending::Found) => self.places.iter().any(|place| verdict.set.contains(place)),
            Some(Ending::Two) => {
                self.places.len() == 2
                    && verdict.set.contains(&self.places[0])
                    && verdict.second.contains(&self.places[1])
            }
            _ => false,
        }
    }

    /// True if the verdict names an innocent candidate.
    pub fn is_wrong(&self) -> bool {
        matches!(self.verdict.ending, Some(Ending::Found | Ending::Two)) && !self.is_right()
    }
}

/// Random numbers with a seed.
struct Random(u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn share(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.share()).ln()).sqrt() * (TAU * self.share()).cos()
    }
}

/// Searches a history that is drawn with `seed`.
pub fn search(history: History, options: Options, seed: u64) -> SearchRun {
    let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let count = history.candidates as u64 - 1;
    let mut places: Vec<usize> = Vec::new();
    while places.len() < history.changes.len() {
        let place = 1 + (random.number() % count) as usize;
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places.sort_unstable();
    let builds: Vec<f64> =
        (0..history.candidates).map(|_| history.layout * random.normal()).collect();
    let broken: Vec<bool> = (0..history.candidates)
        .map(|candidate| {
            let inside = candidate > 0 && candidate + 1 < history.candidates;
            random.share() < history.broken && inside
        })
        .collect();
    let mut walk = 0.0;
    let mut search = Bisection::Noisy(Box::new(Noisy::new(Options { seed, ..options })));
    while let Step::Measure(candidate) = search.next() {
        if broken[candidate] {
            search.skip(candidate);
            continue;
        }
        walk += history.drift * history.scatter * random.normal();
        let changes = places.iter().zip(history.changes);
        let log: f64 = (changes.filter(|(place, _)| candidate >= **place))
            .map(|(_, change)| change.ln_1p())
            .sum();
        let noise = history.scatter * random.normal();
        let (share, depth) = history.bad;
        let bad = if share > 0.0 && random.share() < share { (1.0 - depth).ln() } else { 0.0 };
        search.take(candidate, 1e6 * (log + builds[candidate] + walk + noise + bad).exp());
    }
    SearchRun { places, verdict: search.verdict() }
}

//! Scatter and layout of simulated runs.

use fwdlab_results::stats::sequential::Mode;

/// Scatter between runs with which all designs are measured: 1 %, the median of real forwarding
/// benchmarks.
pub(super) const CV: f64 = 0.01;

/// Scatter of the runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Noise {
    /// Share of the variance that drifts from run to run, and its correlation.
    pub(super) drift: f64,
    pub(super) phi: f64,
    /// Share of degraded runs, and their slowdown.
    pub(super) contamination: f64,
    pub(super) depth: f64,
    pub(super) tails: Tails,
}

/// Distribution of the part that does not drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tails {
    Normal,
    /// Student's t with 3 degrees of freedom, of the same variance.
    T3,
}

pub(super) const QUIET: Noise =
    Noise { drift: 0.0, phi: 0.9, contamination: 0.0, depth: 0.04, tails: Tails::Normal };

impl Noise {
    /// All laws under which false differences are counted.
    pub(super) fn all() -> Vec<Noise> {
        let mut all = vec![QUIET];
        for phi in [0.9, 0.98] {
            all.extend([0.25, 0.5, 0.75].map(|drift| Noise { drift, phi, ..QUIET }));
        }
        all.push(Noise { contamination: 0.05, ..QUIET });
        all.push(Noise { contamination: 0.05, drift: 0.5, ..QUIET });
        all.push(Noise { tails: Tails::T3, ..QUIET });
        all
    }

    pub(super) fn name(&self) -> String {
        let mut parts = Vec::new();
        if self.drift > 0.0 {
            parts.push(format!("drift {:.0} %, phi {}", 100.0 * self.drift, self.phi));
        }
        if self.contamination > 0.0 {
            parts.push(format!("{:.0} % bad starts", 100.0 * self.contamination));
        }
        if self.tails == Tails::T3 {
            parts.push("heavy tails (t3)".to_owned());
        }
        if parts.is_empty() { "independent runs".to_owned() } else { parts.join(", ") }
    }
}

/// Layout of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Design {
    /// Blocks of one run each, in random order.
    Pairs(u32),
    /// Blocks of two and two runs, in random order.
    Fours(u32),
    /// Two lists in one random order, without blocks.
    Lists(u32),
    /// Streams of a number of slices.
    Streams { streams: u32, slices: u32 },
    /// Blocks of one run each until a rule stops, up to `max_blocks`.
    Until { mode: Mode, max_blocks: u32 },
}

impl Design {
    pub(super) fn name(self) -> String {
        match self {
            Design::Pairs(n) => format!("{n} blocks of 1 + 1"),
            Design::Fours(n) => format!("{n} blocks of 2 + 2"),
            Design::Lists(n) => format!("{n} + {n} without blocks"),
            Design::Streams { streams, slices } => format!("{streams} streams of {slices} slices"),
            Design::Until { mode: Mode::Planned, max_blocks } => {
                format!("planned looks, up to {max_blocks} blocks")
            }
            Design::Until { mode: Mode::Open, max_blocks } => {
                format!("open-ended, up to {max_blocks} blocks")
            }
        }
    }

    /// Number of runs of each variant.
    pub(super) fn runs(self) -> u32 {
        match self {
            Design::Pairs(n) | Design::Lists(n) => n,
            Design::Fours(n) => 2 * n,
            Design::Streams { streams, .. } => streams,
            Design::Until { max_blocks, .. } => max_blocks,
        }
    }
}

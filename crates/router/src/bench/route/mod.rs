//! Packets per second that a router forwards from memory to memory, on one core.
//!
//! A generator writes headers into frames, a ring carries them to the router, another one to a
//! sink. Two figures are measured for each variant, in separate turns:
//!
//! - whole: generator, router and sink take turns on the core, batch by batch, and the figure
//!   includes all three;
//! - router alone: frames are prepared and consumed outside the timed part, which begins where the
//!   router takes batches from the first ring and ends where it has put them into the second. It
//!   includes two readings of the clock for each [`LOT`] of batches.
//!
//! Variants take turns, round by round, every second round in reverse order, so that noise of the
//! machine affects all of them. Every flow has been seen, and has its state, before the first
//! round. Every packet is counted: all generated packets must have been forwarded and have arrived,
//! or there is no result.
//!
//! The entries for a hundred destinations within one route stay in the caches, however large the
//! table; [`Variant::destinations`] are drawn from all routes of the largest table, so that nearly
//! every packet needs an entry that no cache holds. Deliberately left out: ports, several cores,
//! and the contention between them.

mod lab;
mod tables;
mod traffic;

pub use lab::{LOT, Lab};
pub use tables::Tables;
pub use traffic::{FLOWS_MAX, Traffic};

use super::Algorithm;
use crate::firewall::{RuleError, Standard};
use crate::path::{ConfigError, Snapshot};
use fwdlab_packet::Family;
use fwdlab_packet::forwarding::{ForwardingPath, Locking, StateTable};
use std::sync::Arc;
use std::time::Duration;
use tables::destinations;

/// Request for a measurement.
#[derive(Clone, Debug)]
pub struct Question {
    /// Routers; the first is the baseline.
    pub variants: Vec<Variant>,
    /// Bytes of a frame with FCS; `None` for the smallest of the family.
    pub frame_size: Option<u16>,
    /// Flows, up to [`FLOWS_MAX`]; 0 counts as 1. Variants with destinations have one flow for each
    /// of them.
    pub flows: u32,
    /// Time for each variant, over all rounds, half of it for each figure. Building tables, and
    /// preparing frames for the router alone, take additional time.
    pub time: Duration,
    /// Rounds, one of each figure for each variant; 0 counts as 1.
    pub rounds: u32,
    /// Seed of the routes.
    pub seed: u64,
}

/// A router to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Address family of packets and routes.
    pub family: Family,
    /// Routes in the table, from 2 to [`crate::routes::synthesis::ROUTES_MAX`].
    pub routes: usize,
    /// Algorithm of the table, which must support the family.
    pub fib: Algorithm,
    /// Locking of the table.
    pub locking: Locking,
    /// The path through the router.
    pub path: ForwardingPath,
    /// Rules; [`Standard::None`] disables the firewall.
    pub firewall: Standard,
    /// Storage of the states of [`Standard::Stateful`].
    pub states: StateTable,
    /// Harvest entropy from every packet.
    pub harvest: bool,
    /// Destinations, one for each flow, drawn from all routes; `None` for a hundred in one route.
    pub destinations: Option<u32>,
}

impl Variant {
    /// The fast path with two routes in the fastest table of the family and no other features.
    pub fn plain(family: Family) -> Variant {
        Variant {
            family,
            routes: 2,
            fib: match family {
                Family::Inet => Algorithm::Dir24_8,
                Family::Inet6 => Algorithm::Multibit,
            },
            locking: Locking::Lockless,
            path: ForwardingPath::Fast,
            firewall: Standard::None,
            states: StateTable::Sharded,
            harvest: false,
            destinations: None,
        }
    }

    /// Variants of the acceptance test: two routes, a million with traffic to few or all of them,
    /// the full path, a rule without state, and states of few and of a million flows.
    pub fn acceptance(family: Family) -> [Variant; 8] {
        let plain = Variant::plain(family);
        let all = Variant { destinations: Some(FLOWS_MAX), ..plain };
        [
            plain,
            Variant { routes: 1_000_000, ..plain },
            all,
            Variant { routes: 1_000_000, ..all },
            Variant { path: ForwardingPath::Full, ..plain },
            Variant { firewall: Standard::Stateless, ..plain },
            Variant { firewall: Standard::Stateful, ..plain },
            Variant { firewall: Standard::Stateful, ..all },
        ]
    }

    /// Name in tables: the differences from the plain variant, and the routes.
    pub fn name(&self) -> String {
        let family = match self.family {
            Family::Inet => "inet",
            Family::Inet6 => "inet6",
        };
        let mut name = format!("{family}, {} routes, {}", self.routes, self.fib.name());
        let plain = Variant::plain(self.family);
        let mut add = |text: &str| name.extend([", ", text]);
        if self.locking != plain.locking {
            add(self.locking.name());
        }
        if self.path != plain.path {
            add("full path");
        }
        match self.firewall {
            Standard::None => {}
            Standard::Stateful => add(&format!("stateful {}", self.states.name())),
            Standard::Stateless => add("stateless"),
            Standard::Rules(count) => add(&format!("{count} rules")),
        }
        if self.harvest {
            add("harvest");
        }
        if let Some(destinations) = self.destinations {
            add(&format!("{destinations} destinations"));
        }
        name
    }
}

/// Result of one variant.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteFigure {
    /// The router.
    pub variant: Variant,
    /// Packets per second with generator and sink, one figure for each round.
    pub whole_per_second: Vec<f64>,
    /// Packets per second of the router alone, one figure for each round.
    pub alone_per_second: Vec<f64>,
    /// Packets that were forwarded and arrived, equal to the packets generated.
    pub packets: u64,
}

/// Ratios to the first variant's figures, round by round.
pub fn ratios(rates: &[f64], first: &[f64]) -> Vec<f64> {
    rates.iter().zip(first).map(|(rate, first)| rate / first).collect()
}

/// Reason why there is no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RouteError {
    /// No room for the addresses and the stamp that packets carry.
    #[error("frames of {size} bytes: this family's have {least} to {most}")]
    FrameSize {
        /// Requested size.
        size: u16,
        /// Smallest size.
        least: u16,
        /// Largest size.
        most: u16,
    },
    /// An algorithm of the other family.
    #[error("{0} is for the other family only")]
    Algorithm(&'static str),
    /// An invalid configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Invalid rules.
    #[error(transparent)]
    Rules(#[from] RuleError),
    /// Packets were lost or left through another port.
    #[error("{name}: of {generated} packets {arrived} arrived ({what})")]
    Lost {
        /// Name of the variant.
        name: String,
        /// Packets generated.
        generated: u64,
        /// Packets that arrived at the sink.
        arrived: u64,
        /// Counters of the router.
        what: String,
    },
}

impl RouteError {
    fn lost(name: &str, generated: u64, arrived: u64, counted: &Snapshot) -> RouteError {
        let counted = counted.iter().map(|(reason, n)| format!("{} {n}", reason.name()));
        let what = counted.collect::<Vec<_>>().join(", ");
        RouteError::Lost { name: name.to_owned(), generated, arrived, what }
    }
}

/// Measures on the CPU that the calling thread runs on: pin it before.
///
/// # Errors
/// If a variant can't be built or doesn't forward every packet.
pub fn route(question: &Question) -> Result<Vec<RouteFigure>, RouteError> {
    let mut labs = labs(question)?;
    let mut figures: Vec<RouteFigure> = question
        .variants
        .iter()
        .map(|&variant| {
            let (whole_per_second, alone_per_second) = (Vec::new(), Vec::new());
            RouteFigure { variant, whole_per_second, alone_per_second, packets: 0 }
        })
        .collect();
    let rounds = question.rounds.max(1);
    let time = question.time / rounds / 2;
    for round in 0..rounds {
        let mut turn = |(lab, figure): (&mut Lab, &mut RouteFigure)| {
            // Warms the caches, so that they are as in steady traffic rather than after a pause.
            lab.all_flows();
            figure.whole_per_second.push(lab.whole(time));
            figure.alone_per_second.push(lab.alone(time));
        };
        let pairs = labs.iter_mut().zip(&mut figures);
        if round % 2 == 0 { pairs.for_each(&mut turn) } else { pairs.rev().for_each(&mut turn) }
    }
    for (lab, figure) in labs.iter_mut().zip(&mut figures) {
        figure.packets = lab.check()?;
    }
    Ok(figures)
}

/// Creates a lab for each variant, with all flows seen.
fn labs(question: &Question) -> Result<Vec<Lab>, RouteError> {
    let mut tables = Tables::new(question.seed);
    let mut traffics: Vec<(_, Arc<Traffic>)> = Vec::new();
    let lab = |variant: &Variant| {
        let key = (variant.family, variant.destinations);
        let known = traffics.iter().find(|(known, _)| *known == key);
        let traffic = match known {
            Some((_, traffic)) => Arc::clone(traffic),
            None => {
                let flows = variant.destinations.unwrap_or(question.flows);
                let mut made = Traffic::new(variant.family, question.frame_size, flows)?;
                if let Some(count) = variant.destinations {
                    made = made.towards(destinations(variant.family, count, question.seed));
                }
                let made = Arc::new(made);
                traffics.push((key, Arc::clone(&made)));
                made
            }
        };
        let mut lab = Lab::new(variant, &mut tables, traffic)?;
        lab.all_flows();
        lab.check()?;
        Ok(lab)
    };
    question.variants.iter().map(lab).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(variants: Vec<Variant>) -> Question {
        let time = Duration::ZERO;
        Question { variants, frame_size: None, flows: 300, time, rounds: 2, seed: 1 }
    }

    #[test]
    fn all_variants_forward_every_packet() {
        let mut variants = Vec::new();
        for family in [Family::Inet, Family::Inet6] {
            let plain = Variant { routes: 50, ..Variant::plain(family) };
            let fibs = Algorithm::ALL.into_iter().filter(|fib| fib.knows(family));
            variants.extend(fibs.map(|fib| Variant { fib, ..plain }));
            variants.extend(Locking::ALL.map(|locking| Variant { locking, ..plain }));
            variants.push(Variant { path: ForwardingPath::Full, harvest: true, ..plain });
            variants.push(Variant { firewall: Standard::Rules(3), ..plain });
            let stateful = Variant { firewall: Standard::Stateful, ..plain };
            variants.extend(StateTable::ALL.map(|states| Variant { states, ..stateful }));
            variants.extend([2, 50].map(|routes| Variant {
                routes,
                destinations: Some(500),
                ..stateful
            }));
        }
        let figures = route(&question(variants.clone())).expect("figures");
        assert!(figures.iter().map(|figure| figure.variant).eq(variants));
        for figure in &figures {
            let rates = figure.whole_per_second.iter().chain(&figure.alone_per_second);
            assert_eq!(rates.filter(|&&rate| rate > 0.0).count(), 4, "{figure:?}");
            assert!(figure.packets >= 300, "{figure:?}");
        }
        let names: std::collections::HashSet<_> =
            figures.iter().map(|f| f.variant.name()).collect();
        // The plain and the lockless variant are the fastest table itself.
        assert_eq!(names.len(), figures.len() - 2);
    }

    #[test]
    fn invalid_requests_are_errors() {
        let plain = Variant::plain(Family::Inet6);
        let other = Variant { fib: Algorithm::Dir24_8, ..plain };
        let error = route(&question(vec![other])).expect_err("no such table");
        assert_eq!(error, RouteError::Algorithm("dir24_8"));
        let small = Question { frame_size: Some(64), ..question(vec![plain]) };
        let error = route(&small).expect_err("no room");
        assert_eq!(error.to_string(), "frames of 64 bytes: this family's have 84 to 1518");
    }

    #[test]
    fn ratios_compare_the_same_round() {
        assert_eq!(ratios(&[2.0, 9.0], &[4.0, 3.0]), [0.5, 3.0]);
    }
}

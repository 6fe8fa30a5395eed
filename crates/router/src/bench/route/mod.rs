//! How many packets a second a router forwards from memory to memory, on one core.
//!
//! A generator writes headers into frames, a ring carries them to the router, another
//! to a sink. Two figures are taken of each variant, in turns of their own:
//!
//! - the whole: all three take turns on the core, batch by batch, and all that they do
//!   is in the figure;
//! - the router alone: frames are prepared and sunk outside the timed part, which begins
//!   where the router takes batches from the one ring and ends where it has put them
//!   into the other. Two looks at the clock for each [`LOT`] of batches are in it.
//!
//! Variants take turns, round by round, every second round the other way about, so that
//! what the machine does meanwhile meets all of them. Every flow has been seen, and has
//! its state, before the first round. Every packet is counted: all that were generated
//! must have been forwarded and arrived, or there is no figure.
//!
//! Of a hundred destinations within one route the entries stay in the caches, however large
//! the table; [`Variant::destinations`] are drawn from all routes of the largest table, so that
//! nearly every packet meets an entry that no cache holds. Deliberately left out: ports, several
//! cores, and what they cost each other.

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

/// What is measured.
#[derive(Clone, Debug)]
pub struct Question {
    /// Routers; the first is what the others are compared with.
    pub variants: Vec<Variant>,
    /// Bytes of a frame with FCS; `None` is the smallest of the family.
    pub frame_size: Option<u16>,
    /// Flows, up to [`FLOWS_MAX`]; 0 counts as 1. Where variants have destinations, there are as
    /// many flows as these.
    pub flows: u32,
    /// Time for each variant, all rounds together, half of it for either figure. Building
    /// tables, and preparing frames for the router alone, come on top.
    pub time: Duration,
    /// Rounds, one of each figure a variant; 0 counts as 1.
    pub rounds: u32,
    /// Seed of the routes.
    pub seed: u64,
}

/// A router that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Address family of packets and routes.
    pub family: Family,
    /// Routes in the table, from 2 to [`crate::routes::synthesis::ROUTES_MAX`].
    pub routes: usize,
    /// Their algorithm, which must know the family.
    pub fib: Algorithm,
    /// Their lock.
    pub locking: Locking,
    /// The path through the router.
    pub path: ForwardingPath,
    /// Rules; with [`Standard::None`] there is no firewall at all.
    pub firewall: Standard,
    /// Where the states of [`Standard::Stateful`] are kept.
    pub states: StateTable,
    /// Harvest entropy from every packet.
    pub harvest: bool,
    /// Destinations, each of a flow, drawn from all routes; `None` is a hundred of one route.
    pub destinations: Option<u32>,
}

impl Variant {
    /// The fast path with two routes in the fastest table of the family, and nothing
    /// else.
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

    /// What the router must reach: two routes, a million, of which few or all are met, the full
    /// path, a rule without state, and states, of few and of a million flows.
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

    /// Name in tables: what differs from the plain variant, and the routes.
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

/// What one variant reached.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteFigure {
    /// The router.
    pub variant: Variant,
    /// Packets a second with generator and sink, one figure for each round.
    pub whole_per_second: Vec<f64>,
    /// Packets a second of the router alone, likewise.
    pub alone_per_second: Vec<f64>,
    /// Packets that were forwarded and arrived, all there were.
    pub packets: u64,
}

/// Ratios to the first variant's figures, round by round.
pub fn ratios(rates: &[f64], first: &[f64]) -> Vec<f64> {
    rates.iter().zip(first).map(|(rate, first)| rate / first).collect()
}

/// Why there is no figure.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RouteError {
    /// No room for the addresses and the stamp that packets carry.
    #[error("frames of {size} bytes: this family's have {least} to {most}")]
    FrameSize {
        /// Asked for.
        size: u16,
        /// The smallest.
        least: u16,
        /// The largest.
        most: u16,
    },
    /// An algorithm of the other family.
    #[error("{0} is for the other family only")]
    Algorithm(&'static str),
    /// The router can't be set up so.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The rules can't be meant.
    #[error(transparent)]
    Rules(#[from] RuleError),
    /// Packets were lost, or came out elsewhere.
    #[error("{name}: of {generated} packets {arrived} arrived ({what})")]
    Lost {
        /// The variant's.
        name: String,
        /// Packets that went in.
        generated: u64,
        /// Packets that came out where they should.
        arrived: u64,
        /// The router's counters.
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

/// Measures, on the CPU that the calling thread is on: pin it before.
///
/// # Errors
/// When a variant can't be built, or doesn't forward every packet.
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
            // So that its caches are as they are while traffic flows, not as after a pause.
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

/// A lab for each variant, all flows seen.
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
    fn every_kind_of_router_gives_figures_and_loses_nothing() {
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
        // Plain, and lockless, are what the fastest table is by itself.
        assert_eq!(names.len(), figures.len() - 2);
    }

    #[test]
    fn what_cannot_be_measured_is_told() {
        let plain = Variant::plain(Family::Inet6);
        let other = Variant { fib: Algorithm::Dir24_8, ..plain };
        let error = route(&question(vec![other])).expect_err("no such table");
        assert_eq!(error, RouteError::Algorithm("dir24_8"));
        let small = Question { frame_size: Some(64), ..question(vec![plain]) };
        let error = route(&small).expect_err("no room");
        assert_eq!(error.to_string(), "frames of 64 bytes: this family's have 84 to 1518");
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        assert_eq!(ratios(&[2.0, 9.0], &[4.0, 3.0]), [0.5, 3.0]);
    }
}

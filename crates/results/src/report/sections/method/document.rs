//! Results of the method in a report: introduction, table, doubts and plots.

use super::plots::CURVES;
use super::{
    Method, MethodPoint, burst, connections, curve, directions, flood, interruption, latency,
    search, soak, suite,
};
use crate::document::Block;
use crate::plot::Drawing;
use crate::report::sections::figure;
use fwdlab_model::design::MethodKind;
use fwdlab_model::units::format_pps;

impl Method {
    /// Returns the section of a report.
    pub(in crate::report) fn section(&self, plots: &[(String, Drawing)]) -> Block {
        let mut blocks: Vec<Block> = introduction(self.kind).map(Block::text).into_iter().collect();
        if let Some(suite) = &self.suite {
            blocks.extend(suite::blocks(suite));
            blocks.extend(self.parts.iter().map(|part| part.section(plots)));
            return Block::section("RFC 2544", blocks);
        }
        if self.kind == MethodKind::Rfc9693 {
            blocks.extend(self.parts.iter().map(|part| part.section(plots)));
            return Block::section("RFC 9693", blocks);
        }
        if !self.parts.is_empty() {
            // The requested latencies come first, then the search that they are based on.
            let parts = self.parts.iter().rev().map(|part| part.section(plots));
            return Block::section("Latency at shares of the throughput", parts.collect());
        }
        blocks.extend(self.table());
        blocks.extend(directions::section(self));
        blocks.extend(search::goals(self));
        blocks.extend(latency::effects_table(&self.delay_effects, self.confidence));
        blocks.extend(latency::intervals_table(&self.timed, self.confidence));
        blocks.extend(doubts(self));
        let (stem, title) = picture(self.kind);
        let own_plots = plots.iter().filter(|(name, _)| is_of(stem, name));
        blocks.extend(own_plots.map(|(name, drawing)| figure(title, name, drawing)));
        let heading = match self.kind {
            MethodKind::Mlrsearch => "Throughput",
            MethodKind::LossCurve => "Frame loss rate",
            MethodKind::Soak => "Soak",
            MethodKind::Flood => "Floods of new flows",
            MethodKind::BackToBack => "Back-to-back frames",
            MethodKind::SystemRecovery => "System recovery",
            MethodKind::Reset => "Reset",
            MethodKind::Latency => "Latency",
            MethodKind::EstablishmentRate => "Connection establishment rate",
            MethodKind::TearDownRate => "Connection tear-down rate",
            MethodKind::TableCapacity => "Capacity of the connection table",
            MethodKind::Rfc2544 | MethodKind::Rfc9693 | MethodKind::Blast | MethodKind::Fixed => {
                "Trials"
            }
        };
        Block::section(heading, blocks)
    }

    /// Returns the first plot of a report: loss against load. `None` for other methods.
    pub(in crate::report) fn first_figure(&self, plots: &[(String, Drawing)]) -> Option<Block> {
        let (_, title) = picture(self.kind);
        let (name, drawing) = plots.iter().find(|(name, _)| name == CURVES)?;
        (self.kind == MethodKind::LossCurve).then(|| figure(title, name, drawing))
    }

    /// Returns the table of results.
    pub(super) fn table(&self) -> Option<Block> {
        match self.kind {
            MethodKind::Mlrsearch => Some(search::table(&self.searched)),
            MethodKind::Soak => Some(soak::table(&self.soaked)),
            MethodKind::LossCurve => Some(curve::table(&self.curved)),
            MethodKind::Flood => Some(flood::table(&self.flooded)),
            MethodKind::BackToBack => Some(burst::table(&self.bursts)),
            MethodKind::SystemRecovery => {
                Some(interruption::table(&self.interrupted, "system-recovery"))
            }
            MethodKind::Latency => match self.parts.last() {
                Some(delays) => delays.table(),
                None => Some(latency::table(&self.timed)),
            },
            MethodKind::Reset => Some(interruption::table(&self.interrupted, "reset")),
            MethodKind::Rfc2544 => self.suite.as_ref().map(|suite| suite::table(&suite.rows)),
            MethodKind::EstablishmentRate => Some(connections::establishment_table(&self.searched)),
            MethodKind::TearDownRate => Some(connections::teardown_table(&self.torn_down)),
            MethodKind::TableCapacity => Some(connections::capacity_table(&self.held)),
            // Its tests have their own tables.
            MethodKind::Rfc9693 | MethodKind::Blast | MethodKind::Fixed => None,
        }
    }

    /// States the results of each variant in one sentence, for the start of a report.
    pub(in crate::report) fn sentences(&self) -> Vec<String> {
        let of = |label: &str, text: String| format!("{label}: {text}.");
        if let Some(suite) = &self.suite {
            return suite.rows.iter().map(|row| of(&row.label, suite::sentence(row))).collect();
        }
        if self.kind == MethodKind::Rfc9693 {
            return self.parts.iter().flat_map(Method::sentences).collect();
        }
        if let Some(delays) = self.parts.last() {
            return delays.sentences();
        }
        let established = match self.kind {
            MethodKind::EstablishmentRate => connections::establishment_sentence,
            _ => search::sentence,
        };
        let searched = self.searched.iter().map(|row| of(&row.label, established(row)));
        let curved = self.curved.iter().map(|row| of(&row.label, curve::sentence(row)));
        let floods = self.borne.iter().map(|row| of(&row.label, flood::sentence(row)));
        let soaked = self.soaked.iter().map(|row| of(&row.label, soak::sentence(row)));
        let bursts = self.bursts.iter().map(|row| of(&row.label, burst::sentence(row)));
        let others = self.interrupted.iter();
        let others = others.map(|row| of(&row.label, interruption::sentence(row)));
        let timed = self.timed.iter().map(|row| of(&row.label, latency::sentence(row)));
        let torn_down = self.torn_down.iter();
        let torn_down = torn_down.map(|row| of(&row.label, connections::teardown_sentence(row)));
        let held = self.held.iter().map(|row| of(&row.label, connections::capacity_sentence(row)));
        let tables = torn_down.chain(held);
        let all = searched.chain(curved).chain(floods).chain(soaked).chain(bursts).chain(others);
        all.chain(timed).chain(tables).collect()
    }
}

/// Returns true if the file `name` is a plot with this stem, either of all variants or of a single
/// one.
fn is_of(stem: &str, name: &str) -> bool {
    name.strip_prefix(stem).is_some_and(|rest| rest == ".svg" || rest.starts_with('-'))
}

/// Describes the measurement and its standard.
fn introduction(kind: MethodKind) -> Option<&'static str> {
    match kind {
        MethodKind::Mlrsearch => Some(
            "Conditional throughput (RFC 9971) is the rate that the device forwards at the \
             greatest load at which a goal is held; the relevant bounds enclose that load. \
             Medians over the runs with a regular result and those at line rate, above which no \
             load exists. Also listed: the same runs' forwarding rate at the maximum offered load \
             (FRMOL, RFC 2285), which is no throughput: packets were lost there.",
        ),
        MethodKind::LossCurve => Some(
            "Packets lost at falling loads (RFC 2544, 26.3), until two trials in a row lost nothing. \
             Lossless: no packet is missing that can't have been lost while others had the device's \
             CPU; beside it the load up to which nothing at all was lost.",
        ),
        MethodKind::Flood => Some(
            "The traffic of the run's own trial beside a flood: packets that each open a flow of \
             their own, from none on to the greatest load. Before each trial the device's states \
             are removed and the traffic warms up alone; the flood begins and ends with the \
             window, has its own run id and UDP port, and is counted separately. Lost: share of \
             the traffic that the device lost at least, over the runs; at most: including packets \
             that may have been lost while others had its CPU.",
        ),
        MethodKind::BackToBack => Some(
            "The longest burst, as fast as the sender can, of which nothing is lost (RFC 9004, which \
             updates RFC 2544, 26.4), searched for again and again: the mean is the back-to-back \
             value. Implied buffer: its time at the burst's rate; corrected: without what the device \
             forwards meanwhile, by its forwarding rate at the maximum offered load.",
        ),
        MethodKind::SystemRecovery => Some(
            "110 % of the throughput (without a search: of the forwarding rate at the maximum offered \
             load), then half of it (RFC 2544, 26.5): time from the change until the last packet that \
             is lost had been sent, to a sample of 5 ms.",
        ),
        MethodKind::Reset => Some(
            "The device is reset while it meets its throughput (without a search: its forwarding rate \
             at the maximum offered load): packets lost over the load (RFC 6201, frame-loss method).",
        ),
        MethodKind::Latency => Some(
            "One-way delay of every packet of the window (RFC 7679), from the time at which it was due \
             at the sender, however late the sender was, until the receiver saw it. Both read this \
             machine's CLOCK_MONOTONIC in software: the sender's schedule writes it, the receiver's \
             program reads it when a packet arrives. The trials of a run at a share count together. PDV: \
             99.9th percentile minus minimum (RFC 8219, 7.3.1). IPDV: by how much the delays of two \
             consecutive packets of a flow differ that both arrived (RFC 3393; the absolute value). Percentiles are within 0.8 % of the \
             packet's delay, and given where at least ten packets lie beyond. Taken: share of the time in \
             which others had the device's CPU, which is in the delays.",
        ),
        MethodKind::EstablishmentRate => Some(
            "The greatest rate at which every packet, each of another flow, opens a connection \
             (RFC 9693, 4.5); each trial opens one per flow, beginning with an empty table. A \
             connection counts when its packet arrived and, where the device tells how many \
             states it holds, when its state is there. Rates are of connections, one packet each; \
             beside them the forwarding rate of the same runs at the maximum offered load.",
        ),
        MethodKind::TearDownRate => Some(
            "Connections over the time in which all of them are removed at once (RFC 9693, 4.7), \
             less the time that the same takes with an empty table; with asking: including it.",
        ),
        MethodKind::TableCapacity => Some(
            "The most connections that are all held at once, opened at half of the establishment \
             rate (without a search for it: at a tenth of the forwarding rate): doubled, then halved \
             between what was held and what was not, each time from an empty table (RFC 9693, 4.8).",
        ),
        MethodKind::Rfc9693 => Some(
            "Stateful device, over UDP alone (RFC 9693). Deviations: connections differ in their \
             addresses instead of in pseudorandom ports, and are opened in their order; that they \
             are in the table is told by the device's own count, not by a test phase with packets \
             of the other direction; rates are searched for as RFC 9971 has it.",
        ),
        _ => None,
    }
}

/// Returns the stem of the names of a method's plots, and their title.
fn picture(kind: MethodKind) -> (&'static str, &'static str) {
    match kind {
        MethodKind::Mlrsearch => ("search", "How loads were found"),
        MethodKind::LossCurve => ("curve", "Loss against load"),
        MethodKind::Soak => ("soak", "Loss over time"),
        MethodKind::Flood => ("flood", "Loss of the traffic against the flood"),
        MethodKind::Latency => ("latency", "One-way delay by percentile"),
        MethodKind::BackToBack => ("bursts", "Bursts that arrived whole, and others"),
        MethodKind::EstablishmentRate => ("establishment", "How rates were found"),
        MethodKind::TearDownRate => ("filled", "Connections against time"),
        MethodKind::TableCapacity => ("connections", "Connections against time"),
        _ => ("none of its own", ""),
    }
}

/// Lists irregular results, drifting devices and invalid trials, by run.
fn doubts(method: &Method) -> Option<Block> {
    let mut lines = Vec::new();
    for run in &method.runs {
        let bed = run.bed.as_ref().map_or(String::new(), |bed| format!(", bed {bed}"));
        let name = format!("run {} ({}{bed})", run.run, run.label);
        for found in &run.found {
            lines.extend(
                found
                    .irregular
                    .as_ref()
                    .map(|why| format!("{name}, {}: irregular, {why}", found.goal)),
            );
        }
        lines.extend(run.above_line.map(|max_load| {
            format!(
                "{name}: loads end at the links' line rate: the {} that max_load asks for \
                 are above it",
                format_pps(max_load as f64)
            )
        }));
        let offered = |count: fn(&MethodPoint) -> u64| run.points.iter().map(count).sum::<u64>();
        if offered(|point| point.offered) > 0 && offered(|point| point.forwarded) == 0 {
            lines.push(format!(
                "{name}: of {} packets offered in {} trials none arrived: it forwards nothing, \
                 or what it forwards does not get to the receiver",
                offered(|point| point.offered),
                run.points.len()
            ));
        }
        if method.kind == MethodKind::Latency && run.points.is_empty() {
            lines.push(format!(
                "{name}: no packet was timed, as no rate was found to take shares of, or sender \
                 and receiver have no clock in common"
            ));
        }
        lines.extend(run.drift.map(|change| {
            format!(
                "{name}: the device's rate changed by {} during the search, so that its \
                 bounds hold for no one moment",
                crate::format::signed_percent(change, 1)
            )
        }));
        lines.extend(run.loss_floor.map(|floor| {
            format!(
                "{name}: the loss stays while the load falls: half of the trials at {} lost {} % or \
                 more, at {} at most twice that, so it is not of too high a load. Where the device, \
                 or the machine under it, stands still now and then, shorter trials lose less often; \
                 where it drops packets of any load, they don't",
                format_pps(floor.from as f64),
                crate::format::significant(100.0 * floor.loss_ratio),
                format_pps(floor.to as f64)
            )
        }));
        lines.extend(run.loss_dip.map(|dip| {
            format!(
                "{name}: the loss falls while the load rises: {} % at {}, {} % at {} (medians). \
                 Another search may find the border below or above, and be as regular",
                crate::format::significant(100.0 * dip.loss_ratio),
                format_pps(dip.load as f64),
                crate::format::significant(100.0 * dip.loss_at_higher),
                format_pps(dip.higher as f64)
            )
        }));
        // Other load while filling the table does not make a teardown trial doubtful.
        let is_listed = method.kind != MethodKind::TearDownRate;
        let invalid: Vec<&str> =
            run.points.iter().filter_map(|point| point.invalid.as_deref()).collect();
        if let Some(first) = invalid.first().filter(|_| is_listed) {
            let count = invalid.len();
            lines.push(format!("{name}: {count} invalid trials, e.g. {first}"));
        }
    }
    (!lines.is_empty()).then(|| Block::list(lines))
}

//! Received packets per flow.

/// Arrivals of all flows, up to the last packet that arrived: the receiver cannot know about
/// packets sent after it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowSummary {
    /// Flows of the run.
    pub flows: u32,
    /// Flows with at least one sent packet, by the sequence numbers that arrived.
    pub sent: u32,
    /// Flows with at least one received packet.
    pub seen: u32,
    /// Flows with missing packets.
    pub with_loss: u32,
    /// Missing packets.
    pub missing: u64,
    /// The flow with the most missing packets.
    pub worst: Option<WorstFlow>,
    /// Expected number of sent flows that would be unseen if packets were lost at random.
    pub unseen_by_chance: f64,
}

/// A flow and its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorstFlow {
    /// Flow number: source index x destinations + destination index.
    pub flow: u32,
    /// Packets sent.
    pub sent: u64,
    /// Packets that arrived.
    pub arrived: u64,
}

impl FlowSummary {
    /// True if more flows are unseen than random loss explains: then the device does not forward
    /// these flows.
    pub fn lacks_flows(&self) -> bool {
        let unseen = f64::from(self.sent.saturating_sub(self.seen));
        unseen > 10.0 * self.unseen_by_chance + 3.0 || unseen > 0.0 && self.unseen_by_chance < 0.001
    }
}

/// Record of a flow's packets from one sender, or of a share of them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Entry {
    /// Arrivals of the last 64 rounds; the lowest bit is the newest round.
    pub window: u64,
    /// The newest round plus one; 0 before the first packet.
    pub next: u32,
    /// Packets that arrived, without duplicates.
    pub count: u32,
}

/// A flow's packets from one sender.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// The sender.
    pub sender: usize,
    /// Index of the flow among the sender's flows.
    pub place: u32,
    /// Flow number.
    pub flow: u32,
    /// Packets that arrived.
    pub count: u64,
    /// The newest round plus one.
    pub next: u64,
}

impl Line {
    /// Sums up the 2^`shares` entries of a flow.
    pub fn of(sender: usize, place: u32, flow: u32, entries: &[Entry], shares: u32) -> Line {
        let next = |(share, entry): (u64, &Entry)| match entry.next {
            0 => 0,
            next => (u64::from(next - 1) << shares | share) + 1,
        };
        let count = entries.iter().map(|entry| u64::from(entry.count)).sum();
        Line { sender, place, flow, count, next: (0..).zip(entries).map(next).max().unwrap_or(0) }
    }
}

/// Sums up lines. `lengths` contains the number of flows per sender. Without `sequences`, only the
/// flows that were seen are known.
pub fn summary(lines: impl Iterator<Item = Line>, lengths: &[u32], sequences: bool) -> FlowSummary {
    let lines: Vec<Line> = lines.collect();
    let flows = lines.iter().map(|line| line.flow + 1).max().unwrap_or(0);
    // One past the newest sequence number of each sender.
    let mut ends = vec![0; lengths.len()];
    for line in lines.iter().filter(|line| line.next > 0) {
        let newest = (line.next - 1) * u64::from(lengths[line.sender]) + u64::from(line.place);
        ends[line.sender] = ends[line.sender].max(newest + 1);
    }
    // Senders may divide the flows among themselves: if a flow arrives from one sender, other
    // senders without arrivals send none of it. The sender of a flow that never arrives is unknown:
    // the flow counts once.
    let mut packets = vec![(0, 0); flows as usize];
    let mut arrives = vec![false; flows as usize];
    lines.iter().for_each(|line| arrives[line.flow as usize] |= line.count > 0);
    for line in &lines {
        let rounds = (ends[line.sender] + u64::from(lengths[line.sender]))
            .saturating_sub(u64::from(line.place) + 1)
            / u64::from(lengths[line.sender].max(1));
        let of_flow = &mut packets[line.flow as usize];
        of_flow.1 += line.count;
        of_flow.0 = match (sequences, arrives[line.flow as usize]) {
            (false, _) => of_flow.0 + line.count,
            (true, true) if line.count == 0 => of_flow.0,
            (true, true) => of_flow.0 + rounds,
            (true, false) => rounds.max(of_flow.0),
        };
    }
    let mut summary = FlowSummary { flows, ..FlowSummary::default() };
    let mut sent_packets = 0;
    for (&(sent, arrived), flow) in packets.iter().zip(0..) {
        let missing = sent.saturating_sub(arrived);
        sent_packets += sent;
        summary.sent += u32::from(sent > 0);
        summary.seen += u32::from(arrived > 0);
        summary.with_loss += u32::from(missing > 0);
        summary.missing += missing;
        let most = summary.worst.map_or(0, |worst| worst.sent - worst.arrived.min(worst.sent));
        if missing > most {
            summary.worst = Some(WorstFlow { flow, sent, arrived });
        }
    }
    if !sequences {
        summary.sent = flows; // nothing else is known
        return summary;
    }
    let lost = summary.missing as f64 / (sent_packets as f64).max(1.0);
    let chance = |sent: u64| if sent > 0 { lost.powf(sent as f64) } else { 0.0 };
    summary.unseen_by_chance = packets.iter().map(|&(sent, _)| chance(sent)).sum();
    summary
}

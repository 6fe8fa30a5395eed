//! Packets received of each flow.

/// What arrived of all flows, up to the last packet that arrived: what a sender sent after
/// it can't be seen from here.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowSummary {
    /// Flows of the run.
    pub flows: u32,
    /// Flows of which a packet was sent, by the sequence numbers that arrived.
    pub sent: u32,
    /// Flows of which a packet arrived.
    pub seen: u32,
    /// Flows of which a packet is missing.
    pub with_loss: u32,
    /// Packets that are missing.
    pub missing: u64,
    /// The flow that misses most.
    pub worst: Option<WorstFlow>,
    /// How many of the flows that were sent would be unseen if packets were lost at random.
    pub unseen_by_chance: f64,
}

/// A flow and its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorstFlow {
    /// Its number: source index x destinations + destination index.
    pub flow: u32,
    /// Packets sent.
    pub sent: u64,
    /// Packets that arrived.
    pub arrived: u64,
}

impl FlowSummary {
    /// True when more flows are unseen than packets lost at random explain: then it is
    /// these flows that the device does not forward.
    pub fn lacks_flows(&self) -> bool {
        let unseen = f64::from(self.sent.saturating_sub(self.seen));
        unseen > 10.0 * self.unseen_by_chance + 3.0 || unseen > 0.0 && self.unseen_by_chance < 0.001
    }
}

/// What is kept of a flow's packets from one sender, or of a share of them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Entry {
    /// Which of the 64 rounds up to the newest arrived; the lowest bit is the newest.
    pub window: u64,
    /// The newest round and one; 0 before any.
    pub next: u32,
    /// Packets that arrived, duplicates not counted.
    pub count: u32,
}

/// A flow's packets from one sender.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// The sender.
    pub sender: usize,
    /// The flow's place among the sender's.
    pub place: u32,
    /// Its number.
    pub flow: u32,
    /// Packets that arrived.
    pub count: u64,
    /// The newest round and one.
    pub next: u64,
}

impl Line {
    /// Sums up a flow's entries, of which there are 2 to the power of `shares`.
    pub fn of(sender: usize, place: u32, flow: u32, entries: &[Entry], shares: u32) -> Line {
        let next = |(share, entry): (u64, &Entry)| match entry.next {
            0 => 0,
            next => (u64::from(next - 1) << shares | share) + 1,
        };
        let count = entries.iter().map(|entry| u64::from(entry.count)).sum();
        Line { sender, place, flow, count, next: (0..).zip(entries).map(next).max().unwrap_or(0) }
    }
}

/// Sums up lines; `lengths` is how many flows each sender has. Without `sequences` only
/// which flows were seen.
pub fn summary(lines: impl Iterator<Item = Line>, lengths: &[u32], sequences: bool) -> FlowSummary {
    let lines: Vec<Line> = lines.collect();
    let flows = lines.iter().map(|line| line.flow + 1).max().unwrap_or(0);
    // One past the newest sequence number of each sender.
    let mut ends = vec![0; lengths.len()];
    for line in lines.iter().filter(|line| line.next > 0) {
        let newest = (line.next - 1) * u64::from(lengths[line.sender]) + u64::from(line.place);
        ends[line.sender] = ends[line.sender].max(newest + 1);
    }
    // Senders may share out the flows among themselves: of a flow that arrives from one
    // sender, others of which none arrives send none. Of one that never arrives nobody
    // knows who sends it: it counts once.
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

//! pkt-gen's final summary: packet count and rate.

use super::cursor::Cursor;
use super::lines::{Line, text};

/// Direction of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The generator sent them.
    Sent,
    /// The generator received them.
    Received,
}

/// The line that sums up a log: `Sent 80000000 packets 4800000000 bytes
/// 30768110 events 60 bytes each in 53.76 seconds.`
///
/// Before 2017 it had no bytes and no events. `Sent nothing.` is a total of no packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Total {
    /// Line number, from 1.
    pub line: usize,
    /// Direction.
    pub direction: Direction,
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes, without FCS.
    pub bytes: Option<u64>,
    /// Number of calls that handed packets over.
    pub events: Option<u64>,
    /// Bytes of a packet without FCS; for several sizes the mean, rounded down.
    pub packet_bytes: Option<u64>,
    /// Duration. Negative if the thread aborted before it recorded its end.
    pub seconds: Option<f64>,
    /// The unchanged line.
    pub text: String,
}

impl Total {
    pub(super) fn parse(line: &Line) -> Option<Self> {
        let (direction, mut at) = match line.after(b"Sent ") {
            Some(at) => (Direction::Sent, at),
            None => (Direction::Received, line.after(b"Received ")?),
        };
        let mut total = Self {
            line: line.number,
            direction,
            packets: 0,
            bytes: None,
            events: None,
            packet_bytes: None,
            seconds: None,
            text: String::new(),
        };
        if at.0 != b"nothing." {
            total.figures(&mut at)?;
        }
        total.text = text(line.bytes);
        Some(total)
    }

    fn figures(&mut self, at: &mut Cursor) -> Option<()> {
        self.packets = at.number()?;
        at.eat(b" packets")?;
        let first_generation = at.eat(b",").is_some();
        at.eat(b" ")?;
        if !first_generation {
            self.bytes = Some(at.number()?);
            at.eat(b" bytes ")?;
            self.events = Some(at.number()?);
            at.eat(b" events ")?;
        }
        self.packet_bytes = Some(at.number()?);
        at.eat(b" bytes each")?;
        if first_generation {
            at.eat(b",")?;
        }
        at.eat(b" in ")?;
        self.seconds = Some(at.decimal()?);
        at.eat(b" seconds.")?;
        at.end()
    }
}

/// The last line of a log with a normal end: `Speed: 1.49 Mpps Bandwidth: 714.29 Mbps (raw 1000.00
/// Mbps)`, since 2017 followed by the average batch. Units are resolved; a value with a unit is
/// rounded.
#[derive(Clone, Debug, PartialEq)]
pub struct Speed {
    /// Line number, from 1.
    pub line: usize,
    /// Packets per second.
    pub pps: f64,
    /// Bits per second of the packets without FCS.
    pub bandwidth: f64,
    /// Bits per second of the packets with FCS, preamble and gap (20 or 24 additional bytes); later
    /// versions count these only with `-B`.
    pub raw: f64,
    /// Packets handed over per call; `None` if it was not printed or was not a number.
    pub average_batch: Option<f64>,
    /// The unchanged line.
    pub text: String,
}

impl Speed {
    pub(super) fn parse(line: &Line) -> Option<Self> {
        let mut at = line.after(b"Speed: ")?;
        let pps = at.quantity()??;
        at.eat(b"pps Bandwidth: ")?;
        let bandwidth = at.quantity()??;
        at.eat(b"bps (raw ")?;
        let raw = at.quantity()??;
        at.eat(b"bps)")?;
        let average_batch = if at.eat(b". Average batch: ").is_some() {
            let batch = at.perhaps_decimal()?;
            at.eat(b" pkts")?;
            batch
        } else {
            None
        };
        at.end()?;
        Some(Self { line: line.number, pps, bandwidth, raw, average_batch, text: text(line.bytes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(text: &str) -> Option<Total> {
        Total::parse(&Line { number: 7, bytes: text.as_bytes() })
    }
    fn speed(text: &str) -> Option<Speed> {
        Speed::parse(&Line { number: 8, bytes: text.as_bytes() })
    }

    #[test]
    fn totals_of_both_generations_are_parsed() {
        let old = total("Sent 500 packets, 1020 bytes each, in 668.12 seconds.").unwrap();
        assert_eq!((old.line, old.direction, old.packets), (7, Direction::Sent, 500));
        assert_eq!((old.bytes, old.packet_bytes, old.seconds), (None, Some(1020), Some(668.12)));
        let text = "Received 20 packets 1240 bytes 9 events 62 bytes each in -15.05 seconds.";
        let new = total(text).unwrap();
        assert_eq!((new.bytes, new.events, new.seconds), (Some(1240), Some(9), Some(-15.05)));
        assert_eq!(new.text, text);
        let nothing = total("Received nothing.").unwrap();
        assert_eq!((nothing.packets, nothing.seconds), (0, None));
        for wrong in [
            "Sent 5 packets",
            "Sent nothing",
            "Sent 5 packets, 60 bytes each in 1.00 seconds.",
            "Sent 5 packets 300 bytes 1 events 60 bytes each in x seconds.",
            "Sent 5 packets 300 bytes 1 events 60 bytes each in 1.00 seconds. ",
        ] {
            assert_eq!(total(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn speeds_are_parsed_with_and_without_units() {
        let old = speed("Speed: 844.63 Kpps Bandwidth: 837.88 Mbps (raw 1.00 Gbps)").unwrap();
        assert_eq!((old.pps, old.bandwidth, old.raw), (844_630.0, 837.88e6, 1e9));
        assert_eq!(old.average_batch, None);
        let line = "Speed: -0 pps Bandwidth: -0 bps (raw -0 bps). Average batch: 512.00 pkts";
        let new = speed(line).unwrap();
        assert_eq!((new.pps, new.average_batch, new.text.as_str()), (0.0, Some(512.0), line));
        let odd = "Speed: 4 pps Bandwidth: 4 bps (raw 4 bps). Average batch: inf pkts";
        assert_eq!(speed(odd).map(|speed| speed.average_batch), Some(None));
        for wrong in ["Speed: nan pps Bandwidth: 0 bps (raw 0 bps)", "Speed: 1 pps", "Speed: "] {
            assert_eq!(speed(wrong), None, "{wrong}");
        }
    }
}

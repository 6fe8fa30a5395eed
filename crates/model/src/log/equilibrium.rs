//! The log of a search for the equilibrium throughput: the `equilibrium` script of the netbenches
//! family, which halves its step until offered and forwarded rate are equal.

use super::command::Command;
use super::cursor::Cursor;
use super::fault::LogError;
use super::lines::{Line, NumberedLine, keep, lines, shown};

/// The line in every such log.
const TITLE: &[u8] = b"Benchmark tool using equilibrium throughput method";

/// A search. All rates are Mbit/s of Ethernet frames.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EquilibriumLog {
    /// Number of lines, including an unterminated last one.
    pub lines: usize,
    /// The command line.
    pub command: Option<Command>,
    /// Sizes of the sent packets.
    pub load: Option<Load>,
    /// Rate of the link.
    pub link_mbps: Option<u64>,
    /// Termination threshold of the search: step over offered rate.
    pub tolerance: Option<f64>,
    /// Its steps, in order.
    pub steps: Vec<Step>,
    /// Result; `None` if the search was aborted.
    pub estimate: Option<Estimate>,
    /// Number of lines of known kinds without figures.
    pub known_noise: usize,
    /// The first lines of unknown kinds.
    pub unknown: Vec<NumberedLine>,
    /// Number of these lines.
    pub unknown_count: usize,
}

/// Sizes of one packet, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// UDP payload.
    pub udp_bytes: u64,
    /// IP packet.
    pub ip_bytes: u64,
    /// Ethernet frame without FCS.
    pub frame_bytes: u64,
}

/// One step of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Number of its first line, from 1.
    pub line: usize,
    /// Rate to be sent.
    pub offered_mbps: Option<u64>,
    /// Change of the rate.
    pub step_mbps: Option<u64>,
    /// Received rate.
    pub measured_mbps: Option<u64>,
    /// Direction of the change; `None` in the first step.
    pub trend: Option<Trend>,
    /// Remarks of the script, unchanged.
    pub warnings: Vec<NumberedLine>,
}

/// Direction of a change of the offered rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trend {
    /// Up.
    Increasing,
    /// Down.
    Decreasing,
}

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The equilibrium throughput.
    pub mbps: u64,
    /// The highest received rate of any step.
    pub max_mbps: u64,
}

/// True for a log of this kind: its title is among the first lines.
pub(super) fn recognises(bytes: &[u8]) -> bool {
    lines(bytes).take(20).any(|line| line.bytes == TITLE)
}

impl EquilibriumLog {
    /// Reads a log.
    ///
    /// # Errors
    /// [`LogError`] for empty input, for binary data, and for text without a line of such a search.
    pub fn parse(bytes: &[u8]) -> Result<Self, LogError> {
        LogError::unless_text(bytes)?;
        let mut log = Self::default();
        let (mut first, mut title) = (None, false);
        for line in lines(bytes) {
            log.lines = line.number;
            first = first.or((!line.bytes.is_empty()).then_some(line.bytes));
            title |= line.bytes == TITLE;
            if line.is_too_long() || log.read(&line).is_none() {
                keep(&mut log.unknown, &mut log.unknown_count, line.number, line.bytes);
            }
        }
        if !title && log.steps.is_empty() && log.estimate.is_none() {
            let first = first.map(shown).unwrap_or_default();
            return Err(LogError::Foreign { wanted: "equilibrium", lines: log.lines, first });
        }
        Ok(log)
    }

    /// Returns `None` for a line of unknown kind.
    fn read(&mut self, line: &Line) -> Option<()> {
        if let Some(mut at) = line.after(b"  - ") {
            return self.steps.last_mut()?.read(line, &mut at);
        }
        if let Some(mut at) = line.after(b"- ") {
            return self.setting(&mut at);
        }
        if let Some(mut at) = line.after(b"Iteration ") {
            at.number()?;
            at.end()?;
            self.steps.push(Step {
                line: line.number,
                offered_mbps: None,
                step_mbps: None,
                measured_mbps: None,
                trend: None,
                warnings: Vec::new(),
            });
            return Some(());
        }
        if let Some(mut at) = line.after(b"Estimated Equilibrium Ethernet throughput= ") {
            let mbps = at.number()?;
            at.eat(b" Mb/s (maximum value seen: ")?;
            let max_mbps = at.number()?;
            at.eat(b" Mb/s)")?;
            at.end()?;
            return put(&mut self.estimate, Estimate { mbps, max_mbps });
        }
        if line.bytes.is_empty() || line.bytes == TITLE || line.bytes.starts_with(b"+ ") {
            self.known_noise += 1;
            return Some(());
        }
        put(&mut self.command, Command::parse(line, b"CMD")?)
    }

    /// Parses a line of the header.
    fn setting(&mut self, at: &mut Cursor) -> Option<()> {
        if at.eat(b"Link rate = ").is_some() {
            let rate = mbps(at)?;
            return put(&mut self.link_mbps, rate);
        }
        if at.eat(b"Tolerance = ").is_some() {
            let tolerance = at.decimal()?;
            at.end()?;
            return put(&mut self.tolerance, tolerance);
        }
        if at.eat(b"UDP load = ").is_some() {
            let udp_bytes = at.number()?;
            at.eat(b"B, IPv")?;
            at.number()?;
            at.eat(b" packet size=")?;
            let ip_bytes = at.number()?;
            at.eat(b"B, Ethernet frame size=")?;
            let frame_bytes = at.number()?;
            at.eat(b"B")?;
            at.end()?;
            return put(&mut self.load, Load { udp_bytes, ip_bytes, frame_bytes });
        }
        at.eat(b"Benchmark mode: ")?;
        self.known_noise += 1;
        Some(())
    }
}

impl Step {
    /// Parses an indented line; "Forwared" is the script's own spelling.
    fn read(&mut self, line: &Line, at: &mut Cursor) -> Option<()> {
        const REMARKS: [&[u8]; 4] = [
            b"Warning: ",
            b"Forwared rate too low",
            b"forwarding rate greater than offering load",
            b"Too big initial value",
        ];
        if at.eat(b"Offering load = ").is_some() {
            return put(&mut self.offered_mbps, mbps(at)?);
        }
        if at.eat(b"Step = ").is_some() {
            return put(&mut self.step_mbps, mbps(at)?);
        }
        if at.eat(b"Measured forwarding rate = ").is_some() {
            return put(&mut self.measured_mbps, mbps(at)?);
        }
        if at.eat(b"Trend = ").is_some() {
            return match at.0 {
                b"increasing" => put(&mut self.trend, Trend::Increasing),
                b"decreasing" => put(&mut self.trend, Trend::Decreasing),
                _ => None,
            };
        }
        REMARKS.iter().any(|remark| at.0.starts_with(remark)).then_some(())?;
        self.warnings.push(NumberedLine::new(line.number, at.0));
        Some(())
    }
}

/// Parses a rate at the end of its line.
fn mbps(at: &mut Cursor) -> Option<u64> {
    let rate = at.number()?;
    at.eat(b" Mb/s")?;
    at.end()?;
    Some(rate)
}

/// Sets an empty value; refuses a second one.
fn put<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.is_none().then(|| *place = Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
CMD on lab1: equilibrium -4 -u -t em0 -r em1
Benchmark tool using equilibrium throughput method
- Benchmark mode: Bandwitdh (bps) for VPN gateway
- UDP load = 500B, IPv4 packet size=528B, Ethernet frame size=542B
- Link rate = 1000 Mb/s
- Tolerance = 0.01
Iteration 1
  - Offering load = 500 Mb/s
  - Step = 250 Mb/s
  - Warning: Generated only 450Mb/s in place of 500Mb/s
  - Measured forwarding rate = 36 Mb/s
  - Forwared rate too low, forcing OLOAD=FWRATE and STEP=FWRATE/2
Iteration 2
  - Offering load = 36 Mb/s
  - Step = 18 Mb/s
  - Trend = decreasing
  - Measured forwarding rate = 46 Mb/s
Estimated Equilibrium Ethernet throughput= 46 Mb/s (maximum value seen: 47 Mb/s)
";

    #[test]
    fn search_is_parsed_completely() {
        let log = EquilibriumLog::parse(LOG.as_bytes()).unwrap();
        assert!(recognises(LOG.as_bytes()));
        assert_eq!((log.lines, log.unknown_count, log.known_noise), (18, 0, 2));
        assert_eq!((log.link_mbps, log.tolerance), (Some(1000), Some(0.01)));
        assert_eq!(log.load, Some(Load { udp_bytes: 500, ip_bytes: 528, frame_bytes: 542 }));
        assert_eq!(log.estimate, Some(Estimate { mbps: 46, max_mbps: 47 }));
        let [first, second] = &log.steps[..] else { panic!("{:?}", log.steps) };
        assert_eq!((first.line, first.offered_mbps, first.step_mbps), (7, Some(500), Some(250)));
        assert_eq!((first.measured_mbps, first.trend), (Some(36), None));
        let warnings: Vec<usize> = first.warnings.iter().map(|line| line.number).collect();
        assert_eq!(warnings, [10, 12]);
        assert_eq!((second.trend, second.warnings.len()), (Some(Trend::Decreasing), 0));
    }

    #[test]
    fn aborted_search_has_no_estimate() {
        let cut = &LOG[..LOG.find("  - Trend").unwrap()];
        let log = EquilibriumLog::parse(cut.as_bytes()).unwrap();
        assert_eq!((log.estimate, log.steps[1].measured_mbps), (None, None));
    }

    #[test]
    fn odd_lines_are_unknown() {
        let odd = "  - Step = 1 Mb/s\n- Link rate = 1 Mb/s\n  - Trend = sideways\nIteration x\n\
                   CMD: again\n  - Offering load = 5\n";
        let log = EquilibriumLog::parse(format!("{LOG}{odd}").as_bytes()).unwrap();
        assert_eq!(log.unknown_count, 6);
        let before = EquilibriumLog::parse(format!("  - Step = 1 Mb/s\n{LOG}").as_bytes()).unwrap();
        assert_eq!(before.unknown[0].number, 1);
        assert!(EquilibriumLog::parse(b"CMD: equilibrium\n").is_err());
    }
}

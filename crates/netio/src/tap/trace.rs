//! A tap that prints a line for every frame.

use crate::NetioError;
use crate::frame::{Batch, Frame};
use crate::poll::{Wakers, Woken};
use crate::port::{Port, Sent};
use std::fmt;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Writes a line for each incoming and outgoing frame: direction, port, MAC addresses, tags,
/// protocol, addresses, UDP or TCP ports, bytes.
///
/// Only headers in their usual positions are read: no ports behind IPv6 extension headers or in
/// fragments.
#[derive(Debug)]
pub struct TraceTap<P, W> {
    port: P,
    number: u8,
    output: W,
    /// The line being written: the output gets each in one call.
    line: String,
}

impl<P: Port, W: Write + Send> TraceTap<P, W> {
    /// Traces frames that pass `port`, which has this number.
    pub fn new(port: P, number: u8, output: W) -> TraceTap<P, W> {
        TraceTap { port, number, output, line: String::new() }
    }

    /// Ends the trace; returns the port and the output.
    pub fn into_inner(self) -> (P, W) {
        (self.port, self.output)
    }

    fn print<'a>(
        &mut self,
        direction: &str,
        frames: impl Iterator<Item = &'a Frame>,
    ) -> Result<(), NetioError> {
        for frame in frames {
            let (port, bytes) = (self.number, frame.whole());
            let frame = Description(&bytes);
            self.line.clear();
            // Writing to a string cannot fail.
            let _ = fmt::Write::write_fmt(
                &mut self.line,
                format_args!("{direction:<3} port {port}: {frame}\n"),
            );
            self.output.write_all(self.line.as_bytes()).map_err(failed)?;
        }
        Ok(())
    }
}

fn failed(error: io::Error) -> NetioError {
    NetioError::system("writing a trace of frames", error)
}

impl<P: Port, W: Write + Send> Port for TraceTap<P, W> {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, NetioError> {
        let count = self.port.receive(batch)?;
        self.print("in", batch.frames().iter())?;
        Ok(count)
    }

    fn send(&mut self, batch: &mut Batch) -> Result<Sent, NetioError> {
        let number = Some(self.number);
        self.print("out", batch.frames().iter().filter(|frame| frame.egress() == number))?;
        self.port.send(batch)
    }

    fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), NetioError> {
        self.output.flush().map_err(failed)?;
        self.port.wake_by(wakers)
    }

    fn woken(&mut self, woken: Woken) -> Result<(), NetioError> {
        self.port.woken(woken)
    }

    fn missed(&mut self) -> u64 {
        self.port.missed()
    }

    fn is_at_end(&self) -> bool {
        self.port.is_at_end()
    }
}

/// Formats a frame as text.
struct Description<'a>(&'a [u8]);

impl fmt::Display for Description<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.0.len();
        if let Some((destination, rest)) = self.0.split_first_chunk::<6>()
            && let Some((source, mut rest)) = rest.split_first_chunk::<6>()
        {
            write!(f, "{} > {} ", Mac(source), Mac(destination))?;
            while let [0x81, 0x00, tag @ ..] | [0x88, 0xa8, tag @ ..] = rest
                && let Some((tag, inner)) = tag.split_first_chunk::<2>()
            {
                write!(f, "VLAN {} ", u16::from_be_bytes(*tag) & 0xfff)?;
                rest = inner;
            }
            if let Some((kind, packet)) = rest.split_first_chunk::<2>() {
                match u16::from_be_bytes(*kind) {
                    0x0800 => inet(f, packet)?,
                    0x86dd => inet6(f, packet)?,
                    0x0806 => write!(f, "ARP, ")?,
                    other => write!(f, "0x{other:04x}, ")?,
                }
            }
        }
        write!(f, "{length} bytes")
    }
}

struct Mac<'a>(&'a [u8; 6]);

impl fmt::Display for Mac<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

fn inet(f: &mut fmt::Formatter<'_>, packet: &[u8]) -> fmt::Result {
    let Some(header) = packet.first_chunk::<20>() else { return write!(f, "IPv4 cut off, ") };
    let address =
        |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    let later_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x1fff != 0;
    let payload = packet.get(usize::from(header[0] & 0xf) * 4..).unwrap_or_default();
    write!(f, "IPv4 {} > {} ", address(12), address(16))?;
    transport(f, header[9], if later_fragment { &[] } else { payload })
}

fn inet6(f: &mut fmt::Formatter<'_>, packet: &[u8]) -> fmt::Result {
    let Some((header, payload)) = packet.split_first_chunk::<40>() else {
        return write!(f, "IPv6 cut off, ");
    };
    let address =
        |at: usize| Ipv6Addr::from(std::array::from_fn::<u8, 16, _>(|byte| header[at + byte]));
    write!(f, "IPv6 {} > {} ", address(8), address(24))?;
    transport(f, header[6], payload)
}

fn transport(f: &mut fmt::Formatter<'_>, protocol: u8, payload: &[u8]) -> fmt::Result {
    let name = match protocol {
        1 => "ICMP",
        6 => "TCP",
        17 => "UDP",
        58 => "ICMPv6",
        other => return write!(f, "protocol {other}, "),
    };
    write!(f, "{name}")?;
    if let (6 | 17, Some([a, b, c, d])) = (protocol, payload.first_chunk::<4>()) {
        let (source, destination) = (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]));
        write!(f, " {source} > {destination}")?;
    }
    write!(f, ", ")
}

#[cfg(test)]
mod tests {
    use super::super::fake::{FakePort, NUMBER, batch_to, receive_all};
    use super::*;
    use fwdlab_packet::Flows;
    use fwdlab_packet::{Family, Stamp, Stream, Template};

    fn packet(family: Family) -> Vec<u8> {
        let flows = Flows { sources: 3, destinations: 3 };
        let template = Template::new(
            &Stream::new(family, 128, flows),
            1,
            [2, 0, 0, 0, 0, 1],
            [2, 0, 0, 0, 0, 2],
        );
        let stamp = Stamp { run_id: 1, sender: 0, phase: 0, flow: 0, sequence: 0, time_ns: 0 };
        template.frame(1, 2, &stamp)
    }

    #[test]
    fn trace_prints_line_per_frame() {
        let mut tagged = packet(Family::Inet);
        tagged.splice(12..12, [0x88, 0xa8, 0, 9, 0x81, 0, 0x60, 7]);
        let mut fragment = packet(Family::Inet);
        fragment[21] = 100;
        let mut tcp = packet(Family::Inet6);
        tcp[20] = 6;
        let mut other = packet(Family::Inet6);
        other[20] = 89;
        let arp = [&packet(Family::Inet)[..12], &[8, 6], &[0; 46]].concat();
        let lldp = [&packet(Family::Inet)[..12], &[0x88, 0xcc], &[0; 46]].concat();
        let incoming = vec![tagged, fragment, tcp, other, arp, lldp];
        let mut tap =
            TraceTap::new(FakePort { incoming, ..FakePort::default() }, NUMBER, Vec::new());
        receive_all(&mut tap);
        let mut batch = batch_to(&[NUMBER, 0], |_| packet(Family::Inet));
        tap.send(&mut batch).expect("sending");
        let text = String::from_utf8(tap.into_inner().1).expect("a text");
        let macs = "02:00:00:00:00:01 > 02:00:00:00:00:02";
        let v4 = "IPv4 198.18.1.1 > 198.19.1.2";
        let v6 = "IPv6 2001:2:0:1::1:1 > 2001:2:0:8001::1:2";
        let expected = format!(
            "in  port 2: {macs} VLAN 9 VLAN 7 {v4} UDP 49184 > 7, 132 bytes\n\
             in  port 2: {macs} {v4} UDP, 124 bytes\n\
             in  port 2: {macs} {v6} TCP 49184 > 7, 124 bytes\n\
             in  port 2: {macs} {v6} protocol 89, 124 bytes\n\
             in  port 2: {macs} ARP, 60 bytes\n\
             in  port 2: {macs} 0x88cc, 60 bytes\n\
             out port 2: {macs} {v4} UDP 49184 > 7, 124 bytes\n"
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn description_accepts_truncated_frames() {
        for family in [Family::Inet, Family::Inet6] {
            let mut whole = packet(family);
            whole.splice(12..12, [0x81, 0, 0x60, 7]);
            for length in 0..=whole.len() {
                let line = Description(&whole[..length]).to_string();
                assert!(line.ends_with(&format!("{length} bytes")), "{line}");
            }
        }
        assert_eq!(Description(&[]).to_string(), "0 bytes");
    }
}

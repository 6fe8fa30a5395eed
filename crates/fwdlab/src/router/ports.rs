//! The ports of a router: sockets on devices, or files, with taps around them.

use super::mistake;
use crate::error::CliError;
use fwdlab_model::router::{InterfaceSetup, PortKind, RouterSetup};
use fwdlab_packet::injection::Faults;
use fwdlab_packet::rss::{SYMMETRIC_KEY, Toeplitz, queue_of};
use fwdlab_port::packet_socket::{PacketConfig, PacketPort};
use fwdlab_port::pcap::PcapPort;
use fwdlab_port::spread::spread;
use fwdlab_port::tap::{FaultTap, PcapTap, TraceTap};
use fwdlab_port::xsk::{Bind, XskConfig, XskPort, XskProgram};
use fwdlab_port::{Frame, Port, PortError};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

/// Batches that may wait on the way from one worker to another.
const SPREAD_BATCHES: usize = 16;

/// All ports, by worker and interface.
pub(super) struct Ports {
    pub(super) workers: Vec<Vec<Box<dyn Port>>>,
    /// The kind of port of each interface, for the statistics.
    pub(super) facts: Vec<(String, String)>,
}

/// Opens the ports of all interfaces, in this thread's network namespace.
///
/// # Errors
/// The user's mistakes, and what the environment lacks.
pub(super) fn open(setup: &RouterSetup) -> anyhow::Result<Ports> {
    let workers = usize::from(setup.workers);
    let mut all = Ports { workers: (0..workers).map(|_| Vec::new()).collect(), facts: Vec::new() };
    let toeplitz = Arc::new(Toeplitz::new(&SYMMETRIC_KEY));
    for (number, written) in setup.interfaces.iter().enumerate() {
        let number = u8::try_from(number)
            .map_err(|_| mistake("a router has up to 255 interfaces".to_owned()))?;
        let (ports, kind) = queues(written, number, workers)?;
        all.facts.push((format!("interface {}", written.name), kind));
        let ports = match setup.rss && workers > 1 {
            false => ports,
            true => {
                let toeplitz = toeplitz.clone();
                let worker = move |frame: &Frame| {
                    toeplitz.hash_frame(frame.bytes()).map_or(0, |hash| queue_of(hash, workers))
                };
                spread(ports, SPREAD_BATCHES, worker).into_iter().map(boxed).collect()
            }
        };
        for (queue, (worker, port)) in all.workers.iter_mut().zip(ports).enumerate() {
            worker.push(tapped(port, number, written, queue)?);
        }
    }
    Ok(all)
}

fn boxed(port: impl Port + 'static) -> Box<dyn Port> {
    Box::new(port)
}

/// One port for each worker, and of what kind they are.
fn queues(
    written: &InterfaceSetup,
    number: u8,
    workers: usize,
) -> anyhow::Result<(Vec<Box<dyn Port>>, String)> {
    let name = &written.name;
    let refused = |error: PortError| {
        CliError::Environment(format!(
            "interface {name}: {error}\n  next step: `fwdlab doctor` says which ports this machine has"
        ))
    };
    match written.port {
        PortKind::Xsk => Ok(xsk(name, number, workers).map_err(refused)?),
        PortKind::Packet => Ok(packet(name, number, workers).map_err(refused)?),
        PortKind::Auto => match xsk(name, number, workers) {
            Ok(ports) => Ok(ports),
            Err(why) => {
                let (ports, kind) = packet(name, number, workers).map_err(refused)?;
                Ok((ports, format!("{kind} (no AF_XDP: {why})")))
            }
        },
        PortKind::Pcap if workers > 1 => Err(mistake(format!(
            "interface {name}: a file is read by one worker: write workers = 1"
        ))),
        PortKind::Pcap => {
            let path = |file: &Option<String>| file.as_ref().map(Path::new).map(Path::to_owned);
            let (input, output) = (path(&written.input), path(&written.output));
            let port = PcapPort::open(input.as_deref(), output.as_deref(), number);
            let port = port.map_err(|error| mistake(format!("interface {name}: {error}")))?;
            Ok((vec![Box::new(port)], "pcap".into()))
        }
    }
}

fn xsk(name: &str, number: u8, workers: usize) -> Result<(Vec<Box<dyn Port>>, String), PortError> {
    let program = XskProgram::attach(name, workers as u32, None)?;
    let mut zero_copy = true;
    let mut ports: Vec<Box<dyn Port>> = Vec::new();
    for queue in 0..workers as u32 {
        let port = XskPort::open(&XskConfig { queue, number, bind: Bind::Auto }, &program)?;
        zero_copy &= port.is_zero_copy()?;
        ports.push(Box::new(port));
    }
    let how = if zero_copy { "zero copy" } else { "copy" };
    Ok((ports, format!("AF_XDP, {how}, {:?} mode", program.mode()).to_lowercase()))
}

fn packet(
    name: &str,
    number: u8,
    workers: usize,
) -> Result<(Vec<Box<dyn Port>>, String), PortError> {
    // Groups belong to the namespace: the process's number keeps two routers apart.
    let group = (std::process::id() as u16).wrapping_mul(4).wrapping_add(number.into());
    let fanout = (workers > 1).then_some(group);
    let config = PacketConfig { interface: name.into(), number, fanout };
    let port = |_| Ok(boxed(PacketPort::open(&config)?));
    let ports: Result<Vec<_>, PortError> = (0..workers).map(port).collect();
    Ok((ports?, "af_packet".into()))
}

/// The port with the configured taps around it.
fn tapped(
    port: Box<dyn Port>,
    number: u8,
    written: &InterfaceSetup,
    queue: usize,
) -> anyhow::Result<Box<dyn Port>> {
    let create = |path: &str| {
        // Each worker has a file of its own: `x.pcap`, `x.pcap.1`, ...
        let path = if queue == 0 { path.to_owned() } else { format!("{path}.{queue}") };
        let file = File::create(&path);
        let file =
            file.map_err(|error| mistake(format!("interface {}: {path}: {error}", written.name)))?;
        anyhow::Ok(BufWriter::new(file))
    };
    let mut port = port;
    if written.faults.is_some() || written.sent_faults.is_some() {
        let both = [written.faults, written.sent_faults];
        if !both.iter().flatten().all(Faults::is_valid) {
            let what = "faults: each is a probability from 0 to 1";
            return Err(mistake(format!("interface {}: {what}", written.name)));
        }
        let seed = both.iter().flatten().map(|faults| faults.seed).next().unwrap_or_default();
        let seed = seed.wrapping_add(queue as u64);
        let [incoming, outgoing] = both.map(Option::unwrap_or_default);
        port = Box::new(FaultTap::new(port, number, incoming, outgoing, seed));
    }
    if let Some(path) = &written.capture {
        port = Box::new(PcapTap::new(port, number, create(path)?)?);
    }
    if let Some(path) = &written.trace {
        port = Box::new(TraceTap::new(port, number, create(path)?));
    }
    Ok(port)
}

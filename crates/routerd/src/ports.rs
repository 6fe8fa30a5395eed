//! The ports of a router: sockets on devices, or files, with taps around them.

use super::captures::Capture;
use super::interfaces::NamedInterface;
use super::{mistake, vlans};
use crate::error::RouterdError;
use fwdlab_model::router::{ChecksumKind, InterfaceSetup, PortKind, RouterSetup};
use fwdlab_netio::files::{RecordFile, WriteLosses};
use fwdlab_netio::frame::CAPACITY;
use fwdlab_netio::host::AllMulticast;
use fwdlab_netio::packet_socket::{
    LastingPort, PacketConfig, PacketPort, Presence, Reserve, Share,
};
use fwdlab_netio::pcap::PcapPort;
use fwdlab_netio::spread::spread;
use fwdlab_netio::tap::{CompleteTap, FaultTap, PcapTap, TraceTap};
use fwdlab_netio::vlan;
use fwdlab_netio::xsk::{Bind, FlowTable, XskConfig, XskPort, XskProgram, XskReserve};
use fwdlab_netio::{Frame, NetioError, Port};
use fwdlab_packet::forwarding::ForwardingPath;
use fwdlab_packet::injection::Faults;
use fwdlab_packet::rss::{SYMMETRIC_KEY, Toeplitz, queue_of};
use fwdlab_router::path::Interface;
use std::fs::File;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Largest IP packet in an AF_XDP frame here: one without further buffers.
const XSK_MTU_MAX: u16 = (CAPACITY - 14) as u16;
/// Maximum number of AF_XDP sockets in reserve, for all interfaces.
const RESERVE_SOCKETS: usize = 256;
/// Maximum number of returns of an interface for which there are sockets.
const RESERVE_RETURNS: usize = 16;
/// Number of batches that may wait between two workers.
const SPREAD_BATCHES: usize = 16;

/// All ports, by worker and interface.
pub(super) struct Ports {
    pub(super) workers: Vec<Vec<Box<dyn Port>>>,
    /// The kind of port of each interface, for the statistics.
    pub(super) facts: Vec<(String, String)>,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
    /// Number of completed checksums, by interface.
    pub(super) completed: Vec<(String, Arc<AtomicU64>)>,
    /// Capture files that ports read.
    pub(super) captures: Vec<Capture>,
    /// Presence of interfaces, by their numbers.
    pub(super) presences: Vec<(u8, Arc<Presence>)>,
    /// Memberships that let interfaces receive all groups.
    pub(super) groups: Vec<AllMulticast>,
    /// Records that captures and traces did not take.
    pub(super) losses: Vec<Arc<WriteLosses>>,
    /// Locks of the interfaces.
    pub(super) locks: Vec<UnixDatagram>,
}

/// The ports of an interface.
struct OpenedPorts {
    ports: Vec<Box<dyn Port>>,
    /// Their kind.
    kind: String,
    /// True for AF_PACKET, with which the kernel also sees every packet.
    shared_with_kernel: bool,
    /// The reason why they are not of the preferred kind.
    instead: Option<String>,
    /// The capture file that the only one reads.
    capture: Option<Capture>,
    /// Frames that the file of the only one does not take.
    losses: Option<Arc<WriteLosses>>,
    /// Reserve of AF_XDP ports.
    reserve: Option<Arc<XskReserve>>,
}

/// Checks the ports of a set-up, without opening any.
///
/// # Errors
/// User errors.
pub(super) fn check(setup: &RouterSetup, interfaces: &[NamedInterface]) -> anyhow::Result<()> {
    for (entry, NamedInterface { interface, .. }) in setup.interfaces.iter().zip(interfaces) {
        let fault = |what: String| mistake(format!("interface {}: {what}", entry.name));
        valid_faults(entry).map_err(fault)?;
        if setup.path == ForwardingPath::Xdp {
            sees_all_frames(entry).map_or(Ok(()), |what| Err(fault(without_xdp(what))))?;
        }
        if entry.port == PortKind::Xsk && interface.mtu > XSK_MTU_MAX {
            return Err(fault(too_long_for_xsk(interface.mtu)));
        }
        if entry.port != PortKind::Pcap {
            continue;
        }
        if setup.workers > 1 {
            return Err(fault(ONE_READER.into()));
        }
        if let Some(input) = &entry.input {
            File::open(input).map_err(|error| fault(format!("{input}: {error}")))?;
        }
        let written_to = [&entry.output, &entry.capture, &entry.trace];
        for path in written_to.into_iter().flatten() {
            let directory = Path::new(path).parent().filter(|parent| *parent != Path::new(""));
            if directory.is_some_and(|directory| !directory.is_dir()) {
                return Err(fault(format!("{path}: there is no such directory")));
            }
        }
    }
    Ok(())
}

fn too_long_for_xsk(mtu: u16) -> String {
    format!("AF_XDP has packets of up to {XSK_MTU_MAX} bytes, the MTU is {mtu}")
}

/// Something that needs every frame of an interface.
fn sees_all_frames(entry: &InterfaceSetup) -> Option<&'static str> {
    let has = [
        (entry.capture.is_some(), "capture"),
        (entry.trace.is_some(), "trace"),
        (entry.faults.is_some(), "faults"),
        (entry.sent_faults.is_some(), "sent_faults"),
        (matches!(entry.port, PortKind::Packet | PortKind::Pcap), "port"),
    ];
    has.into_iter().find_map(|(is_there, what)| is_there.then_some(what))
}

fn without_xdp(what: &str) -> String {
    format!(
        "`{what}` needs frames that the XDP program of `path = \"xdp\"` forwards itself\n  \
         next step: omit `{what}`, or set path = \"fast\""
    )
}

/// A file has one beginning.
const ONE_READER: &str = "a file is read by one worker: write workers = 1";

fn valid_faults(entry: &InterfaceSetup) -> Result<(), String> {
    let faults = [entry.faults, entry.sent_faults];
    let valid = faults.iter().flatten().all(Faults::is_valid);
    if valid { Ok(()) } else { Err("faults: each is a probability from 0 to 1".into()) }
}

/// Opens the ports of all interfaces, in this thread's network namespace.
///
/// # Errors
/// User errors, and missing requirements of the environment.
pub(super) fn open(
    setup: &RouterSetup,
    interfaces: &[NamedInterface],
    flows: Option<&Arc<FlowTable>>,
) -> anyhow::Result<Ports> {
    check(setup, interfaces)?;
    let workers = usize::from(setup.workers);
    let mut all = Ports {
        workers: (0..workers).map(|_| Vec::new()).collect(),
        facts: Vec::new(),
        notes: Vec::new(),
        completed: Vec::new(),
        captures: Vec::new(),
        presences: Vec::new(),
        groups: Vec::new(),
        losses: Vec::new(),
        locks: Vec::new(),
    };
    // By worker, then by interface.
    let mut places: Vec<Vec<Option<Box<dyn Port>>>> =
        all.workers.iter().map(|_| none(setup)).collect();
    let toeplitz = Arc::new(Toeplitz::new(&SYMMETRIC_KEY));
    let all_written = setup.interfaces.iter().zip(interfaces);
    for (number, (entry, NamedInterface { interface, .. })) in all_written.enumerate() {
        let number = u8::try_from(number)
            .map_err(|_| mistake("a router has up to 255 interfaces".to_owned()))?;
        if let (Some(vlan), Some(parent)) = (entry.vlan, &entry.parent) {
            let what = format!("vlan {vlan} of {parent}");
            all.facts.push((format!("interface {}", entry.name), what));
            continue;
        }
        if entry.port != PortKind::Pcap {
            all.locks.push(lock(&entry.name)?);
        }
        let vlans = vlans::of(setup, entry);
        let completed: Option<Arc<AtomicU64>> =
            (entry.checksums == ChecksumKind::Complete).then(Arc::default);
        let returns = RESERVE_SOCKETS / (workers * setup.interfaces.len());
        let returns = returns.clamp(1, RESERVE_RETURNS);
        let how_many = (workers, returns);
        let OpenedPorts { mut ports, kind, shared_with_kernel, instead, capture, losses, reserve } =
            queues(entry, (number, interface), how_many, completed.as_ref(), (&vlans, flows))?;
        all.captures.extend(capture);
        all.losses.extend(losses);
        let name = &entry.name;
        if entry.port != PortKind::Pcap {
            let presence = Arc::<Presence>::default();
            all.presences.push((number, Arc::clone(&presence)));
            let device = (name.as_str(), number, interface.mtu);
            ports = lasting(ports, device, completed.as_ref(), (&presence, reserve.as_ref()))?;
            all.groups.push(AllMulticast::at(name)?);
            if !vlans.is_empty() {
                // By default network cards drop unknown VLAN tags.
                all.groups.push(AllMulticast::promiscuous(name)?);
            }
        }
        all.facts.push((format!("interface {name}"), kind));
        if let Some(why) = instead {
            all.notes.push(format!("interface {name}: AF_PACKET in place of AF_XDP ({why})"));
        }
        if shared_with_kernel {
            all.notes.extend(kernel_forwards().map(|setting| {
                format!(
                    "interface {name}: the kernel forwards its packets as well ({setting} is 1): \
                     every packet arrives twice; next step: sysctl -w {setting}=0"
                )
            }));
        }
        if shared_with_kernel && setup.host.as_ref().is_some_and(|host| host.namespace.is_none()) {
            all.notes.push(format!(
                "interface {name}: with AF_PACKET the kernel also receives the packets for its host \
                 device; next step: give the [host] its own `namespace`"
            ));
        }
        let is_silent = !shared_with_kernel && entry.port != PortKind::Pcap && is_virtual(name);
        if let Some(completed) = completed.filter(|_| shared_with_kernel || is_silent) {
            if is_silent {
                // AF_XDP does not report which frames need it.
                let tap = |port| boxed(CompleteTap::new(port, Arc::clone(&completed)));
                ports = ports.into_iter().map(tap).collect();
            }
            all.completed.push((name.clone(), completed));
        }
        let ports = match setup.rss && workers > 1 {
            false => ports,
            true => {
                let toeplitz = toeplitz.clone();
                let worker = move |frame: &Frame| {
                    toeplitz
                        .hash_frame(without_tag(frame))
                        .map_or(0, |hash| queue_of(hash, workers))
                };
                spread(ports, SPREAD_BATCHES, worker)?.into_iter().map(boxed).collect()
            }
        };
        for (queue, (worker, port)) in places.iter_mut().zip(ports).enumerate() {
            let port = tapped(port, number, entry, queue, &mut all.losses)?;
            if vlans.is_empty() {
                worker[usize::from(number)] = Some(port);
                continue;
            }
            let (trunk, branches) = vlan::split(port, number, &vlans);
            worker[usize::from(number)] = Some(boxed(trunk));
            for ((_, number), branch) in vlans.iter().zip(branches) {
                worker[usize::from(*number)] = Some(boxed(branch));
            }
        }
    }
    all.workers = places.into_iter().map(|ports| ports.into_iter().flatten().collect()).collect();
    Ok(all)
}

/// Locks an interface for this process: each of two routers would forward all packets. The lock is
/// a name in the network namespace, which the kernel frees when the process ends.
fn lock(name: &str) -> anyhow::Result<UnixDatagram> {
    let address = SocketAddr::from_abstract_name(format!("fwdlab-router/{name}"));
    let bound = address.and_then(|address| UnixDatagram::bind_addr(&address));
    bound.map_err(|error| {
        let why = match error.kind() {
            std::io::ErrorKind::AddrInUse => "another router uses it".to_owned(),
            _ => format!("locking: {error}"),
        };
        let next = "`pgrep -a fwdlab` lists routers: end the other one, or omit the interface";
        RouterdError::Environment(format!("interface {name}: {why}\n  next step: {next}")).into()
    })
}

/// Ports that outlive their interface; the first one reports its presence.
fn lasting(
    ports: Vec<Box<dyn Port>>,
    (name, number, mtu): (&str, u8, u16),
    completed: Option<&Arc<AtomicU64>>,
    (presence, xsk): (&Arc<Presence>, Option<&Arc<XskReserve>>),
) -> Result<Vec<Box<dyn Port>>, NetioError> {
    let config = PacketConfig { interface: name.into(), number, fanout: None };
    let longest = device_mtu(name).unwrap_or(mtu).max(mtu);
    let workers = ports.len() as u32;
    let one = |(port, own): (Box<dyn Port>, u32)| {
        let share = (workers > 1).then_some(Share { own, all: workers });
        let reserve = Reserve::open(&config, longest, share, completed.cloned())?;
        let reserve = match xsk {
            Some(xsk) => reserve.with_xsk(Arc::clone(xsk), own),
            None => reserve,
        };
        let presence = (own == 0).then(|| Arc::clone(presence));
        Ok(boxed(LastingPort::new(port, reserve, presence)))
    };
    ports.into_iter().zip(0..).map(one).collect()
}

/// A place for the port of each interface.
fn none(setup: &RouterSetup) -> Vec<Option<Box<dyn Port>>> {
    setup.interfaces.iter().map(|_| None).collect()
}

/// The frame from the offset at which its type is where an untagged frame has it.
fn without_tag(frame: &Frame) -> &[u8] {
    match frame.bytes() {
        [_, _, _, _, rest @ ..] if rest.get(8..10) == Some(&[0x81, 0]) => rest,
        bytes => bytes,
    }
}

fn boxed(port: impl Port + 'static) -> Box<dyn Port> {
    Box::new(port)
}

/// MTU of a device.
fn device_mtu(name: &str) -> Option<u16> {
    std::fs::read_to_string(format!("/sys/class/net/{name}/mtu")).ok()?.trim().parse().ok()
}

/// True for a device without hardware: a stack at its other end may leave checksums to it.
fn is_virtual(name: &str) -> bool {
    !Path::new(&format!("/sys/class/net/{name}/device")).exists()
}

/// The sysctl by which this namespace's kernel forwards, if it does.
pub(super) fn kernel_forwards() -> Option<&'static str> {
    [
        ("net.ipv4.ip_forward", "ipv4/ip_forward"),
        ("net.ipv6.conf.all.forwarding", "ipv6/conf/all/forwarding"),
    ]
    .into_iter()
    .find(|(_, path)| {
        std::fs::read_to_string(format!("/proc/sys/net/{path}"))
            .is_ok_and(|text| text.trim() == "1")
    })
    .map(|(setting, _)| setting)
}

/// One port for each worker, and their kind.
fn queues(
    entry: &InterfaceSetup,
    (number, interface): (u8, &Interface),
    (workers, returns): (usize, usize),
    completed: Option<&Arc<AtomicU64>>,
    (vlans, flows): (&[(u16, u8)], Option<&Arc<FlowTable>>),
) -> anyhow::Result<OpenedPorts> {
    let mtu = interface.mtu;
    let opened = |(ports, kind)| OpenedPorts {
        ports,
        kind,
        shared_with_kernel: false,
        instead: None,
        capture: None,
        losses: None,
        reserve: None,
    };
    let with_kernel =
        |(ports, kind)| OpenedPorts { shared_with_kernel: true, ..opened((ports, kind)) };
    let name = &entry.name;
    let refused = |error: NetioError| {
        RouterdError::Environment(format!(
            "interface {name}: {error}\n  next step: `fwdlab doctor` lists the ports of this machine"
        ))
    };
    let xsk = || {
        let program = match flows {
            None => XskProgram::attach(name, workers as u32, None)?,
            Some(flows) => {
                let is_incomplete = completed.is_some() && is_virtual(name);
                let port = (number, interface.mac);
                XskProgram::attach_forwarding(flows, name, port, is_incomplete, None)?
            }
        };
        let reserve = Some(XskReserve::open(&program, number, (workers as u32, returns)));
        let ports = xsk(&program, number, workers)?;
        Ok::<_, NetioError>(OpenedPorts { reserve, ..opened(ports) })
    };
    match entry.port {
        PortKind::Xsk => Ok(xsk().map_err(refused)?),
        PortKind::Packet => {
            Ok(with_kernel(packet(name, (number, mtu), workers, completed).map_err(refused)?))
        }
        PortKind::Auto => {
            let tried = match () {
                () if mtu > XSK_MTU_MAX => Err(too_long_for_xsk(mtu)),
                () if !vlans.is_empty() => Err(vlans::NO_XSK.to_owned()),
                () => xsk().map_err(|error| error.to_string()),
            };
            let why = match tried {
                Ok(ports) => return Ok(ports),
                Err(why) => why,
            };
            let (ports, kind) = packet(name, (number, mtu), workers, completed).map_err(refused)?;
            let kind = format!("{kind} (no AF_XDP: {why})");
            Ok(OpenedPorts { instead: Some(why), ..with_kernel((ports, kind)) })
        }
        PortKind::Pcap if workers > 1 => Err(mistake(format!("interface {name}: {ONE_READER}"))),
        PortKind::Pcap => {
            let path = |file: &Option<String>| file.as_ref().map(Path::new).map(Path::to_owned);
            let (input, output) = (path(&entry.input), path(&entry.output));
            let port = PcapPort::open(input.as_deref(), output.as_deref(), number);
            let port = port.map_err(|error| mistake(format!("interface {name}: {error}")))?;
            let capture = entry.input.as_ref().map(|input| Capture::new(input, &port));
            let losses = port.losses();
            Ok(OpenedPorts { capture, losses, ..opened((vec![boxed(port)], "pcap".into())) })
        }
    }
}

fn xsk(
    program: &XskProgram,
    number: u8,
    workers: usize,
) -> Result<(Vec<Box<dyn Port>>, String), NetioError> {
    let mut zero_copy = true;
    let mut ports: Vec<Box<dyn Port>> = Vec::new();
    for queue in 0..workers as u32 {
        let port = XskPort::open(&XskConfig { queue, number, bind: Bind::Auto }, program)?;
        zero_copy &= port.is_zero_copy()?;
        ports.push(Box::new(port));
    }
    let how = if zero_copy { "zero copy" } else { "copy" };
    Ok((ports, format!("AF_XDP, {how}, {:?} mode", program.mode()).to_lowercase()))
}

fn packet(
    name: &str,
    (number, mtu): (u8, u16),
    workers: usize,
    completed: Option<&Arc<AtomicU64>>,
) -> Result<(Vec<Box<dyn Port>>, String), NetioError> {
    // Fanout groups belong to the namespace: the process ID keeps two routers apart.
    let group = (std::process::id() as u16).wrapping_mul(4).wrapping_add(number.into());
    let fanout = (workers > 1).then_some(group);
    let config = PacketConfig { interface: name.into(), number, fanout };
    // A link may receive longer packets than it may send.
    let longest = device_mtu(name).unwrap_or(mtu).max(mtu);
    let port = |_| {
        let port = PacketPort::open_for(&config, longest)?;
        Ok(match completed {
            Some(completed) => boxed(port.completing(Arc::clone(completed))),
            None => boxed(port),
        })
    };
    let ports: Result<Vec<_>, NetioError> = (0..workers).map(port).collect();
    Ok((ports?, "af_packet".into()))
}

/// The port with its configured taps.
fn tapped(
    port: Box<dyn Port>,
    number: u8,
    entry: &InterfaceSetup,
    queue: usize,
    losses: &mut Vec<Arc<WriteLosses>>,
) -> anyhow::Result<Box<dyn Port>> {
    let mut create = |path: &str, has_header| {
        // Each worker has its own file: `x.pcap`, `x.pcap.1`, ...
        let path = if queue == 0 { path.to_owned() } else { format!("{path}.{queue}") };
        let file = RecordFile::create(&path, has_header);
        let file =
            file.map_err(|error| mistake(format!("interface {}: {path}: {error}", entry.name)))?;
        losses.push(file.losses());
        anyhow::Ok(file)
    };
    let mut port = port;
    if entry.faults.is_some() || entry.sent_faults.is_some() {
        let faults = [entry.faults, entry.sent_faults];
        let fault = |what| mistake(format!("interface {}: {what}", entry.name));
        valid_faults(entry).map_err(fault)?;
        let seed = faults.iter().flatten().map(|faults| faults.seed).next().unwrap_or_default();
        let seed = seed.wrapping_add(queue as u64);
        let [incoming, outgoing] = faults.map(Option::unwrap_or_default);
        port = Box::new(FaultTap::new(port, number, incoming, outgoing, seed));
    }
    if let Some(path) = &entry.capture {
        port = Box::new(PcapTap::new(port, number, create(path, true)?)?);
    }
    if let Some(path) = &entry.trace {
        port = Box::new(TraceTap::new(port, number, create(path, false)?));
    }
    Ok(port)
}

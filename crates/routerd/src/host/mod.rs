//! The kernel that hosts the router: a device for each interface, and its routes.

mod follow;

use super::interfaces::NamedInterface;
use super::routing::Routing;
use super::{mistake, vlans};
use anyhow::Context;
use follow::Follower;
use fwdlab_model::router::{HostSetup, InterfaceSetup, PortKind, RouterSetup};
use fwdlab_netio::host::{Carrier, HostDevice, HostPort, has_no_inet6};
use fwdlab_netio::netlink::{Groups, Netlink};
use fwdlab_netio::{NetNs, NetioError, Port};
use fwdlab_router::path::Interface;
use fwdlab_router::routes::kernel::KernelRoutes;
use rustix::io::Errno;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Maximum length of a device's name in bytes.
const NAME_MAX: usize = 15;
/// Maximum number of interfaces and devices together: each has its own number.
const PORTS_MAX: usize = 255;

/// The device of each interface, and the sockets that follow the kernel.
pub(super) struct Host {
    /// By worker.
    pub(super) ports: Vec<Vec<Box<dyn Port>>>,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
    carriers: Vec<(String, Carrier)>,
    sockets: Sockets,
    /// The router's interfaces by the numbers of their devices.
    indices: HashMap<u32, String>,
    setup: HostSetup,
}

/// Netlink sockets.
struct Sockets {
    /// Receives route notifications, in the namespace of the devices.
    events: Netlink,
    /// Queries all routes.
    questions: Netlink,
    /// Receives link notifications, in the namespace of the interfaces.
    links: Netlink,
    /// Queries all links.
    link_questions: Netlink,
}

/// True for interfaces that have a host device.
fn has_device(setup: &RouterSetup, at: usize) -> bool {
    let carrier = setup.interfaces.get(at).map(|entry| vlans::carrier(setup, entry));
    let is_device = carrier.is_some_and(|entry| entry.port != PortKind::Pcap);
    setup.host.is_some() && setup.circuits.is_empty() && is_device
}

/// The host's port of each interface: their numbers follow the interfaces' numbers.
pub(super) fn ports(setup: &RouterSetup) -> Vec<Option<u8>> {
    let count = setup.interfaces.len();
    let mut next = count;
    let one = |at: usize| {
        has_device(setup, at).then(|| {
            next += 1;
            u8::try_from(next - 1).unwrap_or(u8::MAX)
        })
    };
    (0..count).map(one).collect()
}

/// Name of each interface's host device.
///
/// # Errors
/// User errors.
pub(super) fn names(setup: &RouterSetup) -> anyhow::Result<Vec<Option<String>>> {
    let Some(host) = &setup.host else {
        if let Some(entry) = setup.interfaces.iter().find(|i| i.host_device.is_some()) {
            return Err(mistake(format!(
                "interface {}: a host_device needs a [host]; write one, if only as an empty table",
                entry.name
            )));
        }
        return Ok(vec![None; setup.interfaces.len()]);
    };
    let mut names: Vec<Option<String>> = Vec::new();
    for (at, entry) in setup.interfaces.iter().enumerate() {
        let fault = |what: String| mistake(format!("interface {}: {what}", entry.name));
        if !has_device(setup, at) {
            if entry.host_device.is_some() {
                return Err(fault("files have no host_device: leave it out".into()));
            }
            names.push(None);
            continue;
        }
        let name = match (&entry.host_device, &host.namespace) {
            (Some(name), _) => name.clone(),
            (None, Some(_)) => entry.name.clone(),
            (None, None) => format!("{}-h", entry.name),
        };
        if name.is_empty() || name.len() > NAME_MAX || name.contains(['/', ' ', ':']) {
            return Err(fault(format!(
                "`{name}` is no name for a host device: write a `host_device` of 1 to {NAME_MAX} \
                 letters and digits"
            )));
        }
        if names.iter().flatten().any(|other| *other == name) {
            return Err(fault(format!("another interface has the host device `{name}` already")));
        }
        names.push(Some(name));
    }
    let devices = names.iter().flatten().count();
    if names.len() + devices > PORTS_MAX {
        return Err(mistake(format!(
            "{} [[interface]], of which {devices} have a device of the [host]: together there may \
             be {PORTS_MAX}, so write at most {}, or leave [host] out",
            names.len(),
            PORTS_MAX / 2
        )));
    }
    Ok(names)
}

/// Creates the devices, if any, and opens the sockets.
///
/// # Errors
/// Errors of the set-up, and missing requirements of the environment.
pub(super) fn open(
    setup: &RouterSetup,
    interfaces: &[NamedInterface],
) -> anyhow::Result<Option<Host>> {
    let Some(host) = setup.host.clone() else { return Ok(None) };
    if !setup.circuits.is_empty() {
        return Err(mistake("host: a router between circuits has none; leave [host] out".into()));
    }
    let space = match &host.namespace {
        None => NetNs::current()?,
        Some(name) => NetNs::open(name)
            .with_context(|| format!("host: namespace {name}; next step: ip netns add {name}"))?,
    };
    let (links, link_questions) = (Netlink::open(Groups::Links)?, Netlink::open(Groups::None)?);
    let workers = setup.workers;
    let all = names(setup)?.into_iter().zip(interfaces).zip(&setup.interfaces);
    let desired = all.filter_map(|((name, named), entry)| {
        Some(DesiredDevice::new(name?, named, entry, host.namespace.clone()))
    });
    let desired: Vec<DesiredDevice> = desired.collect();
    let (events, questions, made) = space.run(move || {
        // Open before there are notifications.
        let (events, questions) = (Netlink::open(Groups::Routes)?, Netlink::open(Groups::None)?);
        let one = |desired: DesiredDevice| {
            let (device, notes) = desired.make(workers)?;
            anyhow::Ok((desired.of, device, notes))
        };
        Ok((events, questions, desired.into_iter().map(one).collect::<anyhow::Result<Vec<_>>>()))
    })?;
    let numbers: Vec<u8> = ports(setup).into_iter().flatten().collect();
    let mut all = Host {
        ports: (0..workers).map(|_| Vec::new()).collect(),
        notes: Vec::new(),
        carriers: Vec::new(),
        sockets: Sockets { events, questions, links, link_questions },
        indices: HashMap::new(),
        setup: host,
    };
    for ((of, device, notes), number) in made?.into_iter().zip(numbers) {
        all.notes.extend(notes);
        all.indices.insert(device.index(), of.clone());
        let entry = setup.interfaces.iter().find(|entry| entry.name == of);
        let link = entry.map_or(&of, |entry| &vlans::carrier(setup, entry).name);
        all.carriers.push((link.clone(), device.carrier()?));
        for (ports, queue) in all.ports.iter_mut().zip(device.into_queues()) {
            ports.push(Box::new(HostPort::new(queue, number)));
        }
    }
    Ok(Some(all))
}

/// A device to create.
struct DesiredDevice {
    /// The interface to which it belongs.
    of: String,
    name: String,
    /// Name of its namespace, if it has its own.
    space: Option<String>,
    link: ([u8; 6], u16),
    /// Addresses of the set-up, and addresses added to them.
    own: Vec<(IpAddr, u8)>,
    added: Vec<(IpAddr, u8)>,
}

impl DesiredDevice {
    fn new(
        name: String,
        named: &NamedInterface,
        entry: &InterfaceSetup,
        space: Option<String>,
    ) -> DesiredDevice {
        let Interface { mac, mtu, addresses } = &named.interface;
        // Added addresses come last.
        let (own, added) = addresses.split_at(entry.addresses.len().min(addresses.len()));
        DesiredDevice {
            of: named.name.clone(),
            name,
            space,
            link: (*mac, *mtu),
            own: own.to_vec(),
            added: added.to_vec(),
        }
    }

    /// Creates the device. If the kernel refuses an added address, that is a note.
    ///
    /// # Errors
    /// Any other refusal of the kernel, with a next step.
    fn make(&self, workers: u16) -> anyhow::Result<(HostDevice, Vec<String>)> {
        let DesiredDevice { of, name, .. } = self;
        let what = |step: &str| format!("interface {of}: no host device `{name}`{step}");
        let made = HostDevice::make(name, workers, self.link);
        let mut device = made.map_err(|error| {
            let step = self.next_step(&error);
            anyhow::Error::new(error).context(what(&step))
        })?;
        for &own in &self.own {
            device.add_address(own).map_err(|error| {
                let step = match has_no_inet6(&error) {
                    true => {
                        "; next step: sysctl -w net.ipv6.conf.default.disable_ipv6=0 where it is \
                         to be, or leave its IPv6 addresses out"
                    }
                    false => "",
                };
                anyhow::Error::new(error).context(what(step))
            })?;
        }
        let mut notes = Vec::new();
        for &own in &self.added {
            match device.add_address(own) {
                Err(error) if has_no_inet6(&error) => {
                    notes.push(format!("interface {of}: {error}: its host goes without IPv6"));
                }
                other => other.map_err(|error| anyhow::Error::new(error).context(what("")))?,
            }
        }
        Ok((device, notes))
    }

    fn next_step(&self, error: &NetioError) -> String {
        let name = &self.name;
        match error.errno().map(Errno::from_raw_os_error) {
            Some(Errno::BUSY | Errno::EXIST | Errno::INVAL) => {
                let of = self.space.as_ref().map(|space| format!(" -n {space}"));
                let of = of.unwrap_or_default();
                format!(
                    " (is there one?); next step: another `host_device`, or ip{of} link del {name}"
                )
            }
            Some(Errno::NOENT | Errno::NXIO | Errno::NODEV) => "; next step: modprobe tun".into(),
            Some(Errno::PERM | Errno::ACCESS) => {
                "; next step: run it as root, or with CAP_NET_ADMIN where it is to be".into()
            }
            _ => String::new(),
        }
    }
}

/// A thread that follows the kernel's routes and links. Dropping it ends it.
pub(super) struct Following {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    trouble: Arc<Mutex<Option<String>>>,
}

impl Host {
    /// Puts the kernel's routes into the tables and follows them from then on.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub(super) fn follow(self, routing: &Arc<Mutex<Routing>>) -> anyhow::Result<Following> {
        let Host { carriers, sockets, indices, setup, .. } = self;
        let (stop, trouble) = (Arc::<AtomicBool>::default(), Arc::default());
        let kernel = KernelRoutes::new(setup.table, indices);
        let mut follower = Follower::new(sockets, carriers, routing, &stop, &trouble);
        follower.begin(kernel, setup.routes)?;
        let thread = thread::Builder::new().name("router/kernel".into());
        let thread = thread.spawn(move || follower.run()).context("starting a thread")?;
        Ok(Following { stop, thread: Some(thread), trouble })
    }
}

impl Following {
    /// The reason why it cannot follow, if any.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread has already reported its errors.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(interfaces: usize, files: usize) -> RouterSetup {
        let interface = |number: usize| InterfaceSetup {
            name: format!("r{number}"),
            port: if number < files { PortKind::Pcap } else { PortKind::Auto },
            ..InterfaceSetup::default()
        };
        RouterSetup {
            interfaces: (0..interfaces).map(interface).collect(),
            host: Some(HostSetup::default()),
            ..RouterSetup::default()
        }
    }

    #[test]
    fn interfaces_and_devices_share_the_port_numbers() {
        for (interfaces, files) in [(127, 0), (128, 1), (200, 145)] {
            let setup = setup(interfaces, files);
            assert_eq!(names(&setup).expect("few enough").len(), interfaces);
            let ports: Vec<u8> = ports(&setup).into_iter().flatten().collect();
            let last = ports.last().map(|&port| usize::from(port));
            assert_eq!(last, Some(2 * interfaces - files - 1));
        }
        let error = names(&setup(128, 0)).expect_err("one too many").to_string();
        let expected = "128 [[interface]], of which 128 have a device of the [host]";
        assert!(error.contains(expected) && error.contains("at most 127"), "{error}");
    }

    #[test]
    fn device_errors_have_a_next_step() {
        let named = NamedInterface {
            name: "r0".into(),
            interface: Interface {
                mac: [2; 6],
                mtu: 1500,
                addresses: ["192.0.2.1", "fe80::1"]
                    .map(|own| (own.parse().expect("an address"), 24))
                    .to_vec(),
            },
        };
        let entry =
            InterfaceSetup { addresses: vec!["192.0.2.1/24".into()], ..InterfaceSetup::default() };
        let desired = DesiredDevice::new("up".into(), &named, &entry, Some("routing".into()));
        assert_eq!((desired.own.len(), desired.added.len()), (1, 1));
        let step = |errno: Errno| desired.next_step(&NetioError::system("making", errno));
        assert!(step(Errno::BUSY).contains("another `host_device`, or ip -n routing link del up"));
        assert!(step(Errno::NOENT).ends_with("modprobe tun"));
        assert!(step(Errno::PERM).contains("CAP_NET_ADMIN"));
        assert_eq!(step(Errno::NOMEM), "");
    }
}

//! The kernel beside the router: a device for each interface, and its routes.

mod follow;

use super::interfaces::Named;
use super::routing::Routing;
use super::{mistake, vlans};
use anyhow::Context;
use follow::Follower;
use fwdlab_model::router::{HostSetup, PortKind, RouterSetup};
use fwdlab_port::host::{Carrier, HostDevice, HostPort};
use fwdlab_port::netlink::Netlink;
use fwdlab_port::{NetNs, Port};
use fwdlab_router::routes::kernel::KernelRoutes;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Most bytes of a device's name.
const NAME_MAX: usize = 15;

/// The devices of an interface each, and the sockets to follow the kernel with.
pub(super) struct Host {
    /// By worker.
    pub(super) ports: Vec<Vec<Box<dyn Port>>>,
    carriers: Vec<(String, Carrier)>,
    sockets: Sockets,
    /// The router's interfaces by the numbers of their devices.
    indices: HashMap<u32, String>,
    setup: HostSetup,
}

/// Sockets of netlink.
struct Sockets {
    /// Hears of routes, where the devices are.
    events: Netlink,
    /// Asks for all of them.
    questions: Netlink,
    /// Hears of links, where the interfaces are.
    links: Netlink,
    /// Asks for all of them.
    link_questions: Netlink,
}

/// True of interfaces that have a host device.
fn has_device(setup: &RouterSetup, at: usize) -> bool {
    let carrier = setup.interfaces.get(at).map(|written| vlans::carrier(setup, written));
    let is_device = carrier.is_some_and(|written| written.port != PortKind::Pcap);
    setup.host.is_some() && setup.circuits.is_empty() && is_device
}

/// The host's port of each interface: their numbers follow those of the interfaces.
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

/// Name of the device beside each interface.
///
/// # Errors
/// The user's mistakes.
pub(super) fn names(setup: &RouterSetup) -> anyhow::Result<Vec<Option<String>>> {
    let Some(host) = &setup.host else {
        if let Some(written) = setup.interfaces.iter().find(|i| i.host_device.is_some()) {
            return Err(mistake(format!(
                "interface {}: a host_device needs a [host]; write one, if only as an empty table",
                written.name
            )));
        }
        return Ok(vec![None; setup.interfaces.len()]);
    };
    let mut names: Vec<Option<String>> = Vec::new();
    for (at, written) in setup.interfaces.iter().enumerate() {
        let fault = |what: String| mistake(format!("interface {}: {what}", written.name));
        if !has_device(setup, at) {
            if written.host_device.is_some() {
                return Err(fault("files have no host_device: leave it out".into()));
            }
            names.push(None);
            continue;
        }
        let name = match (&written.host_device, &host.namespace) {
            (Some(name), _) => name.clone(),
            (None, Some(_)) => written.name.clone(),
            (None, None) => format!("{}-h", written.name),
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
    Ok(names)
}

/// Makes the devices, if there are to be any, and opens the sockets.
///
/// # Errors
/// What is wrong with the set-up, or what the environment lacks.
pub(super) fn open(setup: &RouterSetup, interfaces: &[Named]) -> anyhow::Result<Option<Host>> {
    let Some(host) = setup.host.clone() else { return Ok(None) };
    if !setup.circuits.is_empty() {
        return Err(mistake("host: a router between circuits has none; leave [host] out".into()));
    }
    let space = match &host.namespace {
        None => NetNs::current()?,
        Some(name) => NetNs::open(name)
            .with_context(|| format!("host: namespace {name}; next step: ip netns add {name}"))?,
    };
    let (links, link_questions) = (Netlink::open(true)?, Netlink::open(false)?);
    let workers = setup.workers;
    let wanted: Vec<_> = names(setup)?
        .into_iter()
        .zip(interfaces)
        .filter_map(|(name, named)| Some((name?, named.clone())))
        .collect();
    let (events, questions, made) = space.run(move || {
        // Before there is anything to be heard of.
        let (events, questions) = (Netlink::open(true)?, Netlink::open(false)?);
        let mut made = Vec::new();
        for (name, Named { name: of, interface }) in wanted {
            let link = (interface.mac, interface.mtu);
            made.push((of, HostDevice::make(&name, workers, link, &interface.addresses)?));
        }
        Ok((events, questions, made))
    })?;
    let numbers: Vec<u8> = ports(setup).into_iter().flatten().collect();
    let mut all = Host {
        ports: (0..workers).map(|_| Vec::new()).collect(),
        carriers: Vec::new(),
        sockets: Sockets { events, questions, links, link_questions },
        indices: HashMap::new(),
        setup: host,
    };
    for ((of, device), number) in made.into_iter().zip(numbers) {
        all.indices.insert(device.index(), of.clone());
        let written = setup.interfaces.iter().find(|written| written.name == of);
        let link = written.map_or(&of, |written| &vlans::carrier(setup, written).name);
        all.carriers.push((link.clone(), device.carrier()?));
        for (ports, queue) in all.ports.iter_mut().zip(device.into_queues()) {
            ports.push(Box::new(HostPort::new(queue, number)));
        }
    }
    Ok(Some(all))
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
    /// What the kernel says.
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
    /// What keeps it from following, if anything does.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell that isn't told.
            let _ = thread.join();
        }
    }
}

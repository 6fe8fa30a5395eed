//! Flows that a BPF program forwards from interface to interface, without the router's process.
//!
//! The router decides about the first packets of a flow and then inserts it, with the MACs and the
//! port on which it leaves. The program forwards the following packets, after the same checks of
//! their headers; frames that it does not know or that need more (options, fragments, expiring
//! packets, TCP packets that open or close a connection) go to the router's AF_XDP sockets. The
//! table is memory shared with the program: the router writes flows and reads counters without
//! system calls.
//!
//! Each flow belongs to a generation. [`FlowTable::invalidate`] begins a new one when routes,
//! neighbours, rules or states change, so that each flow then needs another decision of the
//! router. A decision counts for the generation that was current before it was made.

mod layout;

pub use layout::{FlowCount, FlowKey, FlowLink, PortCount};

use crate::NetioError;
use crate::xdp::{Mapped, array_of, program};
use aya::maps::{DevMap, Map};
use aya::programs::RawTracePoint;
use aya::util::nr_cpus;
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use layout::{Control, INCOMPLETE_CHECKSUMS, INTERFACES, Interface, Slot};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

static OBJECT: &[u8] = include_bytes_aligned!("../../bpf/forward.bpf.o");

/// Time for which a slot stays empty: no CPU still reads its previous flow afterwards.
const GRACE_NS: u64 = 10_000_000;
/// Frames that a device takes at the same time (the kernel's `DEV_MAP_BULK_SIZE`).
const BURST: u64 = 16;
/// Time at which an occupied slot becomes free.
const OCCUPIED: u64 = u64::MAX;

/// The program and its table of flows.
#[derive(Debug)]
pub struct FlowTable {
    slots: Mapped<Slot>,
    /// Packets and bytes of each slot.
    counts: Mapped<u64>,
    control: Mapped<Control>,
    interfaces: Mapped<Interface>,
    /// By CPU and port.
    port_counts: Mapped<PortCount>,
    unserved: Arc<Mapped<u64>>,
    ports: u32,
    queues: u32,
    seed: u64,
    /// Ports with the program, by number.
    attached: Ports,
    /// Their interfaces.
    indices: Mutex<HashMap<u8, u32>>,
    /// Ports that take redirected frames, as far as is known.
    takes: Ports,
    /// Ports that were found to take none.
    refuses: Ports,
    /// Checks of the ports, by number.
    checks: Mutex<Vec<LinkCheck>>,
    /// Time from which each slot is free.
    free_ns: Mutex<Vec<u64>>,
    // Contains the program; interfaces have links to it.
    object: Arc<Mutex<Ebpf>>,
}

/// A set of ports.
#[derive(Debug, Default)]
struct Ports([AtomicU64; 4]);

impl Ports {
    #[inline]
    fn contains(&self, port: u8) -> bool {
        self.0[usize::from(port) / 64].load(Ordering::Relaxed) >> (port % 64) & 1 != 0
    }

    fn add(&self, port: u8) {
        self.0[usize::from(port) / 64].fetch_or(1 << (port % 64), Ordering::Relaxed);
    }

    fn remove(&self, port: u8) {
        self.0[usize::from(port) / 64].fetch_and(!(1 << (port % 64)), Ordering::Relaxed);
    }
}

/// Detects interfaces that refuse every redirected frame.
#[derive(Clone, Copy, Debug, Default)]
struct LinkCheck {
    /// Counts of the port when it got its current interface.
    base: PortCount,
    /// Counts at the last check.
    last: PortCount,
}

impl LinkCheck {
    /// Begins with a new interface of a port.
    fn new(now: PortCount) -> LinkCheck {
        LinkCheck { base: now, last: now }
    }

    /// True if the interface has refused every frame, and some of them since the last check.
    fn refuses_all(&mut self, now: PortCount) -> bool {
        let since = |past: PortCount| (now.sent - past.sent, now.lost - past.lost);
        let ((sent, lost), (all_sent, all_lost)) = (since(self.last), since(self.base));
        self.last = now;
        // Frames of the present batch are counted as sent before they can be lost.
        lost > 0 && lost + BURST >= sent && all_lost + BURST >= all_sent
    }
}

/// A port on which the program is to run.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowPort {
    pub(super) number: u8,
    pub(super) index: u32,
    pub(super) mac: [u8; 6],
    pub(super) incomplete_checksums: bool,
}

impl FlowTable {
    /// Loads the program for a number of ports, each with `queues` queues, and up to `flows` flows,
    /// rounded up to a power of two.
    ///
    /// # Errors
    /// If the kernel refuses maps or program: no right to load BPF, or not enough memory.
    pub fn load(ports: u8, queues: u32, flows: u32) -> Result<Arc<FlowTable>, NetioError> {
        let failed =
            |e: &dyn std::error::Error| NetioError::bpf("loading the BPF forwarding program", e);
        let (ports, queues) = (u32::from(ports).max(1), queues.max(1));
        let slots = flows.clamp(2, 1 << 24).next_power_of_two();
        let seed = RandomState::new().hash_one(slots) | 1;
        let cpus = nr_cpus().map_err(|(_, error)| failed(&error))? as u32;
        let mut object = EbpfLoader::new()
            .override_global("MASK", &(slots - 1), true)
            .override_global("PORTS", &ports, true)
            .override_global("SEED", &seed, true)
            .map_max_entries("sockets", ports * queues)
            .map_max_entries("links", ports)
            .map_max_entries("port_counts", cpus * ports)
            .map_max_entries("flows", slots)
            .map_max_entries("flow_counts", slots)
            .load(OBJECT)
            .map_err(|e| failed(&e))?;
        program(&mut object, "forward")?.load().map_err(|e| failed(&e))?;
        trace(&mut object, "count_lost", "xdp_devmap_xmit")?;
        trace(&mut object, "count_refused", "xdp_redirect_err")?;
        let links = match object.map("links") {
            Some(Map::DevMap(data)) => data.info().map_err(|e| failed(&e))?.id(),
            _ => 0,
        };
        let map = |name| array_of(&object, name).map(|data| data.fd());
        let table = FlowTable {
            slots: Mapped::new(map("flows")?, slots as usize)?,
            counts: Mapped::new(map("flow_counts")?, slots as usize)?,
            control: Mapped::new(map("control")?, 1)?,
            interfaces: Mapped::new(map("interfaces")?, INTERFACES as usize)?,
            port_counts: Mapped::new(map("port_counts")?, (cpus * ports) as usize)?,
            unserved: Arc::new(Mapped::new(map("unserved")?, 1)?),
            ports,
            queues,
            seed,
            attached: Ports::default(),
            indices: Mutex::default(),
            takes: Ports::default(),
            refuses: Ports::default(),
            checks: Mutex::new(vec![LinkCheck::default(); ports as usize]),
            free_ns: Mutex::new(vec![0; slots as usize]),
            object: Arc::new(Mutex::new(object)),
        };
        table.generation_word().store(1, Ordering::Release);
        let namespace = namespace()?;
        // SAFETY: inside the mapping and aligned; the program runs nowhere yet.
        unsafe {
            (&raw mut (*table.control.at(0)).namespace).write_volatile(namespace);
            (&raw mut (*table.control.at(0)).links).write_volatile(links.into());
        }
        Ok(Arc::new(table))
    }

    /// The current generation.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.generation_word().load(Ordering::Acquire) as u32
    }

    /// Begins a new generation: packets of all flows go to the router until they are inserted
    /// again. Call this after each change on which decisions depend.
    pub fn invalidate(&self) {
        let next = |now: u64| Some(u64::from((now as u32).wrapping_add(1).max(1)));
        let _ = self.generation_word().fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
    }

    fn generation_word(&self) -> &AtomicU64 {
        // SAFETY: the mapping contains this aligned word for as long as `self`; router and program
        // access it atomically only.
        unsafe { AtomicU64::from_ptr((&raw mut (*self.control.at(0)).generation).cast()) }
    }

    fn slot_generation(&self, slot: u32) -> &AtomicU32 {
        // SAFETY: as above; writers of other fields hold `free_ns`, and no CPU reads them.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.slots.at(slot as usize)).generation) }
    }

    /// True if flows from one port to the other may be inserted.
    #[inline]
    pub fn connects(&self, ingress: u8, egress: u8) -> bool {
        self.attached.contains(ingress) && self.takes.contains(egress)
    }

    /// Excludes ports as egress that refused every frame since the last check: a veth whose other
    /// end does not poll (it needs GRO or an XDP program) refuses all.
    pub fn check_links(&self) {
        for (number, check) in (0u8..).zip(self.checks().iter_mut()) {
            if check.refuses_all(self.port(number)) {
                self.takes.remove(number);
                self.refuses.add(number);
                self.invalidate();
            }
        }
    }

    /// True if the device of a port refused every redirected frame.
    pub fn refuses(&self, number: u8) -> bool {
        self.refuses.contains(number)
    }

    /// Inserts a flow, decided in `generation`. Returns its slot, which the caller has to release;
    /// `None` if the flow is there already, if there is no room, or if the generation is over.
    /// `now_ns` is a monotonic time.
    pub fn insert(
        &self,
        key: &FlowKey,
        link: &FlowLink,
        generation: u32,
        now_ns: u64,
    ) -> Option<u32> {
        if generation != self.generation() || u32::from(link.egress) >= self.ports {
            return None;
        }
        let first = self.first(key);
        let mut free_ns = self.writer();
        let has_it = |slot: u32| {
            free_ns[slot as usize] == OCCUPIED && self.slots.read(slot as usize).key == *key
        };
        if has_it(first) || has_it(first | 1) {
            return None;
        }
        let slot = [first, first | 1].into_iter().find(|&slot| free_ns[slot as usize] <= now_ns)?;
        free_ns[slot as usize] = OCCUPIED;
        // SAFETY: both pointers are inside their mappings and aligned. The slot's generation is 0,
        // and has been for [`GRACE_NS`], so that no CPU reads or counts in the slot.
        unsafe {
            self.counts.at(slot as usize).write_volatile(0);
            self.slots.at(slot as usize).write_volatile(Slot::new(key, link));
        }
        self.slot_generation(slot).store(generation, Ordering::Release);
        Some(slot)
    }

    /// Stops forwarding a flow, if it is in the table.
    pub fn stop(&self, key: &FlowKey) {
        let first = self.first(key);
        let free_ns = self.writer();
        for slot in [first, first | 1] {
            if free_ns[slot as usize] == OCCUPIED && self.slots.read(slot as usize).key == *key {
                self.slot_generation(slot).store(0, Ordering::Release);
            }
        }
    }

    /// True if the program forwards the flow of an occupied slot.
    #[inline]
    pub fn is_live(&self, slot: u32) -> bool {
        self.slot_generation(slot).load(Ordering::Relaxed) == self.generation()
    }

    /// Packets that the program has forwarded for the flow of an occupied slot since `seen`, a
    /// value of an earlier call or 0, which is updated.
    #[inline]
    pub fn count(&self, slot: u32, seen: &mut u64) -> FlowCount {
        let before = std::mem::replace(seen, self.counts.read(slot as usize));
        FlowCount::between(before, *seen)
    }

    /// Removes the flow of an occupied slot. Packets that a CPU is forwarding at this moment may be
    /// missing from its last count.
    pub fn release(&self, slot: u32, now_ns: u64) {
        let mut free_ns = self.writer();
        self.slot_generation(slot).store(0, Ordering::Release);
        free_ns[slot as usize] = now_ns.saturating_add(GRACE_NS);
    }

    /// Frames of a port that the program forwarded.
    pub fn port(&self, number: u8) -> PortCount {
        let (number, ports) = (usize::from(number), self.ports as usize);
        let by_cpu = (number..self.port_counts.len()).step_by(ports);
        by_cpu.map(|at| self.port_counts.read(at)).fold(PortCount::default(), |sum, more| {
            PortCount {
                received: sum.received + more.received,
                sent: sum.sent + more.sent,
                lost: sum.lost + more.lost,
            }
        })
    }

    fn first(&self, key: &FlowKey) -> u32 {
        key.place(self.seed, self.slots.len() as u32 - 1)
    }

    fn writer(&self) -> MutexGuard<'_, Vec<u64>> {
        self.free_ns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of the first socket of a port.
    pub(super) fn first_socket(&self, number: u8) -> u32 {
        u32::from(number) * self.queues
    }

    /// Registers a port before the program is attached to its interface.
    pub(super) fn register(&self, port: &FlowPort) -> Result<(), NetioError> {
        let FlowPort { number, index, mac, incomplete_checksums } = *port;
        let refused = |why: String| NetioError::Bpf { what: "registering an interface", why };
        if u32::from(number) >= self.ports {
            return Err(refused(format!("port {number} of {}", self.ports)));
        }
        let place = (index % INTERFACES) as usize;
        let other = self.interfaces.read(place).index;
        if other != 0 && other != index {
            let why = format!("interfaces {other} and {index} are equal modulo {INTERFACES}");
            return Err(refused(why));
        }
        let first_socket = self.first_socket(number);
        let flags = if incomplete_checksums { INCOMPLETE_CHECKSUMS } else { 0 };
        // SAFETY: inside the mapping and aligned; the program is not yet attached to the interface.
        unsafe {
            self.interfaces.at(place).write_volatile(Interface {
                index,
                first_socket,
                mac,
                number,
                flags,
            });
        }
        let mut object = self.object.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(map @ Map::DevMap(_)) = object.map_mut("links") else {
            return Err(refused("no map links".into()));
        };
        let failed = |e: &dyn std::error::Error| NetioError::bpf("registering an interface", e);
        let mut links = DevMap::try_from(map).map_err(|e| failed(&e))?;
        links.set(number.into(), index, None, 0).map_err(|e| failed(&e))?;
        drop(object);
        if let Some(check) = self.checks().get_mut(usize::from(number)) {
            *check = LinkCheck::new(self.port(number));
        }
        self.indices().insert(number, index);
        self.attached.add(number);
        self.refuses.remove(number);
        self.takes.add(number);
        Ok(())
    }

    /// Forgets a port whose interface no longer has the program.
    pub(super) fn unregister(&self, port: &FlowPort) {
        let mut indices = self.indices();
        // Unless the port has another interface by now.
        if indices.get(&port.number) == Some(&port.index) {
            indices.remove(&port.number);
            self.attached.remove(port.number);
            self.takes.remove(port.number);
        }
        drop(indices);
        let place = (port.index % INTERFACES) as usize;
        // SAFETY: inside the mapping and aligned.
        unsafe { (&raw mut (*self.interfaces.at(place)).index).write_volatile(0) };
        self.invalidate();
    }

    fn checks(&self) -> MutexGuard<'_, Vec<LinkCheck>> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn indices(&self) -> MutexGuard<'_, HashMap<u8, u32>> {
        self.indices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn queues(&self) -> u32 {
        self.queues
    }

    pub(super) fn object(&self) -> &Arc<Mutex<Ebpf>> {
        &self.object
    }

    pub(super) fn unserved(&self) -> &Arc<Mapped<u64>> {
        &self.unserved
    }
}

/// Runs a program at a tracepoint for as long as the object exists.
fn trace(object: &mut Ebpf, name: &str, point: &'static str) -> Result<(), NetioError> {
    let failed = |e: &dyn std::error::Error| NetioError::bpf("tracing redirected frames", e);
    let program: &mut RawTracePoint = object
        .program_mut(name)
        .ok_or(NetioError::Bpf { what: "reading a BPF object", why: "no program".into() })?
        .try_into()
        .map_err(|e: aya::programs::ProgramError| failed(&e))?;
    program.load().map_err(|e| failed(&e))?;
    program.attach(point).map(drop).map_err(|e| failed(&e))
}

/// Inode number of the calling thread's network namespace.
fn namespace() -> Result<u64, NetioError> {
    let link = std::fs::metadata("/proc/thread-self/ns/net");
    let failed = |e: std::io::Error| NetioError::Bpf { what: "a namespace", why: e.to_string() };
    link.map(|link| link.ino()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_check_ignores_frames_of_previous_interfaces() {
        let count = |sent, lost| PortCount { received: 0, sent, lost };
        let mut check = LinkCheck::default();
        assert!(!check.refuses_all(count(0, 0)));
        assert!(!check.refuses_all(count(10_000, 0)));
        // One that takes frames may lose a whole interval.
        assert!(!check.refuses_all(count(10_500, 500)));
        // The next interface refuses all.
        check = LinkCheck::new(count(10_700, 600));
        assert!(!check.refuses_all(count(10_700, 600)));
        assert!(check.refuses_all(count(10_900, 790)));
        assert!(!check.refuses_all(count(10_900, 790)));
        // The one after it takes frames.
        check = LinkCheck::new(count(10_900, 800));
        assert!(!check.refuses_all(count(11_000, 800)));
        assert!(!check.refuses_all(count(11_001, 801)));
    }
}

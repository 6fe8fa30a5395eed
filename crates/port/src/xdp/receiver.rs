//! Receiving by an XDP program that counts and drops.

use super::array_of;
use super::layout::ReceiverState;
use super::mapped::Mapped;
use crate::sender::{Received, Receiver};
use crate::{NetNs, PortError, affinity};
use aya::programs::Xdp;
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};

static OBJECT: &[u8] = include_bytes_aligned!("../../bpf/receiver.bpf.o");

/// Where the program hooks in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver.
    Driver,
    /// In the stack, after the socket buffer was made: works with any driver.
    Generic,
}

impl From<XdpMode> for aya::programs::XdpMode {
    fn from(mode: XdpMode) -> aya::programs::XdpMode {
        match mode {
            XdpMode::Driver => aya::programs::XdpMode::Driver,
            XdpMode::Generic => aya::programs::XdpMode::Skb,
        }
    }
}

/// A receiver attached to an interface; detached on drop.
#[derive(Debug)]
pub struct XdpReceiver {
    state: Mapped<ReceiverState>,
    flows: Option<(Mapped<u64>, u32)>,
    // Holds program and link; dropping it detaches.
    _object: Ebpf,
}

impl XdpReceiver {
    /// Attaches the counting program to `interface`. `flows` is the number of
    /// flows to count apart, 0 for none.
    ///
    /// # Errors
    /// When the kernel refuses program, map or hook.
    pub fn new(
        namespace: &NetNs,
        interface: &str,
        run_id: u32,
        flows: u32,
        mode: XdpMode,
    ) -> Result<XdpReceiver, PortError> {
        let interface = interface.to_owned();
        namespace.run(move || XdpReceiver::attach(&interface, run_id, flows, mode))
    }

    fn attach(
        interface: &str,
        run_id: u32,
        flows: u32,
        mode: XdpMode,
    ) -> Result<XdpReceiver, PortError> {
        let cpus = affinity::possible_cpus();
        let mut object = EbpfLoader::new()
            .override_global("RUN_ID", &run_id, true)
            .override_global("FLOWS", &flows, true)
            .map_max_entries("receiver", cpus as u32)
            .map_max_entries("flows", (flows * cpus as u32).max(1))
            .load(OBJECT)
            .map_err(|e| PortError::bpf("loading the BPF receiver", &e))?;
        let state = Mapped::new(array_of(&object, "receiver")?.fd(), cpus)?;
        let flow_map = array_of(&object, "flows")?;
        let flows = match flows {
            0 => None,
            n => Some((Mapped::new(flow_map.fd(), n as usize * cpus)?, n)),
        };
        let program: &mut Xdp = object
            .program_mut("receive_packet")
            .ok_or(PortError::Bpf { what: "reading a BPF object", why: "no program".into() })?
            .try_into()
            .map_err(|e: aya::programs::ProgramError| PortError::bpf("BPF receiver", &e))?;
        program.load().map_err(|e| PortError::bpf("loading the BPF receiver", &e))?;
        program
            .attach(interface, mode.into())
            .map_err(|e| PortError::bpf("attaching the BPF receiver", &e))?;
        Ok(XdpReceiver { state, flows, _object: object })
    }
}

impl Receiver for XdpReceiver {
    fn received(&self) -> Received {
        let mut sum = Received::default();
        for cpu in 0..self.state.len() {
            let one = self.state.read(cpu);
            for (total, packets) in sum.packets.iter_mut().zip(one.packets) {
                *total += packets;
            }
            sum.bytes += one.bytes;
            sum.foreign += one.foreign;
            sum.unstamped += one.unstamped;
        }
        sum
    }

    fn flows_seen(&self) -> Option<u32> {
        let (counts, flows) = self.flows.as_ref()?;
        let cpus = counts.len() / *flows as usize;
        let seen = (0..*flows as usize)
            .filter(|flow| (0..cpus).any(|cpu| counts.read(cpu * *flows as usize + flow) > 0));
        Some(seen.count() as u32)
    }

    fn dropped(&self) -> u64 {
        0 // the program sees every packet that the driver polls
    }
}

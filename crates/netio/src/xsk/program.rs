//! The BPF program of an interface: passes its frames to the ports of its queues, or forwards some
//! of them itself ([`FlowTable`]).

use super::flows::{FlowPort, FlowTable};
use crate::NetioError;
use crate::xdp::{Mapped, XdpMode, array_of, interface_index, program};
use aya::maps::{Map, XskMap};
use aya::programs::Xdp;
use aya::programs::xdp::XdpLink;
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

static OBJECT: &[u8] = include_bytes_aligned!("../../bpf/redirect.bpf.o");

/// The program on one interface, shared by the ports of its queues; detached when the last handle
/// and the last port are dropped.
#[derive(Clone, Debug)]
pub struct XskProgram {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    loaded: LoadedProgram,
    /// Index of the interface.
    index: u32,
    mode: XdpMode,
    // Dropping it detaches.
    _link: XdpLink,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some((table, port)) = self.loaded.forwarding(self.index) {
            table.unregister(&port);
        }
    }
}

/// A loaded program, which can be attached to interfaces that have the name in turn.
#[derive(Clone, Debug)]
pub(super) struct LoadedProgram {
    interface: String,
    queues: u32,
    /// Place of queue 0 in the map of sockets.
    first_socket: u32,
    unserved: Arc<Mapped<u64>>,
    object: Arc<Mutex<Ebpf>>,
    /// The table of a program that forwards, and its port on the first interface.
    table: Option<(Arc<FlowTable>, FlowPort)>,
}

impl LoadedProgram {
    /// Attaches the program to an interface. A `mode` of `None` tries the driver first.
    pub(super) fn attach(
        &self,
        index: u32,
        mode: Option<XdpMode>,
    ) -> Result<XskProgram, NetioError> {
        let forwarding = self.forwarding(index);
        if let Some((table, port)) = &forwarding {
            table.register(port)?;
        }
        let name = if forwarding.is_some() { "forward" } else { "redirect_to_port" };
        let attached = {
            let mut object = self.object.lock().unwrap_or_else(PoisonError::into_inner);
            program(&mut object, name).and_then(|program| link(program, index, mode))
        };
        let (mode, link) = attached.inspect_err(|_| {
            forwarding.iter().for_each(|(table, port)| table.unregister(port));
        })?;
        let shared = Shared { loaded: self.clone(), index, mode, _link: link };
        Ok(XskProgram { shared: Arc::new(shared) })
    }

    /// The table, and the port on interface number `index`.
    fn forwarding(&self, index: u32) -> Option<(&Arc<FlowTable>, FlowPort)> {
        self.table.as_ref().map(|(table, port)| (table, FlowPort { index, ..*port }))
    }
}

impl XskProgram {
    /// Attaches the program to an interface of the calling thread's namespace, for ports on queues
    /// 0 to `queues - 1`. From then on the interface's frames go to ports or are dropped: a kernel
    /// that answers and forwards in parallel to the router would only do harm.
    ///
    /// A `mode` of `None` tries the driver first, then the generic hook. On a veth, the program in
    /// the driver makes it poll (NAPI), so that frames redirected into its peer arrive. The generic
    /// hook needs GRO for that, and may assign all frames to queue 0.
    ///
    /// # Errors
    /// If the kernel refuses program, map or hook: no right to load BPF, no such interface, another
    /// program there, an MTU too large for one buffer.
    pub fn attach(
        interface: &str,
        queues: u32,
        mode: Option<XdpMode>,
    ) -> Result<XskProgram, NetioError> {
        let queues = queues.max(1);
        let failed = |e: &dyn std::error::Error| NetioError::bpf("loading the BPF redirect", e);
        let index = interface_index(interface)?;
        let mut object = EbpfLoader::new()
            .map_max_entries("sockets", queues)
            .load(OBJECT)
            .map_err(|e| failed(&e))?;
        let unserved = Arc::new(Mapped::new(array_of(&object, "unserved")?.fd(), 1)?);
        program(&mut object, "redirect_to_port")?.load().map_err(|e| failed(&e))?;
        let loaded = LoadedProgram {
            interface: interface.into(),
            queues,
            first_socket: 0,
            unserved,
            object: Arc::new(Mutex::new(object)),
            table: None,
        };
        loaded.attach(index, mode)
    }

    /// As [`XskProgram::attach`], with the program that forwards the flows of `table`. `number` is
    /// the router's port, and `mac` its MAC. With `incomplete_checksums` the program leaves packets
    /// whose checksum a stack has left to the device to the router.
    ///
    /// # Errors
    /// As [`XskProgram::attach`]; also if the port is not one of the table's.
    pub fn attach_forwarding(
        table: &Arc<FlowTable>,
        interface: &str,
        (number, mac): (u8, [u8; 6]),
        incomplete_checksums: bool,
        mode: Option<XdpMode>,
    ) -> Result<XskProgram, NetioError> {
        let index = interface_index(interface)?;
        let loaded = LoadedProgram {
            interface: interface.into(),
            queues: table.queues(),
            first_socket: table.first_socket(number),
            unserved: Arc::clone(table.unserved()),
            object: Arc::clone(table.object()),
            table: Some((Arc::clone(table), FlowPort { number, index, mac, incomplete_checksums })),
        };
        loaded.attach(index, mode)
    }

    /// Attachment point of the program.
    pub fn mode(&self) -> XdpMode {
        self.shared.mode
    }

    /// Interface of the program.
    pub fn interface(&self) -> &str {
        &self.shared.loaded.interface
    }

    /// Index of the interface.
    pub(super) fn index(&self) -> u32 {
        self.shared.index
    }

    /// Returns the program without its interface.
    pub(super) fn loaded(&self) -> LoadedProgram {
        self.shared.loaded.clone()
    }

    /// Number of queues that may have ports.
    pub fn queues(&self) -> u32 {
        self.shared.loaded.queues
    }

    /// Frames received on queues without a port, and dropped; of all interfaces of a [`FlowTable`].
    pub fn unserved(&self) -> u64 {
        self.shared.loaded.unserved.read(0)
    }

    /// Passes the frames of a queue to this socket until it is closed.
    pub(super) fn serve(&self, queue: u32, socket: &OwnedFd) -> Result<(), NetioError> {
        let loaded = &self.shared.loaded;
        let mut object = loaded.object.lock().unwrap_or_else(PoisonError::into_inner);
        let why = || NetioError::Bpf { what: "reading a BPF object", why: "no map sockets".into() };
        let Some(map @ Map::XskMap(_)) = object.map_mut("sockets") else { return Err(why()) };
        let mut sockets = XskMap::try_from(map).map_err(|_| why())?;
        sockets
            .set(loaded.first_socket + queue, socket.as_raw_fd(), 0)
            .map_err(|e| NetioError::bpf("registering an AF_XDP socket", &e))
    }
}

/// Attaches a loaded program; returns the hook and the link that keeps it there.
fn link(
    program: &mut Xdp,
    index: u32,
    mode: Option<XdpMode>,
) -> Result<(XdpMode, XdpLink), NetioError> {
    let mut attach =
        |mode: XdpMode| program.attach_to_if_index(index, mode.into()).map(|id| (mode, id));
    let attached = match mode {
        Some(mode) => attach(mode),
        None => attach(XdpMode::Driver).or_else(|_| attach(XdpMode::Generic)),
    };
    let attached = attached.and_then(|(mode, id)| Ok((mode, program.take_link(id)?)));
    attached.map_err(|e| NetioError::bpf("attaching a BPF program", &e))
}

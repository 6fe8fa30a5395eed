//! The BPF program that passes an interface's frames to the ports of its queues.

use crate::NetioError;
use crate::xdp::{Mapped, XdpMode, array_of};
use aya::maps::{Map, XskMap};
use aya::programs::Xdp;
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
    interface: String,
    queues: u32,
    mode: XdpMode,
    unserved: Mapped<u64>,
    // Holds program and link; dropping it detaches.
    object: Mutex<Ebpf>,
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
        let failed = |e: &dyn std::error::Error| NetioError::bpf("attaching the BPF redirect", e);
        let queues = queues.max(1);
        let mut object = EbpfLoader::new()
            .map_max_entries("sockets", queues)
            .load(OBJECT)
            .map_err(|e| NetioError::bpf("loading the BPF redirect", &e))?;
        let unserved = Mapped::new(array_of(&object, "unserved")?.fd(), 1)?;
        let program: &mut Xdp = object
            .program_mut("redirect_to_port")
            .ok_or(NetioError::Bpf { what: "reading a BPF object", why: "no program".into() })?
            .try_into()
            .map_err(|e: aya::programs::ProgramError| failed(&e))?;
        program.load().map_err(|e| NetioError::bpf("loading the BPF redirect", &e))?;
        let mut attach = |mode: XdpMode| program.attach(interface, mode.into()).map(|_| mode);
        let mode = match mode {
            Some(mode) => attach(mode),
            None => attach(XdpMode::Driver).or_else(|_| attach(XdpMode::Generic)),
        };
        let mode = mode.map_err(|e| failed(&e))?;
        Ok(XskProgram {
            shared: Arc::new(Shared {
                interface: interface.into(),
                queues,
                mode,
                unserved,
                object: Mutex::new(object),
            }),
        })
    }

    /// Attachment point of the program.
    pub fn mode(&self) -> XdpMode {
        self.shared.mode
    }

    /// Interface of the program.
    pub fn interface(&self) -> &str {
        &self.shared.interface
    }

    /// Number of queues that may have ports.
    pub fn queues(&self) -> u32 {
        self.shared.queues
    }

    /// Frames received on queues without a port, and dropped.
    pub fn unserved(&self) -> u64 {
        self.shared.unserved.read(0)
    }

    /// Passes the frames of a queue to this socket until it is closed.
    pub(super) fn serve(&self, queue: u32, socket: &OwnedFd) -> Result<(), NetioError> {
        let mut object = self.shared.object.lock().unwrap_or_else(PoisonError::into_inner);
        let why = || NetioError::Bpf { what: "reading a BPF object", why: "no map sockets".into() };
        let Some(map @ Map::XskMap(_)) = object.map_mut("sockets") else { return Err(why()) };
        let mut sockets = XskMap::try_from(map).map_err(|_| why())?;
        sockets
            .set(queue, socket.as_raw_fd(), 0)
            .map_err(|e| NetioError::bpf("registering an AF_XDP socket", &e))
    }
}

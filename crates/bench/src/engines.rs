//! Sending and receiving mechanisms that the kernel of this machine supports.

use crate::error::BenchError;
use fwdlab_model::settings::Engine;
use fwdlab_netio::packet_socket::{self, PacketReceiver};
use fwdlab_netio::xdp::{XdpMode, XdpReceiver, XdpSender};
use fwdlab_netio::{NetNs, Receiver, Sender, SenderConfig, Watch, xsk};

/// Mechanism that counts received packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverKind {
    /// XDP program in the driver.
    Xdp,
    /// XDP program in the stack.
    XdpGeneric,
    /// AF_PACKET ring.
    Packet,
}

impl ReceiverKind {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            ReceiverKind::Xdp => "XDP program",
            ReceiverKind::XdpGeneric => "generic XDP program",
            ReceiverKind::Packet => "AF_PACKET ring",
        }
    }
}

/// Name of a sending mechanism in reports.
pub(crate) fn engine_name(engine: Engine) -> &'static str {
    match engine {
        Engine::Auto | Engine::Xdp => "XDP live frames",
        Engine::Xsk => "AF_XDP",
        Engine::Packet => "AF_PACKET",
    }
}

/// Opens a receiver of the kind found by probing.
///
/// # Errors
/// Returns the error of the socket or the program.
pub(crate) fn open_receiver(
    receiving: ReceiverKind,
    namespace: &NetNs,
    interface: &str,
    watch: &Watch,
    cpus: &[u16],
) -> Result<Box<dyn Receiver>, BenchError> {
    let mode = match receiving {
        ReceiverKind::Xdp => XdpMode::Driver,
        ReceiverKind::XdpGeneric => XdpMode::Generic,
        ReceiverKind::Packet => {
            return Ok(Box::new(PacketReceiver::new(namespace, interface, watch, cpus)?));
        }
    };
    Ok(Box::new(XdpReceiver::new(namespace, interface, watch, mode)?))
}

/// Opens a sending thread of the kind found by probing.
///
/// # Errors
/// Returns the error of the socket or the program.
pub(crate) fn open_sender(
    engine: Engine,
    config: &SenderConfig,
) -> Result<Box<dyn Sender>, BenchError> {
    Ok(match engine {
        Engine::Auto | Engine::Xdp => Box::new(XdpSender::new(config)?),
        Engine::Xsk => Box::new(xsk::sender(config)?),
        Engine::Packet => Box::new(packet_socket::sender(config)?),
    })
}

//! Probes the software router's port types: shared memory, AF_XDP, packet sockets.

use super::send;
use crate::wiring::Wiring;
use fwdlab_model::settings::Engine;
use fwdlab_netio::circuit::{Circuit, FAR};
use fwdlab_netio::frame::Batch;
use fwdlab_netio::packet_socket::{PacketConfig, PacketPort};
use fwdlab_netio::xsk::{Bind, XskConfig, XskPort, XskProgram};
use fwdlab_netio::{NetioError, Port, clock};
use std::sync::mpsc::sync_channel;

/// Time limit for the probe's packets to arrive.
const PATIENCE_NS: u64 = 1_500_000_000;

/// Sends a frame along a wire in shared memory, opened as another process would.
pub(super) fn memory() -> Result<String, String> {
    let circuit = Circuit::new(1).map_err(|e| e.to_string())?;
    let other = Circuit::open(&circuit.path()).map_err(|e| e.to_string())?;
    let (mut feeder, mut transit, mut drain) = (circuit.feeder(), other.transit(), circuit.drain());
    feeder.publish(1);
    let frames = transit.slot().ok_or("what was sent does not come in")?;
    frames.iter_mut().for_each(|frame| frame.send_to(FAR));
    transit.publish();
    let arrived = drain.slot().is_some_and(|frames| frames[0].egress() == Some(FAR));
    if arrived { Ok("a frame went round".into()) } else { Err("what was sent is lost".into()) }
}

/// Receives packets of the testbed's sender through a port on an AF_XDP socket.
pub(super) fn xsk(wiring: &Wiring) -> Result<String, String> {
    receive(wiring, || {
        let program = XskProgram::attach("r0", 1, None)?;
        let port = XskPort::open(&XskConfig { queue: 0, number: 0, bind: Bind::Auto }, &program)?;
        let copy = if port.is_zero_copy()? { "zero copy" } else { "copied by the kernel" };
        Ok((Box::new(port), format!("{:?} hook, {copy}", program.mode()).to_lowercase()))
    })
}

/// Receives packets of the testbed's sender through packet sockets.
pub(super) fn packet(wiring: &Wiring) -> Result<String, String> {
    receive(wiring, || {
        let config = PacketConfig { interface: "r0".into(), number: 0, fanout: None };
        Ok((Box::new(PacketPort::open(&config)?), "by its receive ring".into()))
    })
}

/// An open port, with a description of its mechanism.
type OpenPort = (Box<dyn Port>, String);

fn receive(
    wiring: &Wiring,
    open: impl FnOnce() -> Result<OpenPort, NetioError> + Send + 'static,
) -> Result<String, String> {
    let (ready, is_ready) = sync_channel(1);
    let thread = wiring.receiver.spawn("probe", &[], move || {
        let (mut port, how) = open()?;
        let _ = ready.send(());
        let (mut batch, mut received) = (Batch::new(), 0);
        let deadline = clock::monotonic_ns() + PATIENCE_NS;
        while received == 0 && clock::monotonic_ns() < deadline {
            port.wait(std::time::Duration::from_millis(20))?;
            received += port.receive(&mut batch)?;
        }
        Ok((received, how))
    });
    let thread = thread.map_err(|e| e.to_string())?;
    // Without this message the port could not be opened, which the result of the thread reports.
    let sent = if is_ready.recv().is_ok() { send(wiring, Engine::Packet)? } else { 0 };
    match thread.join() {
        Ok(Ok((0, _))) => Err(format!("{sent} packets were sent, none arrived")),
        Ok(Ok((_, how))) => Ok(format!("packets arrived, {how}")),
        Ok(Err(error)) => Err(error.to_string()),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

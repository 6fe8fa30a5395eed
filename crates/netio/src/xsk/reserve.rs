//! Ports on an interface that comes back.
//!
//! By then the router has no rights left: it can open no socket. But a program that is loaded may
//! be attached to another interface, and a socket that is open may be bound to it, once. So the
//! reserve keeps the program, and some sockets for each queue.

use super::port::{Bind, XskConfig, XskPort};
use super::program::{LoadedProgram, XskProgram};
use super::socket::bare;
use crate::NetioError;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

/// Program and sockets for new interfaces of a name; shared by the ports of all queues.
#[derive(Debug)]
pub struct XskReserve {
    program: LoadedProgram,
    number: u8,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// For each return one socket per queue.
    sockets: Vec<Vec<OwnedFd>>,
    /// Index of the interface that has come back last.
    index: u32,
    /// Its ports not yet taken, by queue, or the reason why it has none.
    ports: Result<Vec<Option<XskPort>>, String>,
}

impl XskReserve {
    /// Opens the reserve for port `number` with a socket on each of the program's first `queues`
    /// queues: for a number of `returns`, or for none if the process has too few descriptors.
    pub fn open(
        program: &XskProgram,
        number: u8,
        (queues, returns): (u32, usize),
    ) -> Arc<XskReserve> {
        // Memory for the sockets is locked when they are used, without the right to exceed the
        // limit. If this fails, the limit applies.
        let _ = setrlimit(Resource::Memlock, Rlimit { current: None, maximum: None });
        let one_return = |_| (0..queues).map(|_| bare()).collect();
        let sockets: Result<Vec<Vec<OwnedFd>>, NetioError> = (0..returns).map(one_return).collect();
        let sockets = sockets.unwrap_or_default();
        let state = State { sockets, index: 0, ports: Ok(Vec::new()) };
        Arc::new(XskReserve { program: program.loaded(), number, state: Mutex::new(state) })
    }

    /// Returns the port for a queue of interface number `index`. The first call for an interface
    /// attaches the program and opens the ports of all queues: either all have AF_XDP or none.
    ///
    /// # Errors
    /// The reason why the interface has no such port.
    pub(crate) fn port(&self, index: u32, queue: u32) -> Result<XskPort, String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = queue as usize;
        let is_taken = |state: &State| {
            state.ports.as_ref().is_ok_and(|ports| ports.get(queue).is_none_or(Option::is_none))
        };
        if state.index != index || is_taken(&state) {
            state.index = index;
            state.ports = match state.sockets.pop() {
                Some(sockets) => self.open_all(index, sockets).map_err(|error| error.to_string()),
                None => Err("no AF_XDP socket is left in reserve; a restart opens more".into()),
            };
        }
        let ports = state.ports.as_mut().map_err(|why| why.clone())?;
        let port = ports.get_mut(queue).and_then(Option::take);
        port.ok_or_else(|| format!("no AF_XDP socket for queue {queue}"))
    }

    fn open_all(
        &self,
        index: u32,
        sockets: Vec<OwnedFd>,
    ) -> Result<Vec<Option<XskPort>>, NetioError> {
        let program = self.program.attach(index, None)?;
        let port = |(socket, queue)| {
            let config = XskConfig { queue, number: self.number, bind: Bind::Auto };
            XskPort::on(socket, &config, &program).map(Some)
        };
        sockets.into_iter().zip(0..).map(port).collect()
    }
}

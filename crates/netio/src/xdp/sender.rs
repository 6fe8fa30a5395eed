//! Sending by `BPF_PROG_RUN` with live frames.

use super::array_of;
use super::layout::{Mix, SenderState};
use super::mapped::Mapped;
use crate::sender::{Sender, SenderConfig};
use crate::{NetioError, affinity, clock};
use aya::programs::{TestRun, TestRunAttrs, TestRunOptions, Xdp};
use aya::{EbpfLoader, include_bytes_aligned};
use fwdlab_packet::{Family, Flows, Phase, stamp::PHASES};
use std::ptr::{addr_of, addr_of_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

static OBJECT: &[u8] = include_bytes_aligned!("../../bpf/sender.bpf.o");

/// Calls of the program in one system call. Each system call sets up and tears down a page pool,
/// which takes some 30 ms, so a single one serves a whole run; a signal ends it early.
const REPEAT: u32 = 1 << 31;
/// Calls between two flushes when paced: 16 calls of 30 ns delay a due packet by at most half a
/// microsecond.
const BATCH_PACED: u32 = 16;

const WAIT: u8 = 0;
const GO: u8 = 1;
const STOP: u8 = 2;

/// One sending thread; see [`Sender`].
#[derive(Debug)]
pub struct XdpSender {
    state: Arc<Mapped<SenderState>>,
    order: Arc<AtomicU8>,
    task: u32,
    thread: Option<JoinHandle<Result<(), NetioError>>>,
}

impl XdpSender {
    /// Loads the program and starts the thread, which waits for
    /// [`Sender::start`].
    ///
    /// # Errors
    /// If the kernel refuses the program, the interface is missing, or the configuration has a
    /// flood.
    pub fn new(config: &SenderConfig) -> Result<XdpSender, NetioError> {
        if config.flood.is_some() {
            return Err(NetioError::system(
                "a flood beside live frames",
                std::io::Error::from(std::io::ErrorKind::Unsupported),
            ));
        }
        let name = config.interface.clone();
        let ifindex = config.namespace.run(move || interface_index(&name))?;
        let template = &config.template;
        let (source_base, destination_base) = template.bases();
        let sums = template.sums();
        let mix = Mix::of(template);
        let mut header = [0u64; 10];
        for (word, bytes) in header.iter_mut().zip(template.bytes().chunks(8)) {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(eight);
        }
        let family: u32 = match template.family() {
            Family::Inet => 4,
            Family::Inet6 => 6,
        };
        let flows = template.flows();
        let first = config.limit.map_or(0, |counted| counted.first);
        let limit = config.limit.map_or(0, |counted| u64::from(counted.first) + counted.packets);
        let mut object = EbpfLoader::new()
            .override_global("FAMILY", &family, true)
            .override_global("IFINDEX", &ifindex, true)
            .override_global("SENDER", &u32::from(config.number), true)
            .override_global("RUN_ID", &template.run_id(), true)
            .override_global("SOURCES", &flows.sources, true)
            .override_global("DESTINATIONS", &flows.destinations, true)
            .override_global("SOURCE_BASE", &source_base, true)
            .override_global("DESTINATION_BASE", &destination_base, true)
            .override_global("STAMP_TIME", &u32::from(config.timestamps), true)
            .override_global("PACED", &u32::from(config.rate_pps.is_some()), true)
            .override_global("LIMIT", &limit, true)
            .override_global("FIRST", &first, true)
            .override_global("BURST", &config.burst.max(1), true)
            .override_global("IP_SUM", &sums.ip, true)
            .override_global("UDP_SUM", &sums.udp, true)
            .override_global("HEADER", &header[..], true)
            .override_global("MIX", &mix.count, true)
            .override_global("MIX_PASS", &mix.pass, true)
            .override_global("MIX_LENGTHS", &mix.lengths[..], true)
            .load(OBJECT)
            .map_err(|e| NetioError::bpf("loading the BPF sender", &e))?;
        let state: Mapped<SenderState> = Mapped::new(array_of(&object, "sender")?.fd(), 1)?;
        set_interval(&state, config.rate_pps.map_or(0, interval_q));
        begin_with(&state, first, flows);
        let program: &mut Xdp = object
            .program_mut("send_packet")
            .ok_or(NetioError::Bpf { what: "reading a BPF object", why: "no program".into() })?
            .try_into()
            .map_err(|e: aya::programs::ProgramError| NetioError::bpf("BPF sender", &e))?;
        program.load().map_err(|e| NetioError::bpf("loading the BPF sender", &e))?;

        let state = Arc::new(state);
        let order = Arc::new(AtomicU8::new(WAIT));
        let (orders, frame) = (order.clone(), template.bytes().to_vec());
        let batch = if config.rate_pps.is_some() { BATCH_PACED } else { config.batch };
        interrupt::install()?;
        let (began, task) = std::sync::mpsc::sync_channel(1);
        let thread = config.namespace.spawn("sender", &[config.cpu], move || {
            let _ = began.send(affinity::this_task());
            let program: &Xdp = object
                .program("send_packet")
                .and_then(|p| p.try_into().ok())
                .expect("checked before the thread began");
            loop {
                match orders.load(Ordering::Acquire) {
                    WAIT => std::thread::park(),
                    GO => {
                        let mut options = TestRunOptions::new();
                        options.data_in = Some(&frame);
                        options.repeat = REPEAT;
                        options.attrs = TestRunAttrs::new().xdp_live_frames(batch);
                        match program.test_run(options) {
                            Err(error) if !interrupt::caused(&error) => {
                                return Err(NetioError::bpf("sending live frames", &error));
                            }
                            _ => {}
                        }
                    }
                    _ => return Ok(()),
                }
            }
        })?;
        let mut sender = XdpSender { state, order, task: 0, thread: Some(thread) };
        match task.recv() {
            Ok(task) => sender.task = task,
            // The thread ended early: its result contains the reason.
            Err(_) => sender.end()?,
        }
        Ok(sender)
    }

    fn give(&self, order: u8) {
        self.order.store(order, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    fn end(&mut self) -> Result<(), NetioError> {
        self.give(STOP);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        // The signal may arrive before the system call begins: repeat it until the thread ends.
        while !thread.is_finished() {
            interrupt::send(self.task);
            std::thread::sleep(Duration::from_micros(200));
        }
        match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Sender for XdpSender {
    fn set_phase(&self, phase: Phase) {
        // SAFETY: `at(0)` is valid for writes; the program only reads the field.
        unsafe { addr_of_mut!((*self.state.at(0)).phase).write_volatile(phase as u64) };
    }

    fn sent(&self) -> [u64; PHASES] {
        // SAFETY: `at(0)` is valid for reads of plain integers.
        unsafe { addr_of!((*self.state.at(0)).sent).read_volatile() }
    }

    fn missed(&self) -> u64 {
        // SAFETY: as above.
        unsafe { addr_of!((*self.state.at(0)).missed).read_volatile() }
    }

    fn set_rate(&self, rate_pps: f64) {
        set_interval(&self.state, interval_q(rate_pps));
    }

    fn task(&self) -> Option<u32> {
        Some(self.task)
    }

    fn start(&self) {
        // SAFETY: `at(0)` is valid for writes and the program does not run yet.
        unsafe { addr_of_mut!((*self.state.at(0)).start_ns).write_volatile(clock::monotonic_ns()) };
        self.give(GO);
    }

    fn halt(mut self: Box<Self>) -> Result<[u64; PHASES], NetioError> {
        self.end()?;
        Ok(self.sent())
    }
}

/// Returns the time between two packets at a rate, in 1/65536 ns.
fn interval_q(rate_pps: f64) -> u64 {
    (1e9 * 65536.0 / rate_pps) as u64
}

fn set_interval(state: &Mapped<SenderState>, interval_q: u64) {
    // SAFETY: `at(0)` is valid for writes; the program only reads the field.
    unsafe { addr_of_mut!((*state.at(0)).interval_q).write_volatile(interval_q) };
}

/// Sets the flow of the first packet, and the matching sequence number.
fn begin_with(state: &Mapped<SenderState>, first: u32, flows: Flows) {
    // SAFETY: `at(0)` is valid for reads and writes, and the program does not run yet.
    unsafe {
        let at = state.at(0);
        addr_of_mut!((*at).source).write_volatile(first / flows.destinations);
        addr_of_mut!((*at).destination).write_volatile(first % flows.destinations);
        addr_of_mut!((*at).sequence).write_volatile(first);
        addr_of_mut!((*at).flow).write_volatile(first);
    }
}

impl Drop for XdpSender {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Returns the index of an interface in the calling thread's namespace.
pub(crate) fn interface_index(name: &str) -> Result<u32, NetioError> {
    let socket =
        rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)
            .map_err(|e| NetioError::system("a socket to ask for interfaces", e))?;
    rustix::net::netdevice::name_to_index(&socket, name)
        .map_err(|e| NetioError::system(format!("looking up interface {name}"), e))
}

/// The signal that ends a system call of a sending thread early.
mod interrupt {
    use crate::NetioError;
    use aya::programs::ProgramError;
    use std::io;

    /// A real-time signal unused by libc and shells.
    fn number() -> i32 {
        libc::SIGRTMIN() + 7
    }

    /// Installs a handler that does nothing, without SA_RESTART.
    pub(super) fn install() -> Result<(), NetioError> {
        extern "C" fn nothing(_: i32) {}
        // SAFETY: an all-zero sigaction is valid; the handler touches nothing.
        let result = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
            libc::sigaction(number(), &action, std::ptr::null_mut())
        };
        match result {
            0 => Ok(()),
            _ => Err(NetioError::system("a signal handler", io::Error::last_os_error())),
        }
    }

    /// Interrupts a thread of this process; does nothing if it is gone.
    pub(super) fn send(task: u32) {
        if task > 0 {
            // SAFETY: plain integers; the kernel checks that the thread is ours.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), task, number()) };
        }
    }

    /// True if a signal ended the call.
    pub(super) fn caused(error: &ProgramError) -> bool {
        let ProgramError::SyscallError(error) = error else { return false };
        error.io_error.kind() == io::ErrorKind::Interrupted
    }
}

//! System call filter for a process that has opened everything it needs (seccomp(2)).
//!
//! Calls outside the list fail with EPERM, as if the process lacked the rights: it starts no
//! program, opens no socket, and mounts and traces nothing. It may open files, to write counters
//! and to reload the configuration; the user's rights decide which.

use crate::NetioError;
use std::io;

/// Calls of a running router: frames, time, threads, memory, files.
const CALLS: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_getsockopt,
    // For an interface that has come back: on sockets that are already open.
    libc::SYS_setsockopt,
    libc::SYS_bind,
    libc::SYS_ioctl,
    // The socket for commands, which is open before.
    libc::SYS_accept4,
    libc::SYS_ppoll,
    libc::SYS_close,
    libc::SYS_fcntl,
    libc::SYS_openat,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_lseek,
    libc::SYS_ftruncate,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_futex,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_prctl,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_tgkill,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_getrandom,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Commands of bpf(2) for an interface that has come back: a loaded program is attached to it, and
/// an open socket put into a map.
const BPF_COMMANDS: &[u32] = &[BPF_LINK_CREATE, BPF_MAP_UPDATE_ELEM];
const BPF_MAP_UPDATE_ELEM: u32 = 2;
const BPF_LINK_CREATE: u32 = 28;

/// Calls that newer architectures no longer have.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[libc::c_long] = &[libc::SYS_poll, libc::SYS_rename, libc::SYS_open];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[libc::c_long] = &[];

/// The architecture in the kernel's numbering (linux/audit.h): call numbers differ between
/// architectures.
#[cfg(target_arch = "x86_64")]
const MACHINE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const MACHINE: u32 = 0xc000_00b7;
/// Unknown architecture: no filter.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: u32 = 0;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
/// Low half of the first argument; both architectures are little-endian.
const FIRST_ARGUMENT: u32 = 16;

/// Limits all current and future threads of the process to the calls of a router.
///
/// # Errors
/// Before `no_new_privs` is set without CAP_SYS_ADMIN, or if the kernel has no such filters.
pub fn only_forwarding() -> Result<(), NetioError> {
    if MACHINE == 0 {
        return Ok(());
    }
    let program = program();
    let filter =
        libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_TSYNC);
    // SAFETY: the program outlives the call, during which the kernel copies it.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const filter) };
    match result {
        0 => Ok(()),
        // A thread already has other filters.
        thread if thread > 0 => Err(NetioError::system(
            format!("limiting system calls (thread {thread} is limited otherwise)"),
            io::Error::from(io::ErrorKind::PermissionDenied),
        )),
        _ => Err(NetioError::system("limiting system calls", io::Error::last_os_error())),
    }
}

fn program() -> Vec<libc::sock_filter> {
    let instruction =
        |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = |offset| instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
    let equals = |k, jt, jf| instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, jt, jf, k);
    let answer = |k| instruction(libc::BPF_RET | libc::BPF_K, 0, 0, k);
    let calls: Vec<u32> = CALLS.iter().chain(OLD_CALLS).map(|&call| call as u32).collect();
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut program =
        vec![load(ARCHITECTURE), equals(MACHINE, 1, 0), answer(refused), load(NUMBER)];
    // The comparison with bpf(2), and its argument.
    let after_calls = 2 + BPF_COMMANDS.len();
    for (at, &call) in calls.iter().enumerate() {
        // Skips the remaining comparisons and the refusal.
        let to_allowed = (calls.len() - at + after_calls) as u8;
        program.push(equals(call, to_allowed, 0));
    }
    program.push(equals(libc::SYS_bpf as u32, 0, after_calls as u8 - 1));
    program.push(load(FIRST_ARGUMENT));
    for (at, &command) in BPF_COMMANDS.iter().enumerate() {
        program.push(equals(command, (BPF_COMMANDS.len() - at) as u8, 0));
    }
    program.push(answer(refused));
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    program
}

const _: () = assert!(CALLS.len() + OLD_CALLS.len() + BPF_COMMANDS.len() < 250);

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs in a separate process: the filter cannot be removed.
    #[test]
    fn a_limited_process_reads_and_writes_and_opens_no_socket() {
        const INSIDE: &str = "FWDLAB_TEST_SECCOMP";
        if std::env::var_os(INSIDE).is_some() {
            crate::rights::drop_all().expect("the kernel takes them");
            only_forwarding().expect("the kernel has filters");
            let inside = std::thread::spawn(|| {
                let opened = std::net::UdpSocket::bind("127.0.0.1:0");
                let refused = opened.expect_err("no sockets").raw_os_error();
                let run = std::process::Command::new("true").status();
                let text = std::fs::read_to_string("/proc/self/status").expect("files are read");
                let filtered = text.lines().any(|line| line.trim() == "Seccomp:\t2");
                // For nothing: only a refused command fails with EPERM.
                let bpf = |command: u32| {
                    // SAFETY: no attributes, and a size of 0.
                    unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::null::<u8>(), 0) };
                    io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
                };
                let commands = [BPF_LINK_CREATE, BPF_MAP_UPDATE_ELEM, 1, 3].map(bpf);
                assert_eq!(commands, [false, false, true, true]);
                (refused, run.is_err(), filtered)
            });
            assert_eq!(inside.join().expect("threads start"), (Some(libc::EPERM), true, true));
            return;
        }
        let name = "seccomp::tests::a_limited_process_reads_and_writes_and_opens_no_socket";
        let program = std::env::current_exe().expect("this program");
        let mut inside = std::process::Command::new(program);
        inside.args([name, "--exact", "--nocapture"]).env(INSIDE, "1");
        let output = inside.output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

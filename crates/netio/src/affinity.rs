//! CPU affinity and scheduling of threads.

use crate::NetioError;
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};
use std::fs;

/// Returns the CPUs that this thread may use, in ascending order.
///
/// # Errors
/// If the kernel refuses, which no ordinary system does.
pub fn allowed_cpus() -> Result<Vec<u16>, NetioError> {
    let set = sched_getaffinity(None)
        .map_err(|e| NetioError::system("reading the CPU affinity (sched_getaffinity)", e))?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u16).collect())
}

/// Returns the number of CPUs that may ever come online: the size of per-CPU arrays.
pub fn possible_cpus() -> usize {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    highest_cpu(&text).map_or(CpuSet::MAX_CPU, |highest| highest + 1)
}

/// Binds the calling thread to `cpus`.
///
/// # Errors
/// If none of them exists or is allowed.
pub fn pin_thread(cpus: &[u16]) -> Result<(), NetioError> {
    pin(None, cpus)
}

/// Binds another task (such as a kernel thread) to `cpus`.
///
/// # Errors
/// If the task has ended, or belongs to another user.
pub fn pin_task(task: u32, cpus: &[u16]) -> Result<(), NetioError> {
    pin(Pid::from_raw(task as i32), cpus)
}

/// Returns the kernel's id of the calling thread.
pub fn this_task() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Gives a task (such as a kernel thread) priority over all ordinary ones on its CPU (`SCHED_FIFO`
/// with the lowest real-time priority).
///
/// # Errors
/// Without CAP_SYS_NICE, or if the task is gone.
pub fn put_first(task: u32) -> Result<(), NetioError> {
    // SAFETY: an all-zero parameter is valid; the kernel reads it and keeps nothing.
    let result = unsafe {
        let mut parameter: libc::sched_param = std::mem::zeroed();
        parameter.sched_priority = 1;
        libc::sched_setscheduler(task as libc::pid_t, libc::SCHED_FIFO, &parameter)
    };
    match result {
        0 => Ok(()),
        _ => Err(NetioError::system(
            format!("giving task {task} a real-time priority"),
            std::io::Error::last_os_error(),
        )),
    }
}

fn pin(task: Option<Pid>, cpus: &[u16]) -> Result<(), NetioError> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(usize::from(cpu));
    }
    sched_setaffinity(task, &set).map_err(|e| {
        let target = task.map_or("this thread".into(), |t| format!("task {}", t.as_raw_nonzero()));
        NetioError::system(format!("binding {target} to CPUs {cpus:?}"), e)
    })
}

/// Returns the highest CPU in a kernel CPU list such as `0-3,8`.
fn highest_cpu(list: &str) -> Option<usize> {
    list.trim().split([',', '-']).filter_map(|part| part.parse().ok()).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highest_cpu_reads_kernel_lists() {
        assert_eq!(highest_cpu("0-3,8\n"), Some(8));
        assert_eq!(highest_cpu("0\n"), Some(0));
        assert_eq!(highest_cpu(""), None);
    }

    #[test]
    fn pinned_thread_is_allowed_only_its_cpu() {
        let first = allowed_cpus().expect("affinity")[0];
        let cpus = std::thread::spawn(move || {
            pin_thread(&[first]).expect("pin");
            allowed_cpus().expect("affinity")
        })
        .join()
        .expect("thread");
        assert_eq!(cpus, [first]);
        assert!(possible_cpus() > usize::from(first));
    }
}

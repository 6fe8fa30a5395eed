//! CPU time and run delay of threads: the first two numbers of `/proc/TID/schedstat`
//! (Documentation/scheduler/sched-stats.rst of Linux).
//!
//! Both are sums since the thread started. The kernel updates the time of a thread that runs on
//! another CPU only at its timer tick, so a reading may be one tick old (1 to 10 ms): use
//! differences only for windows much longer than that. Time in interrupts is not included if the
//! kernel accounts for interrupts separately (`CONFIG_IRQ_TIME_ACCOUNTING`); softirqs that run
//! within the thread are.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Times of one thread since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Time on a CPU, nanoseconds.
    pub ran_ns: u64,
    /// Run delay: time runnable without a CPU, nanoseconds.
    pub waited_ns: u64,
}

impl ThreadTimes {
    /// Difference to the earlier reading `before`.
    #[must_use]
    pub fn since(self, before: ThreadTimes) -> ThreadTimes {
        ThreadTimes {
            ran_ns: self.ran_ns.saturating_sub(before.ran_ns),
            waited_ns: self.waited_ns.saturating_sub(before.waited_ns),
        }
    }
}

/// Threads whose times are read repeatedly: their files stay open, so a reading is one system call
/// per thread.
#[derive(Debug, Default)]
pub struct Threads {
    files: Vec<Option<File>>,
}

impl Threads {
    /// Opens threads (or, by process id, main threads). A thread that does not exist, or has ended,
    /// reads as `None`: a thread's end is no reason to end a run.
    pub fn open(ids: &[u32]) -> Threads {
        let open = |id: &u32| File::open(format!("/proc/{id}/schedstat")).ok();
        Threads { files: ids.iter().map(open).collect() }
    }

    /// Number of threads passed to [`Threads::open`].
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// True if no threads were passed to [`Threads::open`].
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Current times, in the order of [`Threads::open`]; `None` for a thread that has ended, or if
    /// the kernel does not keep them (`CONFIG_SCHED_INFO`).
    pub fn read(&self) -> Vec<Option<ThreadTimes>> {
        let mut text = [0; 80];
        let mut read = |file: &File| {
            let length = file.read_at(&mut text, 0).ok()?;
            parse(text.get(..length)?)
        };
        self.files.iter().map(|file| read(file.as_ref()?)).collect()
    }

    /// Sum of the times of all threads; threads that have ended count as zero.
    pub fn total(&self) -> ThreadTimes {
        self.read().into_iter().flatten().fold(ThreadTimes::default(), |sum, times| ThreadTimes {
            ran_ns: sum.ran_ns.saturating_add(times.ran_ns),
            waited_ns: sum.waited_ns.saturating_add(times.waited_ns),
        })
    }
}

/// Ids, in ascending order, of the tasks in a directory of procfs whose names start with `name`
/// (`/proc` itself: processes and kernel threads; `/proc/PID/task`: threads of a process).
pub fn tasks(directory: &str, name: &str) -> Vec<u32> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let is_named = |id: &u32| {
        std::fs::read_to_string(format!("{directory}/{id}/comm"))
            .is_ok_and(|comm| comm.starts_with(name))
    };
    let mut ids: Vec<u32> = entries.filter_map(number).filter(is_named).collect();
    ids.sort_unstable();
    ids
}

/// Parses `RAN WAITED SLICES`, nanoseconds and a count.
fn parse(text: &[u8]) -> Option<ThreadTimes> {
    let text = std::str::from_utf8(text).ok()?;
    let mut numbers = text.split_ascii_whitespace().map_while(|word| word.parse().ok());
    Some(ThreadTimes { ran_ns: numbers.next()?, waited_ns: numbers.next()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn schedstat_line_is_parsed() {
        let times = parse(b"123456789012 4567 89\n");
        assert_eq!(times, Some(ThreadTimes { ran_ns: 123_456_789_012, waited_ns: 4567 }));
        assert_eq!(parse(b"18446744073709551615 0 0\n").map(|t| t.ran_ns), Some(u64::MAX));
        for invalid in ["", "12\n", "a b c\n", "-1 2 3\n", "18446744073709551616 1 1\n"] {
            assert_eq!(parse(invalid.as_bytes()), None, "{invalid}");
        }
    }

    #[test]
    fn times_grow_while_a_thread_works_and_end_with_it() {
        let (id_sender, id) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            id_sender.send(fwdlab_netio::affinity::this_task()).expect("sent");
            // Works until the kernel has accounted enough time, then waits for the signal to end.
            let begin = ran();
            while ran() < begin + 20_000_000 {}
            wait.recv().expect("told to end");
        });
        let id: u32 = id.recv().expect("a thread id");
        // 0 is not a thread id: its times are `None`, and the others are still read.
        let threads = Threads::open(&[id, 0]);
        assert_eq!((threads.len(), threads.is_empty()), (2, false));
        let first = threads.read();
        assert_eq!(first[1], None);
        let first = first[0].expect("a living thread");
        let mut last = first;
        while last.since(first).ran_ns < 10_000_000 {
            std::thread::yield_now();
            let next = threads.read()[0].expect("still living");
            assert!(next.ran_ns >= last.ran_ns && next.waited_ns >= last.waited_ns);
            last = next;
        }
        assert!(threads.total().ran_ns >= last.ran_ns);
        go.send(()).expect("sent");
        thread.join().expect("ended");
        // A joined thread may still be in /proc: the kernel reaps it shortly afterwards.
        while threads.read()[0].is_some() {
            std::thread::yield_now();
        }
        assert_eq!(threads.total(), ThreadTimes::default());
    }

    #[test]
    fn tasks_are_found_by_a_prefix_of_their_name() {
        let (id_sender, id) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        let work = move || {
            id_sender.send(fwdlab_netio::affinity::this_task()).expect("sent");
            wait.recv().expect("told to end");
        };
        let named = std::thread::Builder::new().name("sought/0".into()).spawn(work);
        let id = id.recv().expect("a thread id");
        assert_eq!(tasks("/proc/self/task", "sought/"), [id]);
        assert_eq!(tasks("/proc/self/task", "ought"), [0; 0]);
        assert_eq!(tasks("/proc/no-such", ""), [0; 0]);
        go.send(()).expect("sent");
        named.expect("started").join().expect("ended");
    }

    /// Time that the calling thread has run.
    fn ran() -> u64 {
        let text = std::fs::read("/proc/thread-self/schedstat").expect("schedstat");
        parse(&text).expect("three numbers").ran_ns
    }
}

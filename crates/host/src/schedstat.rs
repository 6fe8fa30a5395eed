//! CPU time and run delay of threads: the first two numbers of `/proc/TID/schedstat`
//! (Documentation/scheduler/sched-stats.rst of Linux).
//!
//! Both are sums since the thread began. The kernel brings the time of a thread that
//! runs on another CPU up to date at its timer tick only, so a reading may be one tick
//! old (1 to 10 ms): differences are for windows much longer than that. Time in
//! interrupts is not part of it where the kernel accounts for interrupts apart
//! (`CONFIG_IRQ_TIME_ACCOUNTING`); softirqs that run within the thread are.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Times of one thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Time on a CPU, nanoseconds.
    pub ran_ns: u64,
    /// Run delay: time that it was runnable without a CPU, nanoseconds.
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

/// Threads whose times are read repeatedly: their files stay open, so a reading is one
/// system call per thread.
#[derive(Debug, Default)]
pub struct Threads {
    files: Vec<Option<File>>,
}

impl Threads {
    /// Opens threads (or, by their process id, main threads). One that there is not, or
    /// no longer, is none in every reading: that it ended is no reason to end a run.
    pub fn open(ids: &[u32]) -> Threads {
        let open = |id: &u32| File::open(format!("/proc/{id}/schedstat")).ok();
        Threads { files: ids.iter().map(open).collect() }
    }

    /// How many were asked for.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// True when none was asked for.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The times now, in the order of [`Threads::open`]; none for a thread that ended,
    /// or where the kernel keeps no such times (`CONFIG_SCHED_INFO`).
    pub fn read(&self) -> Vec<Option<ThreadTimes>> {
        let mut text = [0; 80];
        let mut read = |file: &File| {
            let length = file.read_at(&mut text, 0).ok()?;
            parse(text.get(..length)?)
        };
        self.files.iter().map(|file| read(file.as_ref()?)).collect()
    }

    /// The times of all of them together; threads that ended count for nothing.
    pub fn total(&self) -> ThreadTimes {
        self.read().into_iter().flatten().fold(ThreadTimes::default(), |sum, times| ThreadTimes {
            ran_ns: sum.ran_ns.saturating_add(times.ran_ns),
            waited_ns: sum.waited_ns.saturating_add(times.waited_ns),
        })
    }
}

/// Tasks that a directory of procfs lists (`/proc` itself: processes and kernel threads;
/// `/proc/PID/task`: threads of a process) and whose name begins so, ascending.
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

/// `RAN WAITED SLICES`, nanoseconds and a count.
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
    fn the_kernels_line_is_read() {
        let times = parse(b"123456789012 4567 89\n");
        assert_eq!(times, Some(ThreadTimes { ran_ns: 123_456_789_012, waited_ns: 4567 }));
        assert_eq!(parse(b"18446744073709551615 0 0\n").map(|t| t.ran_ns), Some(u64::MAX));
        for odd in ["", "12\n", "a b c\n", "-1 2 3\n", "18446744073709551616 1 1\n"] {
            assert_eq!(parse(odd.as_bytes()), None, "{odd}");
        }
    }

    #[test]
    fn times_rise_while_a_thread_works_and_end_with_it() {
        let (told, id) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            told.send(fwdlab_netio::affinity::this_task()).expect("sent");
            // Works until it has run, by the kernel's own account, then ends when told.
            let begin = ran();
            while ran() < begin + 20_000_000 {}
            wait.recv().expect("told to end");
        });
        let id: u32 = id.recv().expect("a thread id");
        // 0 is no thread: it is missing, and the others are read all the same.
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
        // Joined is not yet gone from /proc: the kernel reaps the thread just after.
        while threads.read()[0].is_some() {
            std::thread::yield_now();
        }
        assert_eq!(threads.total(), ThreadTimes::default());
    }

    #[test]
    fn threads_are_found_by_the_beginning_of_their_name() {
        let (told, id) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        let work = move || {
            told.send(fwdlab_netio::affinity::this_task()).expect("sent");
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

    /// What the calling thread has run.
    fn ran() -> u64 {
        let text = std::fs::read("/proc/thread-self/schedstat").expect("schedstat");
        parse(&text).expect("three numbers").ran_ns
    }
}

//! The log of FreeBSD's hwpmc(4): samples by time, CPU and thread.
//!
//! `pmcstat -R` prints it without times, and samples without times cannot be assigned to the
//! traffic, so it is read here, as words that od(1) prints in the machine's own order. Layout:
//! sys/sys/pmclog.h and sys/sys/pmc.h of FreeBSD 12 to 14, whose records begin with the time stamp
//! counter; FreeBSD 11 has other times, so its logs are refused.

use fwdlab_vm::symbols::Symbols;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Upper byte of every record's first word.
const MAGIC: u32 = 0xee;
/// First version of the log with time stamp counters.
const STAMPED: u32 = 0x0900;
/// Flags of kernel processes: P_KPROC and P_SYSTEM (sys/sys/proc.h).
const OF_KERNEL: u32 = 0x4 | 0x200;
/// PMC_CC_F_USERSPACE.
const IN_PROGRAM: u32 = 1;

/// Kinds of records to read.
mod kind {
    pub(super) const INITIALIZE: u32 = 3;
    pub(super) const EXEC: u32 = 9;
    pub(super) const CALLCHAIN: u32 = 16;
    pub(super) const PROCESS: u32 = 20;
}

/// A log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Samples, in the order of the log.
    samples: Vec<Sample>,
    /// Process names by number; true for processes of the kernel.
    processes: BTreeMap<u32, (String, bool)>,
    /// Executed programs, with the time stamp counter.
    executed: Vec<(String, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Sample {
    tsc: u64,
    pid: u32,
    tid: u32,
    cpu: u32,
    in_program: bool,
    /// Innermost first.
    addresses: Vec<u64>,
}

/// Output format of samples.
#[derive(Clone, Copy, Debug)]
pub struct Form<'a> {
    /// Functions of the kernel and its modules.
    pub symbols: &'a Symbols,
    /// Two moments, each as time stamp counter and in nanoseconds of the profile's clock.
    pub clock: [(u64, u64); 2],
    /// Event that triggered the samples.
    pub event: &'a str,
    /// Number of events per sample, in the unit of the event.
    pub period: u64,
    /// Samples before this time are omitted, nanoseconds.
    pub from_ns: u64,
    /// Samples from this time on are omitted, nanoseconds.
    pub to_ns: u64,
}

impl Log {
    /// Parses the output of `od -An -v -t x4` for a log.
    ///
    /// # Errors
    /// Returns a description if the text is no log.
    pub fn read(text: &str) -> Result<Log, String> {
        let words = text.split_ascii_whitespace().map(|word| u32::from_str_radix(word, 16));
        let words: Vec<u32> =
            words.collect::<Result<_, _>>().map_err(|error| format!("no hexadecimal: {error}"))?;
        let (mut log, mut rest) = (Log::default(), words.as_slice());
        while let Some(&head) = rest.first() {
            let length = (head & 0xffff) as usize;
            if head >> 24 != MAGIC || length < 16 {
                return Err(format!("no log of hwpmc: a record begins with {head:08x}"));
            }
            // The last record is incomplete if the disk was full.
            let Some((record, after)) = rest.split_at_checked(length.div_ceil(4)) else { break };
            log.record(head >> 16 & 0xff, record)?;
            rest = after;
        }
        Ok(log)
    }

    fn record(&mut self, kind: u32, record: &[u32]) -> Result<(), String> {
        let word = |at: usize| record.get(at).copied().unwrap_or_default();
        let tsc = long(word(2), word(3));
        match kind {
            kind::INITIALIZE if word(4) >> 16 < STAMPED => {
                return Err(format!(
                    "its version {:#x} has no time stamp counters: FreeBSD 12 and later write them",
                    word(4)
                ));
            }
            kind::PROCESS => {
                let is_kernel = word(5) & OF_KERNEL != 0;
                self.processes.insert(word(4), (string(record, 6), is_kernel));
            }
            kind::EXEC => {
                let path = path(record);
                let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
                self.processes.insert(word(4), (name, false));
                self.executed.push((path, tsc));
            }
            kind::CALLCHAIN => {
                let flags = word(7);
                let pairs = record.get(8..).unwrap_or_default().chunks_exact(2);
                self.samples.push(Sample {
                    tsc,
                    pid: word(4),
                    tid: word(5),
                    cpu: flags >> 16,
                    in_program: flags & IN_PROGRAM != 0,
                    addresses: pairs.map(|pair| long(pair[0], pair[1])).collect(),
                });
            }
            _ => {}
        }
        Ok(())
    }

    /// Time stamp counter at the execution of a program; `None` if it was not executed.
    pub fn executed(&self, path: &str) -> Option<u64> {
        self.executed.iter().find(|(known, _)| known.ends_with(path)).map(|(_, tsc)| *tsc)
    }

    /// Returns samples in the form of `perf script`, and the number of samples outside the time
    /// span.
    pub fn script(&self, form: &Form<'_>) -> (String, usize) {
        let (mut text, mut outside) = (String::new(), 0);
        for sample in &self.samples {
            let at_ns = time(form.clock, sample.tsc);
            if !(form.from_ns..form.to_ns).contains(&at_ns) {
                outside += 1;
                continue;
            }
            let (seconds, rest) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
            // Neither write can fail: a string accepts everything.
            let _ = writeln!(
                text,
                "{} {}/{} [{:03}] {seconds}.{rest:09}: {:10} {}: ",
                self.name(sample.pid),
                sample.pid,
                sample.tid,
                sample.cpu,
                form.period,
                form.event
            );
            // The addresses of a program are meaningless without its files.
            let addresses =
                if sample.in_program { &sample.addresses[..0] } else { &sample.addresses };
            if addresses.is_empty() {
                let _ = writeln!(
                    text,
                    "\t{:16x} [unknown] (program)",
                    sample.addresses.first().unwrap_or(&0)
                );
            }
            for (depth, &address) in addresses.iter().enumerate() {
                // A caller is identified by its return address, which may be in the next function.
                let name = form.symbols.name(address.saturating_sub(u64::from(depth > 0)));
                let _ = writeln!(text, "\t{address:16x} {} (kernel)", name.unwrap_or("[unknown]"));
            }
            text.push('\n');
        }
        (text, outside)
    }

    /// Name of a process in profiles. Names of kernel processes get a prefix, and a sampler's
    /// thread for its log counts as the sampler.
    fn name(&self, pid: u32) -> String {
        match self.processes.get(&pid) {
            Some((name, _)) if name.starts_with("hwpmc:") => "pmcstat".to_owned(),
            Some((name, true)) => format!("kernel/{}", name.replace(' ', "_")),
            Some((name, false)) => name.replace(' ', "_"),
            // The first thread of the kernel, and processes that ended before the log named them.
            None if pid == 0 => "kernel/kernel".to_owned(),
            None => "unknown".to_owned(),
        }
    }
}

fn long(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Returns the text at a word, up to its zero. Logs are written by amd64 and arm64: lowest byte
/// first.
fn string(record: &[u32], at: usize) -> String {
    let bytes = record.get(at..).unwrap_or_default().iter().flat_map(|word| word.to_le_bytes());
    let text: Vec<u8> = bytes.take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the path of a program: after one address, since FreeBSD 14 after two.
fn path(record: &[u32]) -> String {
    let is_path = |text: &String| text.starts_with('/') && !text.contains(char::is_control);
    [8, 10].map(|at| string(record, at)).into_iter().find(is_path).unwrap_or_default()
}

/// Converts a counter to a time, on the line through two moments.
fn time(clock: [(u64, u64); 2], tsc: u64) -> u64 {
    let [(tsc_0, ns_0), (tsc_1, ns_1)] = clock;
    let slope = ns_1.saturating_sub(ns_0) as f64 / tsc_1.saturating_sub(tsc_0).max(1) as f64;
    let since = tsc.wrapping_sub(tsc_0) as i64 as f64 * slope;
    ns_0.saturating_add_signed(since as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of records that FreeBSD 13.2 wrote: the beginning, a process, an execution, a sample
    /// of the kernel and one of a program.
    const LOG: &str = "
 ee030014 00000000 a65948ca 000000d6 09030000
 ee14002c 00000000 a825a86a 000000d6 0000000c 10000284 72746e69 00000000 00000000 00000000 00000000
 ee090044 00000000 b0000000 000000d6 0000040f ffffffff 34d74130 00003137 7261762f 706d742f 6477662f 2d62616c 6b72616d 0000312d 00000000 00000000 00000000
 ee100038 00000001 a89ae349 000000d6 0000000c 000186de 00000f00 00020000 8075b921 ffffffff 8050cebf ffffffff 804c58ac ffffffff
 ee100028 00000001 c0000000 000000d6 0000040f 000186df 00000f00 00000001 0c0248f0 000016a9
";

    fn symbols() -> Symbols {
        Symbols::of_modules(
            "module ffffffff80200000 /boot/kernel/kernel\nffffffff8075b900 T ip_tryforward\n\
             ffffffff8050ce00 T ether_input\nffffffff804c5800 T ithread_loop\n",
        )
    }

    fn form(symbols: &Symbols) -> Form<'_> {
        Form {
            symbols,
            // A counter of 1 GHz, which is 0xd600000000 when the clock is 0.
            clock: [(0xd6_0000_0000, 0), (0xd6_8000_0000, 0x8000_0000)],
            event: "clock.prof",
            period: 492_126,
            from_ns: 0,
            to_ns: u64::MAX,
        }
    }

    #[test]
    fn samples_have_their_time_cpu_process_and_functions() {
        let (log, symbols) = (Log::read(LOG).expect("a log"), symbols());
        let (text, outside) = log.script(&form(&symbols));
        assert_eq!(outside, 0);
        let expected = "\
kernel/intr 12/100062 [002] 2.828723017:     492126 clock.prof: 
\tffffffff8075b921 ip_tryforward (kernel)
\tffffffff8050cebf ether_input (kernel)
\tffffffff804c58ac ithread_loop (kernel)

fwdlab-mark-1 1039/100063 [000] 3.221225472:     492126 clock.prof: 
\t    16a90c0248f0 [unknown] (program)

";
        assert_eq!(text, expected);
        assert_eq!(log.executed("/fwdlab-mark-1"), Some(0xd6_b000_0000));
        assert_eq!(log.executed("/fwdlab-mark-2"), None);
    }

    #[test]
    fn samples_outside_the_traffic_are_omitted_and_counted() {
        let (log, symbols) = (Log::read(LOG).expect("a log"), symbols());
        let form = Form { from_ns: 3_000_000_000, ..form(&symbols) };
        let (text, outside) = log.script(&form);
        assert!(text.starts_with("fwdlab-mark-1 ") && !text.contains("intr"), "{text}");
        assert_eq!(outside, 1);
        assert_eq!(log.script(&Form { to_ns: 0, ..form }), (String::new(), 2));
    }

    #[test]
    fn invalid_log_is_refused_and_truncated_log_is_read() {
        assert!(Log::read("00000000 1").expect_err("no log").contains("begins with 00000000"));
        assert!(Log::read("nonsense").expect_err("no log").contains("no hexadecimal"));
        let old = LOG.replace("09030000", "06000000");
        assert!(Log::read(&old).expect_err("old").contains("FreeBSD 12 and later"));
        let words: Vec<&str> = LOG.split_ascii_whitespace().collect();
        for end in 0..words.len() {
            let log = Log::read(&words[..end].join(" ")).expect("a log");
            assert!(log.samples.len() <= 2);
        }
    }

    #[test]
    fn counter_before_the_first_moment_does_not_overflow() {
        assert_eq!(time([(1000, 500), (2000, 1500)], 900), 400);
        assert_eq!(time([(1000, 500), (2000, 1500)], 0), 0);
        assert_eq!(time([(5, 5), (5, 5)], 7), 5);
    }
}

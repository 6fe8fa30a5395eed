//! CPU placement of sender, DUT and receiver, and CPU times.

use fwdlab_model::record::CpuTime;
use fwdlab_model::settings::Arrangement;

/// CPUs by role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// One CPU per sending thread.
    pub senders: Vec<u16>,
    /// CPUs of the DUT.
    pub dut: Vec<u16>,
    /// CPUs of the threads that poll the receiver's interface; empty if it is polled on the
    /// CPUs that send to it.
    pub receiver: Vec<u16>,
    /// CPUs of this program's control thread and its child processes.
    pub control: Vec<u16>,
    /// Arrangement in effect.
    pub arrangement: Arrangement,
    /// Reason for an arrangement or a number of senders other than the configured one.
    pub fallback: Option<String>,
}

/// Places roles on `cpus`.
///
/// Open: the senders get the first CPUs, the DUT the others; control shares the first sender's CPU,
/// so that it does not disturb the DUT. Closed: each sender shares its CPU with the DUT; control
/// gets a free CPU if there is one, otherwise the last. The receiver gets none; see [`place_all`].
pub fn place(cpus: &[u16], requested: Arrangement, senders: u16, queues: u16) -> Placement {
    let requested_senders = usize::from(senders).max(1);
    let mut fallback = None;
    let arrangement = match requested {
        Arrangement::Open if cpus.len() < 2 => {
            fallback = Some("one CPU only: sender, DUT and receiver share it".to_owned());
            Arrangement::Closed
        }
        other => other,
    };
    let most = match arrangement {
        Arrangement::Open => cpus.len() - 1,
        Arrangement::Closed => cpus.len(),
    };
    let count = requested_senders.min(most).max(1);
    if count < requested_senders {
        let text = format!("{count} of {requested_senders} senders: this machine has no more CPUs");
        fallback.get_or_insert(text);
    }
    let senders = cpus[..count].to_vec();
    let (dut, control) = match arrangement {
        Arrangement::Open => {
            let most = usize::from(queues).max(1).min(cpus.len() - count);
            (cpus[count..count + most].to_vec(), vec![cpus[0]])
        }
        Arrangement::Closed => {
            let control = cpus.get(count).or(cpus.last()).copied();
            (senders.clone(), control.into_iter().collect())
        }
    };
    Placement { senders, dut, receiver: Vec::new(), control, arrangement, fallback }
}

/// Places roles on `cpus`, including the receiver's polling.
///
/// Open: the receiver gets the last CPU if senders and DUT leave one, otherwise it shares the first
/// sender's. It never shares a CPU of the DUT, whose forwarding rate would drop. Measured on two
/// CPUs: the device forwards a quarter to a third more if the receiver polls on the sender's CPU,
/// although that slows the sender: offered over forwarded falls from nine to three. Closed: each
/// CPU receives what it forwards.
pub fn place_all(cpus: &[u16], requested: Arrangement, senders: u16, queues: u16) -> Placement {
    let least = usize::from(senders).max(1) + 2;
    let receiver_index =
        (requested == Arrangement::Open && cpus.len() >= least).then(|| cpus.len() - 1);
    let mut placement =
        place(&cpus[..receiver_index.unwrap_or(cpus.len())], requested, senders, queues);
    placement.receiver = match (placement.arrangement, receiver_index) {
        (Arrangement::Closed, _) => Vec::new(),
        (Arrangement::Open, Some(last)) => vec![cpus[last]],
        (Arrangement::Open, None) => placement.senders[..1].to_vec(),
    };
    placement
}

impl Placement {
    /// Placement of a DUT with dedicated CPUs on another machine.
    pub fn of_dut(dut: Vec<u16>) -> Placement {
        Placement {
            senders: Vec::new(),
            dut,
            receiver: Vec::new(),
            control: Vec::new(),
            arrangement: Arrangement::Open,
            fallback: None,
        }
    }

    /// Role of a CPU.
    pub fn role(&self, cpu: u16) -> &'static str {
        match (self.senders.contains(&cpu), self.dut.contains(&cpu)) {
            (true, true) => "sender+dut",
            (true, false) => "sender",
            (false, true) => "dut",
            (false, false) if self.receiver.contains(&cpu) => "receiver",
            (false, false) => "other",
        }
    }
}

/// CPUs in the format of taskset(1) and sysfs: `1,2`.
pub fn list(cpus: &[u16]) -> String {
    cpus.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
}

/// CPU times since boot from `/proc/stat`, one entry per CPU.
pub fn times(text: &str) -> Vec<CpuTime> {
    text.lines().filter_map(parse_line).collect()
}

/// Nanoseconds in a tick of `/proc/stat` (USER_HZ is 100 on Linux).
const TICK_NS: u64 = 10_000_000;

fn parse_line(line: &str) -> Option<CpuTime> {
    let mut words = line.split_ascii_whitespace();
    let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
    let fields: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    let field = |index: usize| fields.get(index).copied().unwrap_or(0).saturating_mul(TICK_NS);
    Some(CpuTime {
        cpu,
        role: String::new(),
        user_ns: field(0).saturating_add(field(1)),
        system_ns: field(2),
        softirq_ns: field(5).saturating_add(field(6)),
        idle_ns: field(3).saturating_add(field(4)),
        stolen_ns: field(7),
    })
}

/// Time stolen from these CPUs since boot according to the text of `/proc/stat`, nanoseconds.
pub fn stolen_in(text: &str, cpus: &[u16]) -> u64 {
    times(text).iter().filter(|t| cpus.contains(&t.cpu)).map(|t| t.stolen_ns).sum()
}

/// Time that passed on a CPU between the two readings whose difference is `time`, or since boot:
/// the sum of all its times, including idle time.
pub fn passed_ns(time: &CpuTime) -> u64 {
    let CpuTime { cpu: _, role: _, user_ns, system_ns, softirq_ns, idle_ns, stolen_ns } = time;
    [user_ns, system_ns, softirq_ns, idle_ns, stolen_ns]
        .into_iter()
        .fold(0, |sum, part| sum.saturating_add(*part))
}

/// CPU times between two readings, for the CPUs with a role.
pub fn difference(before: &[CpuTime], after: &[CpuTime], placement: &Placement) -> Vec<CpuTime> {
    let pairs = after.iter().filter_map(|a| Some((before.iter().find(|b| b.cpu == a.cpu)?, a)));
    pairs
        .filter(|(_, a)| placement.role(a.cpu) != "other")
        .map(|(b, a)| CpuTime {
            cpu: a.cpu,
            role: placement.role(a.cpu).into(),
            user_ns: a.user_ns.saturating_sub(b.user_ns),
            system_ns: a.system_ns.saturating_sub(b.system_ns),
            softirq_ns: a.softirq_ns.saturating_sub(b.softirq_ns),
            idle_ns: a.idle_ns.saturating_sub(b.idle_ns),
            stolen_ns: a.stolen_ns.saturating_sub(b.stolen_ns),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_open_cpus_separate_sender_and_dut() {
        let p = place(&[0, 1], Arrangement::Open, 1, 4);
        assert_eq!((p.senders, p.dut, p.control), (vec![0], vec![1], vec![0]));
        assert_eq!(p.fallback, None);
    }

    #[test]
    fn receiver_gets_a_spare_cpu_and_never_the_duts() {
        for (cpus, senders, queues, receiver, dut) in [
            (vec![0, 1], 1, 4, vec![0], vec![1]),
            (vec![0, 1, 2], 1, 4, vec![2], vec![1]),
            (vec![0, 1, 2], 2, 1, vec![0], vec![2]),
            (vec![2, 3, 5, 7], 1, 1, vec![7], vec![3]),
            (vec![0, 1, 2, 3], 1, 8, vec![3], vec![1, 2]),
        ] {
            let p = place_all(&cpus, Arrangement::Open, senders, queues);
            assert_eq!((&p.receiver, &p.dut), (&receiver, &dut), "{cpus:?} {senders}");
            assert_eq!(p.senders.len(), usize::from(senders));
            assert!(p.receiver.iter().all(|cpu| !p.dut.contains(cpu)));
        }
        let p = place_all(&[0, 1, 2], Arrangement::Open, 1, 1);
        assert_eq!([0, 1, 2, 3].map(|cpu| p.role(cpu)), ["sender", "dut", "receiver", "other"]);
        // A single CPU does everything, as does each CPU of a closed arrangement.
        assert!(place_all(&[4], Arrangement::Open, 1, 1).receiver.is_empty());
        let closed = place_all(&[0, 1, 2], Arrangement::Closed, 2, 2);
        assert_eq!((closed.receiver, closed.control), (vec![], vec![2]));
    }

    #[test]
    fn single_cpu_is_always_closed() {
        let p = place(&[3], Arrangement::Open, 1, 1);
        assert_eq!((p.senders.clone(), p.dut.clone()), (vec![3], vec![3]));
        assert_eq!(p.arrangement, Arrangement::Closed);
        assert!(p.fallback.expect("said").contains("one CPU"));
    }

    #[test]
    fn excess_senders_are_dropped_with_a_reason() {
        let p = place(&[0, 1], Arrangement::Closed, 8, 8);
        assert_eq!(p.senders, [0, 1]);
        assert!(p.fallback.expect("said").contains("2 of 8"));
    }

    #[test]
    fn times_parses_proc_stat() {
        let text = "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr 5\n";
        let times = times(text);
        assert_eq!(times.len(), 1);
        assert_eq!(times[0].stolen_ns, 80_000_000);
        assert_eq!(times[0].softirq_ns, 130_000_000);
        let full = super::times("cpu0 18446744073709551615 1 18446744073709551615\n");
        assert_eq!((full[0].user_ns, full[0].system_ns), (u64::MAX, u64::MAX));
    }
}

//! Lists in a run's row: JSON arrays with one array per entry, whose elements are the columns of
//! the list's view. Writing and reading one text takes a fraction of the time of rows.

use fwdlab_model::record::{Counter, CpuTime, Sample};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// An entry of a list.
pub(super) trait Entry: Sized {
    /// The columns of the list's view; unsigned numbers are reinterpreted as signed.
    type Columns: Serialize + DeserializeOwned;
    fn columns(&self) -> Self::Columns;
    fn of(columns: Self::Columns) -> Self;
}

/// Reinterprets an unsigned counter as SQLite's signed integer.
pub(super) fn bits(value: u64) -> i64 {
    value.cast_signed()
}

fn unsigned(value: i64) -> u64 {
    value.cast_unsigned()
}

type Maybe = Option<i64>;

impl Entry for Sample {
    type Columns = (i64, i64, i64, i64, i64, Maybe, Maybe, Maybe, i64, u32, u8);

    fn columns(&self) -> Self::Columns {
        (
            bits(self.at_ns),
            bits(self.duration_ns),
            bits(self.offered),
            bits(self.forwarded),
            bits(self.stolen_ns),
            self.ran_ns.map(bits),
            self.waited_ns.map(bits),
            self.sender_waited_ns.map(bits),
            self.variant as i64,
            self.slice,
            self.valid.into(),
        )
    }

    fn of(
        (at, duration, offered, forwarded, stolen, ran, waited, sender, variant, slice, valid): Self::Columns,
    ) -> Sample {
        Sample {
            at_ns: unsigned(at),
            duration_ns: unsigned(duration),
            offered: unsigned(offered),
            forwarded: unsigned(forwarded),
            stolen_ns: unsigned(stolen),
            ran_ns: ran.map(unsigned),
            waited_ns: waited.map(unsigned),
            sender_waited_ns: sender.map(unsigned),
            variant: unsigned(variant) as usize,
            slice,
            valid: valid != 0,
        }
    }
}

impl Entry for Counter {
    type Columns = (String, i64, i64, Maybe);

    fn columns(&self) -> Self::Columns {
        (self.name.clone(), bits(self.before), bits(self.after), self.expected.map(bits))
    }

    fn of((name, before, after, expected): Self::Columns) -> Counter {
        let (before, after) = (unsigned(before), unsigned(after));
        Counter { name, before, after, expected: expected.map(unsigned) }
    }
}

impl Entry for CpuTime {
    type Columns = (u16, String, i64, i64, i64, i64, i64);

    fn columns(&self) -> Self::Columns {
        let CpuTime { cpu, role, user_ns, system_ns, softirq_ns, idle_ns, stolen_ns } = self;
        let ns = [user_ns, system_ns, softirq_ns, idle_ns, stolen_ns];
        let [user, system, softirq, idle, stolen] = ns.map(|&ns| bits(ns));
        (*cpu, role.clone(), user, system, softirq, idle, stolen)
    }

    fn of((cpu, role, user, system, softirq, idle, stolen): Self::Columns) -> CpuTime {
        let [user_ns, system_ns, softirq_ns, idle_ns, stolen_ns] =
            [user, system, softirq, idle, stolen].map(unsigned);
        CpuTime { cpu, role, user_ns, system_ns, softirq_ns, idle_ns, stolen_ns }
    }
}

/// A step around the traffic and its duration in nanoseconds.
impl Entry for (String, u64) {
    type Columns = (String, i64);

    fn columns(&self) -> Self::Columns {
        (self.0.clone(), bits(self.1))
    }

    fn of((step, duration_ns): Self::Columns) -> (String, u64) {
        (step, unsigned(duration_ns))
    }
}

//! Leases: a laboratory's hosts are one controller's for a time, which it renews.
//!
//! All hosts are taken in one order, or none. The record is kept by each host itself, whose
//! clock decides (`script.rs`). A thread for each host renews it; where that fails for so long
//! that another could have the host soon, or another has had it, [`Watch::lost`] says so, and
//! the run ends. A controller that dies frees its hosts within one lease time; one of this
//! machine that has died is known to be gone at once (`owner.rs`). A host that is marked sick
//! is not taken (`health.rs`).
//!
//! Left out: waiting (whoever wants a host asks again), and clocks of the controller but the
//! one that goes on while it is suspended.

mod health;
mod owner;
mod reach;
mod script;
mod survey;

pub use health::mark;
pub(crate) use health::mark_sick;
pub(crate) use owner::is_gone_from_here;
pub use owner::{Owner, named};
pub use script::{Holder, Mark};
pub use survey::{Freed, HostLease, State, free, survey};

use crate::error::BenchError;
use crate::host::Host;
use crate::host::connected::ConnectedHost;
use fwdlab_model::Lab;
use fwdlab_netio::clock::boottime_ns;
use script::{Answer, Ledger};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A lease is renewed after this part of it.
const RENEWED_AFTER: u32 = 3;
/// Before a run it is renewed after this part of it already: runs as long as the difference
/// never meet the thread that renews.
const RENEWED_BEFORE_A_RUN: u32 = 6;
/// A renewal that failed is tried again after this part of the lease.
const TRIED_AGAIN_AFTER: u32 = 12;
/// The last part of a lease in which its holder does not rely on it: traffic that flows still
/// has to be stopped before another may have the host.
const NOT_RELIED_ON: u32 = 4;

/// The owner of a lease that the host knows nothing of.
const FORGOTTEN: &str = "-";

/// How a lease stands, as its holder knows it.
#[derive(Clone, Debug)]
enum Standing {
    /// Asked for at this time (CLOCK_BOOTTIME, nanoseconds), and granted after that; what
    /// failed since.
    Held { asked_ns: u64, trouble: Option<String> },
    /// The host is being rebooted: nobody can have it, and nobody relies on it.
    Away,
    /// Another has had it, it was ended by hand, or the host has forgotten it.
    Lost { why: String, is_forgotten: bool },
}

/// The lease of one host.
struct Held {
    name: String,
    host: Arc<dyn Host + Send + Sync>,
    ledger: Ledger,
    standing: Mutex<Standing>,
}

/// What threads and holder share.
struct Shared {
    owner: Owner,
    length: Duration,
    hosts: Vec<Held>,
    over: Mutex<bool>,
    woken: Condvar,
}

/// The leases that this process has of all hosts of a laboratory. Dropping them gives them back.
pub struct Leases {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// A look at leases that another part of the program holds.
#[derive(Clone)]
pub struct Watch(Arc<Shared>);

impl Watch {
    /// Why the hosts can't be relied on any more, if so.
    pub fn lost(&self) -> Option<BenchError> {
        self.0.hosts.iter().find_map(|held| held.lost(self.0.length))
    }
}

impl Leases {
    /// Takes every host, or none.
    ///
    /// # Errors
    /// When another has one ([`BenchError::Held`]), one is marked sick, or can't be asked.
    pub(crate) fn take(hosts: &[ConnectedHost], lab: &Lab) -> Result<Leases, BenchError> {
        Leases::of(hosts.iter(), lab, Some(&lab.name))
    }

    /// The same for whoever wants to find out how hosts are: sick ones, too.
    ///
    /// # Errors
    /// When another has one ([`BenchError::Held`]), or one can't be asked.
    pub(crate) fn take_even_sick<'a>(
        hosts: impl Iterator<Item = &'a ConnectedHost>,
        lab: &Lab,
    ) -> Result<Leases, BenchError> {
        Leases::of(hosts, lab, None)
    }

    fn of<'a>(
        hosts: impl Iterator<Item = &'a ConnectedHost>,
        lab: &Lab,
        judged: Option<&str>,
    ) -> Result<Leases, BenchError> {
        let held = |reached: &ConnectedHost| Held {
            name: reached.described.name.clone(),
            host: reached.shared(),
            ledger: Ledger::of(reached.system),
            standing: Mutex::new(Standing::Away),
        };
        // The order of destinations is that of every controller, whatever its file's order is.
        let mut sorted: Vec<&ConnectedHost> = hosts.collect();
        sorted.sort_by(|one, other| one.described.ssh.cmp(&other.described.ssh));
        let hosts = sorted.into_iter().map(held).collect();
        Leases::begin(Owner::this(), Duration::from_nanos(lab.lease_ns), hosts, judged)
    }

    /// Takes hosts; where they are `judged`, as those of this laboratory, none may be sick.
    fn begin(
        owner: Owner,
        length: Duration,
        hosts: Vec<Held>,
        judged: Option<&str>,
    ) -> Result<Leases, BenchError> {
        let (over, woken) = (Mutex::new(false), Condvar::new());
        let shared = Arc::new(Shared { owner, length, hosts, over, woken });
        let judge = || judged.map_or(Ok(()), |lab| health::judge(&shared, lab));
        let taken = shared.take().and_then(|()| judge());
        if let Err(error) = taken {
            shared.release();
            return Err(error);
        }
        let mut threads = Vec::new();
        for index in 0..shared.hosts.len() {
            let shared = shared.clone();
            threads.push(std::thread::spawn(move || shared.keep(index)));
        }
        Ok(Leases { shared, threads })
    }

    /// For whoever has to end when they are lost.
    pub(crate) fn watch(&self) -> Watch {
        Watch(self.shared.clone())
    }

    /// Renews those that have not been renewed for a while.
    ///
    /// # Errors
    /// When one is lost, or its host can't be asked.
    pub(crate) fn renew(&self) -> Result<(), BenchError> {
        for held in &self.shared.hosts {
            if held.age().is_some_and(|age| age * RENEWED_BEFORE_A_RUN >= self.shared.length) {
                self.shared.renew(held)?;
            }
        }
        match self.watch().lost() {
            Some(lost) => Err(lost),
            None => Ok(()),
        }
    }

    /// A host is about to be rebooted: until [`Leases::back`] its lease is not renewed, and
    /// that it can't be is no loss.
    pub(crate) fn away(&self, name: &str) {
        if let Some(held) = self.shared.named(name) {
            held.set(Standing::Away);
        }
    }

    /// A host is there again.
    ///
    /// # Errors
    /// As [`Leases::take`].
    pub(crate) fn back(&self, name: &str) -> Result<(), BenchError> {
        self.shared.named(name).map_or(Ok(()), |held| self.shared.take_one(held))
    }

    /// After a failure: all are this process's again, unless another has had one, or somebody
    /// has ended one by hand, who wants this process to end.
    ///
    /// # Errors
    /// As [`Leases::take`].
    pub(crate) fn again(&self) -> Result<(), BenchError> {
        for held in &self.shared.hosts {
            self.shared.renew(held)?;
            if let Standing::Lost { why, is_forgotten: false } = &*lock(&held.standing) {
                return Err(lost(&held.name, why));
            }
        }
        self.shared.take()
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        *lock(&self.shared.over) = true;
        self.shared.woken.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        self.shared.release();
    }
}

impl Shared {
    fn named(&self, name: &str) -> Option<&Held> {
        self.hosts.iter().find(|held| held.name == name)
    }

    fn take(&self) -> Result<(), BenchError> {
        self.hosts.iter().try_for_each(|held| self.take_one(held))
    }

    fn take_one(&self, held: &Held) -> Result<(), BenchError> {
        let mut gone = String::new();
        loop {
            let asked_ns = boottime_ns();
            let host = held.host.as_ref();
            match held.ledger.take(host, self.owner.text(), self.length, &gone, false)? {
                Answer::Yours => {
                    held.set(Standing::Held { asked_ns, trouble: None });
                    return Ok(());
                }
                Answer::Held(holder) if holder.owner != gone && owner::is_gone(&holder.owner) => {
                    gone = holder.owner;
                }
                Answer::Held(holder) => {
                    return Err(BenchError::Held {
                        left: Some(Duration::from_secs_f64(holder.left_s.max(0.0))),
                        what: format!(
                            "another fwdlab ({}) measures with {}, for {:.0} s more unless it \
                             renews its lease",
                            named(&holder.owner),
                            held.name,
                            holder.left_s.ceil()
                        ),
                    });
                }
                Answer::Lost(owner) => return Err(lost(&held.name, &why(&owner))),
            }
        }
    }

    /// Extends a lease; what comes of it is what [`Held::lost`] says afterwards.
    fn renew(&self, held: &Held) -> Result<(), BenchError> {
        let asked_ns = boottime_ns();
        let host = held.host.as_ref();
        let answer = held.ledger.take(host, self.owner.text(), self.length, "", true);
        let mut standing = lock(&held.standing);
        let Standing::Held { trouble, .. } = &mut *standing else { return Ok(()) };
        match answer {
            Ok(Answer::Yours) => *standing = Standing::Held { asked_ns, trouble: None },
            Ok(Answer::Held(Holder { owner, .. }) | Answer::Lost(owner)) => {
                *standing = Standing::Lost { why: why(&owner), is_forgotten: owner == FORGOTTEN };
            }
            Err(error) => {
                *trouble = Some(error.to_string());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Renews a lease until all is over.
    fn keep(&self, index: usize) {
        let held = &self.hosts[index];
        let mut pause = self.length / RENEWED_AFTER;
        let mut over = lock(&self.over);
        while !*over {
            let waited = self.woken.wait_timeout(over, pause);
            over = waited.unwrap_or_else(PoisonError::into_inner).0;
            if *over {
                return;
            }
            drop(over);
            let due = self.length / RENEWED_AFTER;
            pause = match held.age() {
                None => due,
                Some(age) if age < due => due - age,
                Some(_) => match self.renew(held) {
                    Ok(()) => due,
                    Err(_) => self.length / TRIED_AGAIN_AFTER,
                },
            };
            over = lock(&self.over);
        }
    }

    /// Gives back what it has; the lease of a host that can't be reached ends by itself. A shell
    /// over which all commands of a host run is gone where a thread that renewed had begun it:
    /// that is noticed once, and the second attempt begins another.
    fn release(&self) {
        for held in &self.hosts {
            let release = || held.ledger.release(held.host.as_ref(), self.owner.text());
            let _ = release().or_else(|_| release());
        }
    }
}

impl Held {
    fn set(&self, standing: Standing) {
        *lock(&self.standing) = standing;
    }

    /// Time since the lease was asked for; none where it is not held.
    fn age(&self) -> Option<Duration> {
        match &*lock(&self.standing) {
            Standing::Held { asked_ns, .. } => Some(since(*asked_ns)),
            _ => None,
        }
    }

    fn lost(&self, length: Duration) -> Option<BenchError> {
        match &*lock(&self.standing) {
            Standing::Held { asked_ns, trouble } if since(*asked_ns) > relied_on(length) => {
                let why = trouble.as_deref().unwrap_or("this process was held up for too long");
                Some(lost(&self.name, &format!("it could not be renewed: {why}")))
            }
            Standing::Held { .. } | Standing::Away => None,
            Standing::Lost { why, .. } => Some(lost(&self.name, why)),
        }
    }
}

/// How long a holder relies on a lease.
fn relied_on(length: Duration) -> Duration {
    length - length / NOT_RELIED_ON
}

fn since(asked_ns: u64) -> Duration {
    Duration::from_nanos(boottime_ns().saturating_sub(asked_ns))
}

fn why(owner: &str) -> String {
    match owner {
        "nobody" => "it was ended by `fwdlab lab free`, or by another that had it since".to_owned(),
        FORGOTTEN => "the host has forgotten it, as it does where /var is memory".to_owned(),
        owner => format!("{} has it", named(owner)),
    }
}

fn lost(host: &str, why: &str) -> BenchError {
    BenchError::environment(
        format!("the lease of {host} is lost: {why}"),
        "`fwdlab lab leases` says who has which host; a longer `lease` in the lab's file bears \
         longer interruptions",
    )
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

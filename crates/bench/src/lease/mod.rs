//! Leases: one controller holds a laboratory's hosts for a limited time, and renews the lease.
//!
//! A controller takes all hosts, always in the same order, or none. Each host stores its own
//! record, and its clock decides (`script.rs`). A thread for each host renews it; if renewing fails
//! for so long that another controller could soon take the host, or if another has had it,
//! [`Watch::lost`] reports that, and the run ends. The hosts of a dead controller become free
//! within one lease time; if it ran on this machine, immediately (`owner.rs`). A host that is
//! marked sick is not taken (`health.rs`).
//!
//! Not supported: waiting (the caller retries), and any clock of the controller other than the one
//! that continues while it is suspended.

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
pub use survey::{FreeResult, HostLease, State, free, survey};

use crate::error::BenchError;
use crate::host::Host;
use crate::host::connected::ConnectedHost;
use fwdlab_model::Lab;
use fwdlab_netio::clock::boottime_ns;
use script::{Answer, Ledger};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Fraction of a lease after which it is renewed.
const RENEW_AFTER: u32 = 3;
/// Fraction of a lease after which it is already renewed before a run: runs no longer than the
/// difference never coincide with the renewing thread.
const RENEW_BEFORE_A_RUN: u32 = 6;
/// Fraction of a lease after which a failed renewal is retried.
const RETRY_AFTER: u32 = 12;
/// Last fraction of a lease, on which its holder does not rely: traffic must be stopped before
/// another controller may take the host.
const SAFETY_MARGIN: u32 = 4;

/// Owner of a lease that the host has no record of.
const FORGOTTEN: &str = "-";

/// State of a lease as known to its holder.
#[derive(Clone, Debug)]
enum LeaseState {
    /// Requested at this time (CLOCK_BOOTTIME, nanoseconds) and granted later, with the last error
    /// since.
    Held { requested_ns: u64, last_error: Option<String> },
    /// The host is rebooting: no controller can take it, and none relies on it.
    Away,
    /// Another controller has had it, it was ended by hand, or the host has forgotten it.
    Lost { why: String, is_forgotten: bool },
}

/// The lease of one host.
struct HeldLease {
    name: String,
    host: Arc<dyn Host + Send + Sync>,
    ledger: Ledger,
    standing: Mutex<LeaseState>,
}

/// State shared by the threads and the holder.
struct Shared {
    owner: Owner,
    length: Duration,
    hosts: Vec<HeldLease>,
    over: Mutex<bool>,
    woken: Condvar,
}

/// Leases of this process on all hosts of a laboratory. Dropping them releases the hosts.
pub struct Leases {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// A view of leases held by another part of the program.
#[derive(Clone)]
pub struct Watch(Arc<Shared>);

impl Watch {
    /// Error that explains why the hosts cannot be relied on any more, if so.
    pub fn lost(&self) -> Option<BenchError> {
        self.0.hosts.iter().find_map(|held| held.lost(self.0.length))
    }
}

impl Leases {
    /// Takes every host, or none.
    ///
    /// # Errors
    /// Fails if another controller holds a host ([`BenchError::Held`]), or if a host is marked sick
    /// or cannot be queried.
    pub(crate) fn take(hosts: &[ConnectedHost], lab: &Lab) -> Result<Leases, BenchError> {
        Leases::of(hosts.iter(), lab, Some(&lab.name))
    }

    /// Like [`Leases::take`], but also takes sick hosts, to examine them.
    ///
    /// # Errors
    /// Fails if another controller holds a host ([`BenchError::Held`]), or if a host cannot be
    /// queried.
    pub(crate) fn take_even_sick<'a>(
        hosts: impl Iterator<Item = &'a ConnectedHost>,
        lab: &Lab,
    ) -> Result<Leases, BenchError> {
        Leases::of(hosts, lab, None)
    }

    fn of<'a>(
        hosts: impl Iterator<Item = &'a ConnectedHost>,
        lab: &Lab,
        checked_lab: Option<&str>,
    ) -> Result<Leases, BenchError> {
        let held = |connected: &ConnectedHost| HeldLease {
            name: connected.described.name.clone(),
            host: connected.shared(),
            ledger: Ledger::of(connected.system),
            standing: Mutex::new(LeaseState::Away),
        };
        // Sorted by destination, so that every controller uses the same order regardless of its
        // file.
        let mut sorted: Vec<&ConnectedHost> = hosts.collect();
        sorted.sort_by(|one, other| one.described.ssh.cmp(&other.described.ssh));
        let hosts = sorted.into_iter().map(held).collect();
        Leases::begin(Owner::this(), Duration::from_nanos(lab.lease_ns), hosts, checked_lab)
    }

    /// Takes hosts. With `checked_lab`, none of them may be marked sick in that laboratory.
    fn begin(
        owner: Owner,
        length: Duration,
        hosts: Vec<HeldLease>,
        checked_lab: Option<&str>,
    ) -> Result<Leases, BenchError> {
        let (over, woken) = (Mutex::new(false), Condvar::new());
        let shared = Arc::new(Shared { owner, length, hosts, over, woken });
        let judge = || checked_lab.map_or(Ok(()), |lab| health::judge(&shared, lab));
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

    /// A view for code that must end when the leases are lost.
    pub(crate) fn watch(&self) -> Watch {
        Watch(self.shared.clone())
    }

    /// Renews the leases that have not been renewed for a while.
    ///
    /// # Errors
    /// Fails if a lease is lost, or its host cannot be queried.
    pub(crate) fn renew(&self) -> Result<(), BenchError> {
        for held in &self.shared.hosts {
            if held.age().is_some_and(|age| age * RENEW_BEFORE_A_RUN >= self.shared.length) {
                self.shared.renew(held)?;
            }
        }
        match self.watch().lost() {
            Some(lost) => Err(lost),
            None => Ok(()),
        }
    }

    /// Renews or takes again the lease of one host, regardless of the others: returns false if it
    /// was ended by hand, or another controller has it or has had it.
    ///
    /// # Errors
    /// Fails if the host cannot be queried.
    pub(crate) fn keeps(&self, name: &str) -> Result<bool, BenchError> {
        let Some(held) = self.shared.find(name) else { return Ok(true) };
        self.shared.renew(held)?;
        let standing = lock(&held.standing).clone();
        match standing {
            LeaseState::Held { .. } => Ok(true),
            LeaseState::Lost { is_forgotten: false, .. } => Ok(false),
            LeaseState::Lost { .. } | LeaseState::Away => match self.shared.take_one(held) {
                Err(BenchError::Held { .. }) => Ok(false),
                taken => taken.map(|()| true),
            },
        }
    }

    /// Suspends the renewal of a host's lease until [`Leases::back`], because the host is about to
    /// be rebooted; being unreachable is then not a loss.
    pub(crate) fn away(&self, name: &str) {
        if let Some(held) = self.shared.find(name) {
            held.set(LeaseState::Away);
        }
    }

    /// Takes a host again after its reboot.
    ///
    /// # Errors
    /// The errors of [`Leases::take`].
    pub(crate) fn back(&self, name: &str) -> Result<(), BenchError> {
        self.shared.find(name).map_or(Ok(()), |held| self.shared.take_one(held))
    }

    /// Takes all hosts again after a failure, unless another controller has had one, or a user has
    /// ended a lease by hand in order to end this process.
    ///
    /// # Errors
    /// The errors of [`Leases::take`].
    pub(crate) fn again(&self) -> Result<(), BenchError> {
        for held in &self.shared.hosts {
            self.shared.renew(held)?;
            if let LeaseState::Lost { why, is_forgotten: false } = &*lock(&held.standing) {
                return Err(lost_error(&held.name, why));
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
    fn find(&self, name: &str) -> Option<&HeldLease> {
        self.hosts.iter().find(|held| held.name == name)
    }

    fn take(&self) -> Result<(), BenchError> {
        self.hosts.iter().try_for_each(|held| self.take_one(held))
    }

    fn take_one(&self, held: &HeldLease) -> Result<(), BenchError> {
        let mut gone = String::new();
        loop {
            let requested_ns = boottime_ns();
            let host = held.host.as_ref();
            match held.ledger.take(host, self.owner.text(), self.length, &gone, false)? {
                Answer::Yours => {
                    held.set(LeaseState::Held { requested_ns, last_error: None });
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
                Answer::Lost(owner) => return Err(lost_error(&held.name, &reason_of_loss(&owner))),
            }
        }
    }

    /// Extends a lease; [`HeldLease::lost`] reports the outcome afterwards.
    fn renew(&self, held: &HeldLease) -> Result<(), BenchError> {
        let requested_ns = boottime_ns();
        let host = held.host.as_ref();
        let answer = held.ledger.take(host, self.owner.text(), self.length, "", true);
        let mut standing = lock(&held.standing);
        let LeaseState::Held { last_error, .. } = &mut *standing else { return Ok(()) };
        match answer {
            Ok(Answer::Yours) => *standing = LeaseState::Held { requested_ns, last_error: None },
            Ok(Answer::Held(Holder { owner, .. }) | Answer::Lost(owner)) => {
                *standing = LeaseState::Lost {
                    why: reason_of_loss(&owner),
                    is_forgotten: owner == FORGOTTEN,
                };
            }
            Err(error) => {
                *last_error = Some(error.to_string());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Renews a lease until the leases are released.
    fn keep(&self, index: usize) {
        let held = &self.hosts[index];
        let mut pause = self.length / RENEW_AFTER;
        let mut over = lock(&self.over);
        while !*over {
            let waited = self.woken.wait_timeout(over, pause);
            over = waited.unwrap_or_else(PoisonError::into_inner).0;
            if *over {
                return;
            }
            drop(over);
            let due = self.length / RENEW_AFTER;
            pause = match held.age() {
                None => due,
                Some(age) if age < due => due - age,
                Some(_) => match self.renew(held) {
                    Ok(()) => due,
                    Err(_) => self.length / RETRY_AFTER,
                },
            };
            over = lock(&self.over);
        }
    }

    /// Releases the hosts; the lease of an unreachable host expires. A shell that runs all commands
    /// of a host (`one_shell`) is gone if a renewing thread had started it: the first attempt then
    /// fails, and the second one starts another shell.
    fn release(&self) {
        for held in &self.hosts {
            let release = || held.ledger.release(held.host.as_ref(), self.owner.text());
            let _ = release().or_else(|_| release());
        }
    }
}

impl HeldLease {
    fn set(&self, standing: LeaseState) {
        *lock(&self.standing) = standing;
    }

    /// Time since the lease was requested; `None` if it is not held.
    fn age(&self) -> Option<Duration> {
        match &*lock(&self.standing) {
            LeaseState::Held { requested_ns, .. } => Some(since(*requested_ns)),
            _ => None,
        }
    }

    fn lost(&self, length: Duration) -> Option<BenchError> {
        match &*lock(&self.standing) {
            LeaseState::Held { requested_ns, last_error }
                if since(*requested_ns) > relied_on(length) =>
            {
                let why = last_error.as_deref().unwrap_or("this process was held up for too long");
                Some(lost_error(&self.name, &format!("it could not be renewed: {why}")))
            }
            LeaseState::Held { .. } | LeaseState::Away => None,
            LeaseState::Lost { why, .. } => Some(lost_error(&self.name, why)),
        }
    }
}

/// Time for which a holder relies on a lease.
fn relied_on(length: Duration) -> Duration {
    length - length / SAFETY_MARGIN
}

fn since(requested_ns: u64) -> Duration {
    Duration::from_nanos(boottime_ns().saturating_sub(requested_ns))
}

fn reason_of_loss(owner: &str) -> String {
    match owner {
        "nobody" => "it was ended by `fwdlab lab free`, or by another that had it since".to_owned(),
        FORGOTTEN => "the host has forgotten it, as it does where /var is memory".to_owned(),
        owner => format!("{} has it", named(owner)),
    }
}

fn lost_error(host: &str, why: &str) -> BenchError {
    BenchError::environment(
        format!("the lease of {host} is lost: {why}"),
        "`fwdlab lab leases` shows who has which host; a longer `lease` in the lab's file \
         tolerates longer interruptions",
    )
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

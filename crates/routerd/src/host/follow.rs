//! Follows the kernel: its routes, and the carriers of its links.
//!
//! Notifications are applied as they arrive. All routes are queried, and the differences applied,
//! if notifications were lost, if they do not determine the kernel's state, or if the kernel may
//! have changed routes silently: it sends no notification when it removes IPv4 routes whose address
//! or next hop disappears, nor when it leaves out and takes back next hops of a link that loses its
//! carrier or regains it.

use super::Sockets;
use crate::routing::Routing;
use fwdlab_netio::host::Carrier;
use fwdlab_netio::netlink::{Event, LinkState, Pending, wait_for};
use fwdlab_router::routes::kernel::KernelRoutes;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait, after which the order to end is noticed.
const LOOK: Duration = Duration::from_millis(100);
/// Number of events in close succession from which on they are gathered, and for how long.
const MANY: usize = 64;
const GATHER: Duration = Duration::from_millis(5);
/// Delay before routes are queried that may have disappeared silently, so that simultaneous changes
/// cost one query. Queries take at most a fourth of the time.
const DELAY: Duration = Duration::from_millis(50);

/// Minimum time without a carrier for a host device whose link was deleted: the kernel checks
/// carriers once a second, and keeps known MACs until then.
const AWAY: Duration = Duration::from_millis(1200);

pub(super) struct Follower {
    sockets: Sockets,
    /// By the name of the router's interface, which may have VLANs.
    carriers: HashMap<String, Vec<Carrier>>,
    /// Names of the interfaces by number.
    names: HashMap<u32, String>,
    /// Time until which deleted links have no carrier, and whether they get one then.
    away: HashMap<String, (Instant, bool)>,
    routing: Arc<Mutex<Routing>>,
    stop: Arc<AtomicBool>,
    trouble: Arc<Mutex<Option<String>>>,
    follows_routes: bool,
    /// True if a link of the host is up, and if it has a carrier.
    links: HashMap<u32, (bool, bool)>,
    /// Time at which all routes are queried.
    due: Option<Instant>,
    /// Duration of the last query of all routes.
    query_time: Duration,
}

impl Follower {
    pub(super) fn new(
        sockets: Sockets,
        carriers: Vec<(String, Carrier)>,
        routing: &Arc<Mutex<Routing>>,
        stop: &Arc<AtomicBool>,
        trouble: &Arc<Mutex<Option<String>>>,
    ) -> Follower {
        let mut of_devices: HashMap<String, Vec<Carrier>> = HashMap::new();
        for (name, carrier) in carriers {
            of_devices.entry(name).or_default().push(carrier);
        }
        Follower {
            sockets,
            carriers: of_devices,
            names: HashMap::new(),
            away: HashMap::new(),
            routing: Arc::clone(routing),
            stop: Arc::clone(stop),
            trouble: Arc::clone(trouble),
            follows_routes: false,
            links: HashMap::new(),
            due: None,
            query_time: Duration::ZERO,
        }
    }

    /// Takes over the present links and routes.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub(super) fn begin(&mut self, kernel: KernelRoutes, routes: bool) -> anyhow::Result<()> {
        self.follows_routes = routes;
        for event in self.sockets.link_questions.links()? {
            self.apply_link(event);
        }
        if routes {
            self.locked().follow(kernel).map_err(anyhow::Error::msg)?;
            self.query()?;
        }
        Ok(())
    }

    /// Follows the kernel until the order to end.
    pub(super) fn run(mut self) {
        while !self.stop.load(Ordering::Relaxed) {
            let done = self.round();
            let failed = done.is_err();
            let trouble = done.err().map(|error| format!("the kernel's routes: {error}"));
            if failed || self.due.is_none() {
                *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
            }
            if failed {
                // Query all routes once more.
                self.due = Some(Instant::now() + Duration::from_secs(1));
                thread::sleep(LOOK);
            }
        }
    }

    fn round(&mut self) -> anyhow::Result<()> {
        let left = self.due.map(|due| due.saturating_duration_since(Instant::now()));
        let Sockets { events, links, .. } = &self.sockets;
        wait_for(&[events, links], left.unwrap_or(LOOK).min(LOOK))?;
        let links = self.sockets.links.pending()?;
        for event in links.events {
            self.apply_link(event);
        }
        if links.is_lost {
            for event in self.sockets.link_questions.links()? {
                self.apply_link(event);
            }
        }
        self.bring_back();
        self.apply_routes()?;
        if self.due.is_some_and(|due| due <= Instant::now()) {
            self.query()?;
        }
        Ok(())
    }

    fn apply_routes(&mut self) -> anyhow::Result<()> {
        loop {
            let pending = self.sockets.events.pending()?;
            if !self.follows_routes {
                return Ok(());
            }
            if self.may_have_changed_more(&pending) {
                self.query_soon();
            }
            if pending.events.is_empty() {
                return Ok(());
            }
            let is_determined = self.locked().hear(&pending.events);
            if !is_determined.map_err(anyhow::Error::msg)? {
                self.query_soon();
            }
            if pending.events.len() < MANY {
                return Ok(());
            }
            thread::sleep(GATHER);
        }
    }

    /// True if the kernel may have changed routes without a notification.
    fn may_have_changed_more(&mut self, pending: &Pending) -> bool {
        if pending.is_lost {
            self.links.clear();
        }
        let mut has = pending.is_lost;
        for event in &pending.events {
            has |= match event {
                Event::Silent(_) => true,
                Event::LinkGone(index) => {
                    self.links.remove(index);
                    true
                }
                // Next hops disappear with a link's carrier, and come back with it.
                Event::Link(LinkState { index, is_up, has_carrier, .. }) => {
                    let now = (*is_up, *has_carrier);
                    self.links.insert(*index, now) != Some(now)
                }
                _ => false,
            };
        }
        has
    }

    fn query_soon(&mut self) {
        let delay = DELAY.max(3 * self.query_time);
        self.due = self.due.or(Some(Instant::now() + delay));
    }

    /// Queries all routes.
    fn query(&mut self) -> anyhow::Result<()> {
        self.due = None;
        let begin = Instant::now();
        // Pending notifications are older than the answer; those that arrive during the query are
        // applied after it.
        loop {
            let before = self.sockets.events.pending()?;
            self.may_have_changed_more(&before);
            if before.events.is_empty() {
                break;
            }
        }
        let all = self.sockets.questions.routes()?;
        let result = self.locked().replace_all(&all);
        self.query_time = begin.elapsed();
        result.map_err(anyhow::Error::msg)
    }

    /// Sets an interface's carrier to the carrier of its host device.
    fn apply_link(&mut self, event: Event) {
        match event {
            Event::Link(LinkState { index, name, is_up, has_carrier, .. }) => {
                if let Some(carriers) = self.carriers.get(&name) {
                    let is_there = is_up && has_carrier;
                    match self.away.get_mut(&name) {
                        Some((_, comes_back)) => *comes_back = is_there,
                        None => set_all(carriers, is_there),
                    }
                    self.names.insert(index, name);
                }
            }
            Event::LinkGone(index) => {
                let Some(name) = self.names.remove(&index) else { return };
                set_all(self.carriers.get(&name).map_or(&[], Vec::as_slice), false);
                self.away.insert(name, (Instant::now() + AWAY, false));
            }
            _ => {}
        }
    }

    /// Restores the carriers of links that were deleted long enough ago.
    fn bring_back(&mut self) {
        let now = Instant::now();
        let carriers = &self.carriers;
        self.away.retain(|name, (until, comes_back)| {
            let is_over = *until <= now;
            if is_over && *comes_back {
                set_all(carriers.get(name).map_or(&[], Vec::as_slice), true);
            }
            !is_over
        });
    }

    fn locked(&self) -> MutexGuard<'_, Routing> {
        self.routing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sets the carriers; a deleted device has none.
fn set_all(carriers: &[Carrier], is_there: bool) {
    for carrier in carriers {
        let _ = carrier.set(is_there);
    }
}

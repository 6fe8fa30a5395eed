//! Following the kernel: its routes, and the carriers of its links.
//!
//! What is told is applied as it comes. When some of it was lost, when it doesn't say what the
//! kernel has now, or when the kernel has changed routes without telling (as it removes those of
//! IPv4 whose address or next hop goes, and leaves out and takes back next hops of a link that
//! loses its carrier or gets it back), all routes are asked for, and what is different is applied.

use super::Sockets;
use crate::routing::Routing;
use fwdlab_netio::host::Carrier;
use fwdlab_netio::netlink::{Event, LinkState, Pending, RouteEvent, wait_for};
use fwdlab_router::routes::kernel::KernelRoutes;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait: until the order to end is seen.
const LOOK: Duration = Duration::from_millis(100);
/// Events that come so close that it is worth while to gather them, and for how long.
const MANY: usize = 64;
const GATHER: Duration = Duration::from_millis(5);
/// Time after which routes are asked for that may have gone in silence, so that all that goes
/// together is asked for once. Asking takes no more than a fourth of the time.
const DELAY: Duration = Duration::from_millis(50);

/// Time for which the carrier of a host device is away at least when its link was deleted: the
/// kernel looks after carriers once a second, and keeps the MACs that it knew until it has.
const AWAY: Duration = Duration::from_millis(1200);

pub(super) struct Follower {
    sockets: Sockets,
    /// By the name of the router's interface, which may have VLANs.
    carriers: HashMap<String, Vec<Carrier>>,
    /// Names of the interfaces by number.
    names: HashMap<u32, String>,
    /// Until when links that were deleted have no carrier, and whether they are to have one
    /// then.
    away: HashMap<String, (Instant, bool)>,
    routing: Arc<Mutex<Routing>>,
    stop: Arc<AtomicBool>,
    trouble: Arc<Mutex<Option<String>>>,
    follows_routes: bool,
    /// Whether the host's links are up, and have a carrier.
    links: HashMap<u32, (bool, bool)>,
    /// When all routes are asked for.
    due: Option<Instant>,
    /// How long that took last.
    took: Duration,
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
            took: Duration::ZERO,
        }
    }

    /// Takes over what there is.
    ///
    /// # Errors
    /// What the kernel says.
    pub(super) fn begin(&mut self, kernel: KernelRoutes, routes: bool) -> anyhow::Result<()> {
        self.follows_routes = routes;
        for event in self.sockets.link_questions.links()? {
            self.hear_of_link(event);
        }
        if routes {
            self.locked().follow(kernel).map_err(anyhow::Error::msg)?;
            self.ask()?;
        }
        Ok(())
    }

    /// Follows until it is to end.
    pub(super) fn run(mut self) {
        while !self.stop.load(Ordering::Relaxed) {
            let done = self.round();
            let failed = done.is_err();
            let trouble = done.err().map(|error| format!("the kernel's routes: {error}"));
            if failed || self.due.is_none() {
                *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
            }
            if failed {
                // All is asked for once more.
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
            self.hear_of_link(event);
        }
        if links.is_lost {
            for event in self.sockets.link_questions.links()? {
                self.hear_of_link(event);
            }
        }
        self.bring_back();
        self.hear_of_routes()?;
        if self.due.is_some_and(|due| due <= Instant::now()) {
            self.ask()?;
        }
        Ok(())
    }

    fn hear_of_routes(&mut self) -> anyhow::Result<()> {
        loop {
            let pending = self.sockets.events.pending()?;
            if !self.follows_routes {
                return Ok(());
            }
            if self.may_have_changed_more(&pending) {
                self.ask_soon();
            }
            if pending.events.is_empty() {
                return Ok(());
            }
            let heard = self.locked().hear(routes(&pending.events));
            if !heard.map_err(anyhow::Error::msg)? {
                self.ask_soon();
            }
            if pending.events.len() < MANY {
                return Ok(());
            }
            thread::sleep(GATHER);
        }
    }

    /// True when the kernel may have changed routes with this that it doesn't tell.
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
                // Next hops go with a link's carrier, and come back with it.
                Event::Link(LinkState { index, is_up, has_carrier, .. }) => {
                    let now = (*is_up, *has_carrier);
                    self.links.insert(*index, now) != Some(now)
                }
                _ => false,
            };
        }
        has
    }

    fn ask_soon(&mut self) {
        let delay = DELAY.max(3 * self.took);
        self.due = self.due.or(Some(Instant::now() + delay));
    }

    /// Asks for all routes.
    fn ask(&mut self) -> anyhow::Result<()> {
        self.due = None;
        let begin = Instant::now();
        // What was told before is older than the answer; what is told meanwhile is heard after.
        loop {
            let before = self.sockets.events.pending()?;
            self.may_have_changed_more(&before);
            if before.events.is_empty() {
                break;
            }
        }
        let all = self.sockets.questions.routes()?;
        let anew = self.locked().begin_anew(routes(&all));
        self.took = begin.elapsed();
        anew.map_err(anyhow::Error::msg)
    }

    /// An interface's carrier is its host device's.
    fn hear_of_link(&mut self, event: Event) {
        match event {
            Event::Link(LinkState { index, name, is_up, has_carrier }) => {
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

    /// Links that were deleted, and have been away for long enough.
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

/// A device that somebody has deleted has no carrier.
fn set_all(carriers: &[Carrier], is_there: bool) {
    for carrier in carriers {
        let _ = carrier.set(is_there);
    }
}

fn routes(events: &[Event]) -> impl Iterator<Item = &RouteEvent> {
    events.iter().filter_map(|event| match event {
        Event::Route(route) => Some(route),
        _ => None,
    })
}

//! Routes and next hops of a running router: from the set-up, from commands, and from the kernel.

use super::interfaces::{self, NamedInterface};
use super::tables::{SetUpRoutes, Source, Tables};
use fwdlab_netio::netlink::Event;
use fwdlab_netio::xsk::FlowTable;
use fwdlab_router::fib::{Address, Batch, NextHop, Prefix, V4, V6};
use fwdlab_router::path::{Gateway, Neighbours, Special};
use fwdlab_router::routes::kernel::{Changed, KernelRoutes, LeftOut};
use fwdlab_router::routes::{NextHops, Routes, Via, text};
use fwdlab_router::tables::Table;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Minimum number of new next hops before unused ones are looked for.
const SWEEP_MIN: usize = 1024;
/// Time after which no worker uses a removed next hop: many times the duration of a batch.
const GRACE: Duration = Duration::from_secs(1);

/// Tables, and everything needed to change them.
pub(super) struct Routing {
    pub(super) inet: Arc<dyn Table<V4>>,
    pub(super) inet6: Arc<dyn Table<V6>>,
    next_hops: NextHops,
    /// Number of next hops of the set-up, which keep their numbers.
    own: usize,
    /// Numbers that are no longer used, with the time since when.
    retired: Vec<(Instant, Vec<NextHop>)>,
    /// Number of next hops at which unused ones are looked for.
    sweep_at: usize,
    pub(super) neighbours: Neighbours,
    interfaces: Vec<NamedInterface>,
    written: Option<SetUpRoutes>,
    kernel: KernelRoutes,
    /// Flows that depend on the tables.
    pub(super) flows: Option<Arc<FlowTable>>,
}

impl Routing {
    pub(super) fn new(
        tables: Tables,
        neighbours: Neighbours,
        interfaces: Vec<NamedInterface>,
    ) -> Routing {
        let Tables { inet, inet6, mut next_hops, written, .. } = tables;
        // The neighbours know them.
        next_hops.take_new();
        Routing {
            inet,
            inet6,
            own: next_hops.len(),
            retired: Vec::new(),
            sweep_at: next_hops.len() + SWEEP_MIN,
            next_hops,
            neighbours,
            interfaces,
            written,
            kernel: KernelRoutes::default(),
            flows: None,
        }
    }

    /// Number of kernel routes in use.
    pub(super) fn kernel_routes(&self) -> usize {
        self.kernel.len()
    }

    /// Replaces the kernel's routes.
    pub(super) fn follow(&mut self, kernel: KernelRoutes) -> Result<(), String> {
        self.kernel = kernel;
        let all = self.kernel.all();
        self.settle(&all)
    }

    /// Known routes of the kernel.
    pub(super) fn kernel(&self) -> &KernelRoutes {
        &self.kernel
    }

    /// Applies changes of the kernel's routes. Returns false if they do not determine its present
    /// state.
    pub(super) fn hear(&mut self, events: &[Event]) -> Result<bool, String> {
        let mut changed = Changed::default();
        events.iter().for_each(|event| self.kernel.hear(event, &mut changed));
        self.settle(&changed)?;
        Ok(!changed.is_doubtful)
    }

    /// Starts again from all routes of the kernel.
    pub(super) fn replace_all(&mut self, all: &[Event]) -> Result<(), String> {
        let changed = self.kernel.replace_all(all);
        self.settle(&changed)
    }

    /// Changes a route: `add PREFIX via NEXT-HOP` (or any other route text), or `delete PREFIX`.
    ///
    /// # Errors
    /// Errors of the command.
    pub(super) fn change(&mut self, words: &str) -> Result<(), String> {
        let what = "expected `add PREFIX via NEXT-HOP` or `delete PREFIX`";
        let (order, rest) = words.trim().split_once(' ').ok_or(what)?;
        match order {
            "add" => self.add(&text::read(rest).map_err(|error| error.to_string())?),
            "delete" => self.delete(rest.trim()),
            _ => Err(what.into()),
        }
    }

    fn add(&mut self, added: &Routes) -> Result<(), String> {
        let mut changed = Changed::default();
        let mut batches = (Batch::new(), Batch::new());
        for (prefix, next_hop) in &added.inet {
            let number = self.number_of(added.next_hops.via(*next_hop))?;
            match &mut self.written {
                Some(written) => {
                    written.inet.insert(*prefix, Source::File(number));
                    changed.inet.push(*prefix);
                }
                None => drop(batches.0.insert(*prefix, number)),
            }
        }
        for (prefix, next_hop) in &added.inet6 {
            let number = self.number_of(added.next_hops.via(*next_hop))?;
            match &mut self.written {
                Some(written) => {
                    written.inet6.insert(*prefix, Source::File(number));
                    changed.inet6.push(*prefix);
                }
                None => drop(batches.1.insert(*prefix, number)),
            }
        }
        self.introduce()?;
        self.update(&batches);
        self.settle(&changed)
    }

    fn delete(&mut self, prefix: &str) -> Result<(), String> {
        let unknown = |is_of_kernel: bool| match is_of_kernel {
            true => format!("{prefix}: the route is the kernel's; delete it with `ip route del`"),
            false => format!("{prefix}: no such route"),
        };
        let prefix = match prefix {
            "default" => self.default_prefix()?,
            prefix => prefix,
        };
        let mut changed = Changed::default();
        let mut batches = (Batch::new(), Batch::new());
        if let Ok(prefix) = prefix.parse::<Prefix<V4>>() {
            match &mut self.written {
                Some(written) => {
                    let removed = written.inet.remove(&prefix);
                    removed.ok_or_else(|| unknown(self.kernel.inet(prefix).is_some()))?;
                    changed.inet.push(prefix);
                }
                None => drop(batches.0.remove(prefix)),
            }
        } else {
            let parsed = prefix.parse::<Prefix<V6>>();
            let parsed = parsed.map_err(|error| format!("`{prefix}`: {error}"))?;
            match &mut self.written {
                Some(written) => {
                    let removed = written.inet6.remove(&parsed);
                    removed.ok_or_else(|| unknown(self.kernel.inet6(parsed).is_some()))?;
                    changed.inet6.push(parsed);
                }
                None => drop(batches.1.remove(parsed)),
            }
        }
        self.update(&batches);
        self.settle(&changed)
    }

    /// The prefix of the default route. Refuses it if both families have one.
    fn default_prefix(&self) -> Result<&'static str, String> {
        let (inet, inet6) = ("0.0.0.0/0", "::/0");
        let has = self.written.as_ref().map(|written| {
            let (v4, v6) = (inet.parse::<Prefix<V4>>(), inet6.parse::<Prefix<V6>>());
            (
                v4.is_ok_and(|prefix| written.inet.contains_key(&prefix)),
                v6.is_ok_and(|prefix| written.inet6.contains_key(&prefix)),
            )
        });
        match has {
            Some((true, true)) => Err(format!("`default` is both {inet} and {inet6}: name one")),
            Some((false, true)) => Ok(inet6),
            _ => Ok(inet),
        }
    }

    /// The number of a next hop. Refuses a next hop that no interface leads to.
    fn number_of(&mut self, via: Option<&Via>) -> Result<NextHop, String> {
        let via = via.ok_or("a route without a next hop")?;
        self.check(via)?;
        self.next_hops.number(via.clone()).ok_or_else(|| "too many next hops".to_owned())
    }

    /// Refuses a next hop, or one of several, that no interface leads to.
    fn check(&self, via: &Via) -> Result<(), String> {
        match via {
            Via::Several(several) => several.iter().try_for_each(|(via, _)| self.check(via)),
            Via::Limited(inner, _) => self.check(inner),
            via if self.next_hops.get(via).is_some() => Ok(()),
            via => match interfaces::target(via, &self.next_hops, &self.interfaces)? {
                Some(_) => Ok(()),
                None => Err(format!("no interface's link has the next hop: `{via}`")),
            },
        }
    }

    /// Introduces new next hops to the neighbours: all but those whose interface does not exist.
    fn introduce(&mut self) -> Result<(), String> {
        let new = self.next_hops.take_new();
        if new.is_empty() {
            return Ok(());
        }
        let (mut all, mut missing) = (Vec::new(), Ok(()));
        for number in new {
            let Some(via) = self.next_hops.via(number) else { continue };
            match interfaces::target(via, &self.next_hops, &self.interfaces) {
                Ok(target) => all.extend(target.map(|target| (number, target))),
                Err(why) => missing = Err(why),
            }
        }
        self.neighbours.grow(all).map_err(|error| error.to_string())?;
        missing
    }

    /// Puts the present routes of the prefixes into the tables.
    fn settle(&mut self, changed: &Changed) -> Result<(), String> {
        self.give_back();
        let Routing { kernel, next_hops, written, .. } = self;
        let Some(written) = written else { return Ok(()) };
        let mut full = false;
        let mut number = |via: &Via| {
            let number = next_hops.number(via.clone());
            full |= number.is_none();
            number
        };
        let mut batches = (Batch::new(), Batch::new());
        for &prefix in &changed.inet {
            let source = written.inet.get(&prefix).copied();
            let now = chosen(source, kernel.inet(prefix), &mut number);
            put(&mut batches.0, prefix, now);
        }
        for &prefix in &changed.inet6 {
            let source = written.inet6.get(&prefix).copied();
            let now = chosen(source, kernel.inet6(prefix), &mut number);
            put(&mut batches.1, prefix, now);
        }
        // Neighbours know a next hop before a route leads to it.
        let introduced = self.introduce();
        self.update(&batches);
        introduced?;
        self.sweep();
        if full {
            return Err(
                "there are more next hops than there are numbers: restart the router".into()
            );
        }
        Ok(())
    }

    /// Retires next hops to which no route leads any more, whenever their number may have doubled.
    fn sweep(&mut self) {
        // Without kernel routes it is unknown which are in the tables.
        let Some(written) = self.written.as_ref().filter(|_| self.next_hops.len() > self.sweep_at)
        else {
            return;
        };
        let number = |source: &Source| match *source {
            Source::Link(number) | Source::File(number) => number,
        };
        let of_set_up = written.inet.values().chain(written.inet6.values()).map(number);
        let of_kernel = self.kernel.vias().filter_map(|via| self.next_hops.get(via));
        let in_use: Vec<NextHop> = of_set_up.chain(of_kernel).collect();
        let retired = self.next_hops.retire(self.own, in_use);
        self.neighbours.shrink(retired.iter().copied());
        self.retired.push((Instant::now(), retired));
        self.sweep_at = 2 * self.next_hops.len() + SWEEP_MIN;
    }

    /// Frees the numbers of next hops that were retired long enough ago.
    fn give_back(&mut self) {
        let is_free = |(since, _): &(Instant, Vec<NextHop>)| since.elapsed() > GRACE;
        let free = self.retired.iter().take_while(|retired| is_free(retired)).count();
        for (_, numbers) in self.retired.drain(..free) {
            self.next_hops.give_back(numbers);
        }
    }

    /// The router's interfaces.
    pub(super) fn interfaces(&self) -> &[NamedInterface] {
        &self.interfaces
    }

    /// Routes of the kernel that are not followed.
    pub(super) fn left_out(&self) -> impl ExactSizeIterator<Item = &LeftOut> {
        self.kernel.left_out()
    }

    /// The route of packets to an address.
    ///
    /// # Errors
    /// If a next hop names an interface that does not exist.
    pub(super) fn explain(&self, address: IpAddr) -> Result<Explained, String> {
        let mut next_hop = [None];
        let place = match (V4::from_ip(address), V6::from_ip(address)) {
            (Some(address), _) => {
                self.inet.lookup_batch(&[address], &mut next_hop);
                let written = self.written.as_ref().map(|written| &written.inet);
                place(address, written, |prefix| self.kernel.inet(prefix).is_some())
            }
            (None, Some(address)) => {
                self.inet6.lookup_batch(&[address], &mut next_hop);
                let written = self.written.as_ref().map(|written| &written.inet6);
                place(address, written, |prefix| self.kernel.inet6(prefix).is_some())
            }
            (None, None) => None,
        };
        let (prefix, source) =
            place.map_or((None, None), |(prefix, source)| (Some(prefix), Some(source.to_owned())));
        let via = next_hop[0].and_then(|number| self.next_hops.via(number));
        let several = match via {
            Some(Via::Several(several)) => several.clone(),
            Some(via) => vec![(via.clone(), 1)],
            None => Vec::new(),
        };
        let mut hops = Vec::new();
        for (via, weight) in several {
            let via = match via {
                Via::Limited(inner, _) => *inner,
                via => via,
            };
            let target = interfaces::target(&via, &self.next_hops, &self.interfaces)?;
            match target {
                Some(Ok(gateway)) => hops.push((Some(gateway), weight.into())),
                Some(Err(Special::Link(port))) => {
                    hops.push((Some(Gateway { port, address }), weight.into()));
                }
                Some(Err(_)) => {}
                None => hops.push((None, weight.into())),
            }
        }
        Ok(Explained { prefix, source, via: via.map(Via::to_string), hops })
    }

    fn update(&self, (inet, inet6): &(Batch<V4>, Batch<V6>)) {
        if !inet.is_empty() {
            self.inet.update(inet);
        }
        if !inet6.is_empty() {
            self.inet6.update(inet6);
        }
        if let Some(flows) = &self.flows {
            flows.invalidate();
        }
    }
}

/// The route of an address.
pub(super) struct Explained {
    /// Its prefix and its source, if known.
    pub(super) prefix: Option<String>,
    pub(super) source: Option<String>,
    /// `None` if there is no route.
    pub(super) via: Option<String>,
    /// Next hops; `None` for one on no link.
    pub(super) hops: Vec<(Option<Gateway>, u64)>,
}

/// The longest prefix of an address that has a route, and the source of that route.
fn place<A: Address>(
    address: A,
    written: Option<&HashMap<Prefix<A>, Source>>,
    is_kernels: impl Fn(Prefix<A>) -> bool,
) -> Option<(String, &'static str)> {
    let written = written?;
    (0..=A::BITS).rev().find_map(|length| {
        let prefix = Prefix::containing(address, length);
        let source = match written.get(&prefix) {
            Some(Source::File(_)) => "set-up",
            _ if is_kernels(prefix) => "kernel",
            Some(Source::Link(_)) => "link",
            None => return None,
        };
        Some((prefix.to_string(), source))
    })
}

/// The route in use for a prefix.
fn chosen(
    source: Option<Source>,
    kernel: Option<&Via>,
    number: &mut impl FnMut(&Via) -> Option<NextHop>,
) -> Option<NextHop> {
    match source {
        Some(Source::File(written)) => Some(written),
        Some(Source::Link(link)) => kernel.and_then(number).or(Some(link)),
        None => kernel.and_then(number),
    }
}

fn put<A: Address>(batch: &mut Batch<A>, prefix: Prefix<A>, next_hop: Option<NextHop>) {
    match next_hop {
        Some(next_hop) => batch.insert(prefix, next_hop),
        None => batch.remove(prefix),
    };
}

#[cfg(test)]
mod tests;

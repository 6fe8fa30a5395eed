//! Routes and next hops of a running router: from the set-up, from commands, and from the kernel.

use super::interfaces::{self, NamedInterface};
use super::tables::{SetUpRoutes, Source, Tables};
use fwdlab_netio::netlink::RouteEvent;
use fwdlab_netio::xsk::FlowTable;
use fwdlab_router::fib::{Address, Batch, NextHop, Prefix, V4, V6};
use fwdlab_router::path::Neighbours;
use fwdlab_router::routes::kernel::{Changed, KernelRoutes};
use fwdlab_router::routes::{NextHops, Routes, Via, text};
use fwdlab_router::tables::Table;
use std::sync::Arc;

/// Tables, and everything needed to change them.
pub(super) struct Routing {
    pub(super) inet: Arc<dyn Table<V4>>,
    pub(super) inet6: Arc<dyn Table<V6>>,
    next_hops: NextHops,
    /// Number of next hops that the neighbours know.
    known: usize,
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
        let Tables { inet, inet6, next_hops, written, .. } = tables;
        let (known, kernel) = (next_hops.vias().len(), KernelRoutes::default());
        Routing {
            inet,
            inet6,
            next_hops,
            known,
            neighbours,
            interfaces,
            written,
            kernel,
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
    pub(super) fn hear<'a>(
        &mut self,
        events: impl Iterator<Item = &'a RouteEvent>,
    ) -> Result<bool, String> {
        let mut changed = Changed::default();
        events.for_each(|event| self.kernel.hear(event, &mut changed));
        self.settle(&changed)?;
        Ok(!changed.is_doubtful)
    }

    /// Starts again from all routes of the kernel.
    pub(super) fn begin_anew<'a>(
        &mut self,
        all: impl Iterator<Item = &'a RouteEvent>,
    ) -> Result<(), String> {
        let changed = self.kernel.begin_anew(all);
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
        let mut changed = Changed::default();
        let mut batches = (Batch::new(), Batch::new());
        if let Ok(prefix) = prefix.parse::<Prefix<V4>>() {
            match &mut self.written {
                Some(written) => {
                    written.inet.remove(&prefix);
                    changed.inet.push(prefix);
                }
                None => drop(batches.0.remove(prefix)),
            }
        } else {
            let parsed = prefix.parse::<Prefix<V6>>();
            let parsed = parsed.map_err(|error| format!("`{prefix}`: {error}"))?;
            match &mut self.written {
                Some(written) => {
                    written.inet6.remove(&parsed);
                    changed.inet6.push(parsed);
                }
                None => drop(batches.1.remove(parsed)),
            }
        }
        self.update(&batches);
        self.settle(&changed)
    }

    /// The number of a next hop. Refuses a next hop that no interface leads to.
    fn number_of(&mut self, via: Option<&Via>) -> Result<NextHop, String> {
        let via = via.ok_or("a route without a next hop")?;
        if self.next_hops.get(via).is_none() {
            let target = interfaces::target(via, &self.next_hops, &self.interfaces);
            if target?.is_none() {
                return Err(format!("no interface's link has the next hop: `{via}`"));
            }
        }
        self.next_hops.number(via.clone()).ok_or_else(|| "too many next hops".to_owned())
    }

    /// Introduces new next hops to the neighbours.
    fn introduce(&mut self) -> Result<(), String> {
        let new = self.next_hops.vias().get(self.known..).unwrap_or_default();
        if new.is_empty() {
            return Ok(());
        }
        let mut all = Vec::new();
        for via in new {
            let target = interfaces::target(via, &self.next_hops, &self.interfaces)?;
            if let (Some(target), Some(number)) = (target, self.next_hops.get(via)) {
                all.push((number, target));
            }
        }
        self.known = self.next_hops.vias().len();
        self.neighbours.grow(all).map_err(|error| error.to_string())
    }

    /// Puts the present routes of the prefixes into the tables.
    fn settle(&mut self, changed: &Changed) -> Result<(), String> {
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
        if full {
            return Err(
                "there are more next hops than there are numbers: restart the router".into()
            );
        }
        Ok(())
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
mod tests {
    use super::*;
    use fwdlab_model::router::{HostSetup, InterfaceSetup, RouterSetup};
    use fwdlab_netio::netlink::{Hop, RouteKind};

    fn routing(host: bool) -> Routing {
        let setup = RouterSetup {
            routes: vec!["198.18.0.0/16 via 192.0.2.1".into()],
            interfaces: vec![InterfaceSetup {
                name: "r0".into(),
                mac: Some("02:00:00:00:00:01".into()),
                addresses: vec!["192.0.2.254/24".into()],
                ..InterfaceSetup::default()
            }],
            circuits: vec!["x".into()],
            host: host.then(HostSetup::default),
            ..RouterSetup::default()
        };
        super::super::prepare(&setup).expect("a router").routing
    }

    fn via(routing: &Routing, address: &str) -> String {
        let address = V4::from_ip(address.parse().expect("one")).expect("IPv4");
        let mut hops = [None];
        routing.inet.lookup_batch(&[address], &mut hops);
        let via = hops[0].and_then(|hop| routing.next_hops.via(hop));
        via.map(Via::to_string).unwrap_or_default()
    }

    #[test]
    fn change_adds_and_deletes_routes() {
        for host in [false, true] {
            let mut routing = routing(host);
            routing.change("add 198.19.1.0/24 via 192.0.2.9").expect("a next hop on the link");
            routing.change("delete 198.18.0.0/16").expect("a prefix");
            assert_eq!(via(&routing, "198.19.1.1"), "via 192.0.2.9");
            assert_eq!(via(&routing, "198.18.1.1"), "");
            let last = routing.next_hops.get(&Via::Address("192.0.2.9".parse().expect("one")));
            assert!(last.is_some_and(|last| routing.neighbours.gateway(last).is_some()));
            for wrong in ["add 198.18.0.0/16", "add x via 192.0.2.1", "add 10.0.0.0/8 via 10.9.9.9"]
            {
                assert!(routing.change(wrong).is_err(), "{wrong}");
            }
        }
    }

    #[test]
    fn set_up_routes_precede_kernel_routes_and_those_precede_links() {
        let mut routing = routing(true);
        let kernel = KernelRoutes::new(254, [(7, "r0".to_owned())].into_iter().collect());
        routing.follow(kernel).expect("no routes yet");
        let event = |prefix: &str, length, gateway: &str| RouteEvent {
            is_gone: false,
            replaces: false,
            appends: false,
            table: 254,
            address: prefix.parse().expect("one"),
            length,
            metric: 20,
            kind: RouteKind::Way,
            hops: vec![Hop { gateway: gateway.parse().ok(), interface: 7, weight: 1 }],
        };
        let events = [
            event("198.18.0.0", 16, "192.0.2.7"),
            event("10.0.0.0", 8, "192.0.2.7"),
            event("192.0.2.0", 24, "192.0.2.8"),
        ];
        routing.hear(events.iter()).expect("routes");
        assert_eq!(via(&routing, "198.18.1.1"), "via 192.0.2.1");
        assert_eq!(via(&routing, "10.1.1.1"), "via 192.0.2.7%r0");
        assert_eq!(via(&routing, "192.0.2.66"), "via 192.0.2.8%r0");
        routing.change("delete 198.18.0.0/16").expect("a prefix");
        assert_eq!(via(&routing, "198.18.1.1"), "via 192.0.2.7%r0");
        routing.begin_anew(events[1..2].iter()).expect("routes");
        assert_eq!(via(&routing, "198.18.1.1"), "");
        assert_eq!(via(&routing, "192.0.2.66"), "dev r0");
        assert_eq!(via(&routing, "10.1.1.1"), "via 192.0.2.7%r0");
    }
}

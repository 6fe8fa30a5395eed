//! Loads routes from all sources into tables of the configured algorithm.

use super::{interfaces, mistake};
use anyhow::Context;
use fwdlab_model::router::{RouterSetup, Synthesised};
use fwdlab_router::fib::{Address, Batch, NextHop, Prefix, V4, V6};
use fwdlab_router::routes::synthesis::{ROUTES_MAX, Synthesis, synthesise};
use fwdlab_router::routes::{NextHops, Routes, Via, mrt, text};
use fwdlab_router::tables::{self, Built, Table};
use std::fs;
use std::net::IpAddr;
use std::sync::Arc;

/// Tables of both families.
pub(super) struct Tables {
    pub(super) inet: Arc<dyn Table<V4>>,
    pub(super) inet6: Arc<dyn Table<V6>>,
    pub(super) next_hops: NextHops,
    /// The tables that were built, for the statistics.
    pub(super) facts: Vec<(String, String)>,
}

impl Tables {
    /// Changes a route: `add PREFIX via NEXT-HOP`, where other routes have that next hop
    /// already, or `delete PREFIX`.
    ///
    /// # Errors
    /// What is wrong with the words.
    pub(super) fn change(&self, words: &str) -> Result<(), String> {
        let what = "say `add PREFIX via NEXT-HOP` or `delete PREFIX`";
        let (order, rest) = words.trim().split_once(' ').ok_or(what)?;
        if order == "add" {
            let added = text::read(rest).map_err(|error| error.to_string())?;
            let number = |next_hop: &NextHop| {
                let via = added.next_hops.via(*next_hop);
                let known = via.and_then(|via| self.next_hops.get(via));
                known.ok_or_else(|| format!("no route leads there yet: `{rest}`"))
            };
            for (prefix, next_hop) in &added.inet {
                self.inet.update(&change_of(*prefix, Some(number(next_hop)?)));
            }
            for (prefix, next_hop) in &added.inet6 {
                self.inet6.update(&change_of(*prefix, Some(number(next_hop)?)));
            }
            return Ok(());
        }
        let (prefix, next_hop) = match order {
            "delete" => (rest.trim(), None),
            _ => return Err(what.into()),
        };
        if let Ok(prefix) = prefix.parse::<Prefix<V4>>() {
            self.inet.update(&change_of(prefix, next_hop));
        } else {
            let prefix = prefix.parse::<Prefix<V6>>();
            let prefix = prefix.map_err(|error| format!("`{rest}`: {error}"))?;
            self.inet6.update(&change_of(prefix, next_hop));
        }
        Ok(())
    }
}

fn change_of<A: Address>(prefix: Prefix<A>, next_hop: Option<NextHop>) -> Batch<A> {
    let mut batch = Batch::new();
    match next_hop {
        Some(next_hop) => batch.insert(prefix, next_hop),
        None => batch.remove(prefix),
    };
    batch
}

/// Reads, makes and compiles all routes.
///
/// # Errors
/// What is wrong with routes or their file.
pub(super) fn build(setup: &RouterSetup) -> anyhow::Result<Tables> {
    let mut all = Routes::default();
    // Later ones replace earlier ones of the same prefix: what was written counts most.
    add(&mut all, connected(setup)?)?;
    if let Some(wanted) = &setup.synthesised {
        let made = synthesised(wanted)?;
        add(&mut all, made)?;
    }
    if let Some(file) = &setup.routes_file {
        add(&mut all, from_file(file)?)?;
    }
    let written = text::read(&setup.routes.join("\n"));
    add(&mut all, written.map_err(|error| mistake(format!("routes: {error}")))?)?;
    let (inet, inet6) = (all.inet.into_iter().collect(), all.inet6.into_iter().collect());
    let mut facts = Vec::new();
    let inet = noted(tables::inet(setup.fib, setup.locking, &inet), "inet", &mut facts);
    let inet6 = noted(tables::inet6(setup.fib, setup.locking, &inet6), "inet6", &mut facts);
    Ok(Tables { inet, inet6, next_hops: all.next_hops, facts })
}

/// Routes to the hosts of each interface's link: those that its addresses have.
fn connected(setup: &RouterSetup) -> anyhow::Result<Routes> {
    let mut routes = Routes::default();
    for written in &setup.interfaces {
        let via = Via::Link(written.name.clone());
        let fault = |what: String| mistake(format!("interface {}: {what}", written.name));
        for text in &written.addresses {
            let (address, length) = interfaces::address(text).map_err(fault)?;
            let number = routes.next_hops.number(via.clone());
            let next_hop = number.context("more next hops than there are numbers")?;
            if let Some(own) = V4::from_ip(address)
                && length < V4::BITS
            {
                routes.inet.push((Prefix::containing(own, length), next_hop));
            }
            // Packets to link-local addresses don't leave their link.
            if let Some(own) = V6::from_ip(address)
                && length < V6::BITS
                && own.0 >> 118 != 0xfe80 >> 6
            {
                routes.inet6.push((Prefix::containing(own, length), next_hop));
            }
        }
    }
    Ok(routes)
}

/// The table, with what the statistics say of it.
fn noted<A>(built: Built<A>, family: &str, facts: &mut Vec<(String, String)>) -> Arc<dyn Table<A>> {
    if let Some(algorithm) = built.chosen {
        facts.push((format!("fib {family}"), format!("auto: {algorithm}")));
    }
    facts.push((format!("routes {family}"), built.routes.to_string()));
    facts.push((format!("fib {family} bytes"), built.bytes.to_string()));
    built.table
}

fn add(all: &mut Routes, more: Routes) -> anyhow::Result<()> {
    let numbers = more.next_hops.vias().iter().map(|via| all.next_hops.number(via.clone()));
    let numbers: Option<Vec<NextHop>> = numbers.collect();
    let numbers = numbers.context("more next hops than there are numbers")?;
    let of = |next_hop: NextHop| numbers[next_hop.number() as usize];
    all.inet.extend(more.inet.into_iter().map(|(prefix, next_hop)| (prefix, of(next_hop))));
    all.inet6.extend(more.inet6.into_iter().map(|(prefix, next_hop)| (prefix, of(next_hop))));
    Ok(())
}

/// Text or an MRT dump: a dump begins with a time, whose first byte is no text.
fn from_file(file: &str) -> anyhow::Result<Routes> {
    let bytes = fs::read(file).map_err(|error| mistake(format!("routes file {file}: {error}")))?;
    let dump = mrt::read(&bytes);
    if let Ok(dump) = dump
        && !bytes.is_empty()
    {
        return Ok(dump.routes);
    }
    let fault = |what: String| mistake(format!("routes file {file}: {what}"));
    match std::str::from_utf8(&bytes) {
        Ok(written) => text::read(written).map_err(|error| fault(error.to_string())),
        Err(_) => match mrt::read(&bytes) {
            Ok(dump) => Ok(dump.routes),
            Err(error) => Err(fault(error.to_string())),
        },
    }
}

/// Made-up routes, none of them for addresses of the benchmark.
fn synthesised(wanted: &Synthesised) -> anyhow::Result<Routes> {
    let via = wanted.via.iter().map(|address| {
        address
            .parse::<IpAddr>()
            .map_err(|_| mistake(format!("synthesised.via: `{address}` is no address")))
    });
    let via: Vec<IpAddr> = via.collect::<Result<_, _>>()?;
    let (inet, inet6) = (wanted.inet as usize, wanted.inet6 as usize);
    if inet.max(inet6) > ROUTES_MAX {
        return Err(mistake(format!("synthesised: up to {ROUTES_MAX} routes of a family")));
    }
    let hops = u16::try_from(via.len()).ok().filter(|&count| count > 0);
    let next_hops =
        hops.ok_or_else(|| mistake("synthesised.via: name 1 to 65535 next hops".into()))?;
    // Some more, for those that are left out.
    let more =
        |count: usize| if count == 0 { 0 } else { (count + count / 64 + 64).min(ROUTES_MAX) };
    let made = synthesise(&Synthesis {
        inet: more(inet),
        inet6: more(inet6),
        next_hops,
        seed: wanted.seed,
    });
    let benchmark4: Prefix<V4> = "198.18.0.0/15".parse().context("a prefix")?;
    let benchmark6: Prefix<V6> = "2001:2::/48".parse().context("a prefix")?;
    let mut routes = Routes::default();
    let numbers: Option<Vec<NextHop>> =
        via.iter().map(|&address| routes.next_hops.number(address)).collect();
    let numbers = numbers.context("more next hops than there are numbers")?;
    // The generator's next hops are numbered by family, one after the other.
    let of = |next_hop: NextHop| numbers[next_hop.number() as usize % numbers.len()];
    let apart4 = |prefix: &Prefix<V4>| !overlap(*prefix, benchmark4);
    let apart6 = |prefix: &Prefix<V6>| !overlap(*prefix, benchmark6);
    let made4 = made.inet.into_iter().filter(|(prefix, _)| apart4(prefix)).take(inet);
    routes.inet = made4.map(|(prefix, hop)| (prefix, of(hop))).collect();
    let made6 = made.inet6.into_iter().filter(|(prefix, _)| apart6(prefix)).take(inet6);
    routes.inet6 = made6.map(|(prefix, hop)| (prefix, of(hop))).collect();
    if (routes.inet.len(), routes.inet6.len()) != (inet, inet6) {
        return Err(mistake(
            "synthesised: so many routes don't fit beside the benchmark's addresses".into(),
        ));
    }
    Ok(routes)
}

/// True when one lies within the other.
fn overlap<A: Address>(a: Prefix<A>, b: Prefix<A>) -> bool {
    let length = a.length().min(b.length());
    a.address().masked(length) == b.address().masked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_routes_leave_the_benchmark_alone_and_are_as_many_as_asked_for() {
        let via = vec!["198.19.0.2".into(), "2001:2:0:8000::2".into()];
        let wanted = Synthesised { inet: 30_000, inet6: 5_000, via, seed: 3 };
        let routes = synthesised(&wanted).expect("routes");
        assert_eq!((routes.inet.len(), routes.inet6.len()), (30_000, 5_000));
        let benchmark: Prefix<V4> = "198.18.0.0/15".parse().expect("a prefix");
        assert!(routes.inet.iter().all(|&(prefix, _)| !overlap(prefix, benchmark)));
        assert!(routes.inet.iter().all(|(_, hop)| hop.number() < 2));
    }

    #[test]
    fn written_routes_replace_made_up_ones() {
        let setup = RouterSetup {
            synthesised: Some(Synthesised {
                inet: 1000,
                inet6: 0,
                via: vec!["192.0.2.1".into()],
                seed: 1,
            }),
            routes: vec![
                "198.18.0.0/16 via 192.0.2.1".into(),
                "198.19.0.0/16 via 192.0.2.9".into(),
            ],
            ..RouterSetup::default()
        };
        let tables = build(&setup).expect("tables");
        let lookup = |tables: &Tables| {
            let mut hops = [None; 3];
            let addresses = ["198.18.1.1", "198.19.1.1", "0.0.0.1"]
                .map(|a| V4::from_ip(a.parse().expect("one")).expect("IPv4"));
            tables.inet.lookup_batch(&addresses, &mut hops);
            hops.map(|hop| hop.map(NextHop::number))
        };
        assert_eq!(lookup(&tables), [Some(0), Some(1), None]);
        tables.change("add 198.19.1.0/24 via 192.0.2.1").expect("a known next hop");
        tables.change("delete 198.18.0.0/16").expect("a prefix");
        let after = lookup(&tables);
        assert_eq!(after, [None, Some(0), None]);
        for wrong in ["add 198.18.0.0/16", "add x via 192.0.2.1", "add 10.0.0.0/8 via 192.0.2.7"] {
            assert!(tables.change(wrong).is_err(), "{wrong}");
        }
        assert!(
            tables.facts.contains(&("routes inet".into(), "1002".into())),
            "{:?}",
            tables.facts
        );
    }

    #[test]
    fn faults_are_told_with_their_place() {
        let setup = RouterSetup { routes: vec!["x via y".into()], ..RouterSetup::default() };
        let error = build(&setup).err().expect("no routes").to_string();
        assert!(error.contains("routes: line 1"), "{error}");
        let file = Some("/nonexistent/routes".into());
        let error = build(&RouterSetup { routes_file: file, ..RouterSetup::default() });
        assert!(error.err().expect("no file").to_string().contains("/nonexistent/routes"));
    }
}

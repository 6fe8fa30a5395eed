//! Loads routes from all sources into tables of the configured algorithm.

use super::{interfaces, mistake};
use anyhow::Context;
use fwdlab_model::router::{FileWarning, RouterSetup, Synthesised};
use fwdlab_router::fib::{Address, NextHop, Prefix, V4, V6};
use fwdlab_router::routes::synthesis::{ROUTES_MAX, Synthesis, synthesise};
use fwdlab_router::routes::{NextHops, Routes, Via, mrt, text};
use fwdlab_router::tables::{self, Built, Table};
use std::collections::HashMap;
use std::fs;
use std::net::IpAddr;
use std::sync::Arc;

/// Tables of both families.
pub(super) struct Tables {
    pub(super) inet: Arc<dyn Table<V4>>,
    pub(super) inet6: Arc<dyn Table<V6>>,
    pub(super) next_hops: NextHops,
    /// The routes in them, if kernel routes come and go as well.
    pub(super) written: Option<SetUpRoutes>,
    /// Facts about the built tables, for the statistics.
    pub(super) facts: Vec<(String, String)>,
    /// Parts of the routes file that are left out.
    pub(super) warnings: Vec<FileWarning>,
}

/// Routes that are not the kernel's.
#[derive(Default)]
pub(super) struct SetUpRoutes {
    pub(super) inet: HashMap<Prefix<V4>, Source>,
    pub(super) inet6: HashMap<Prefix<V6>, Source>,
}

/// Source of a route, with its next hop.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// An interface's link: the kernel's routes take precedence.
    Link(NextHop),
    /// A route of the set-up, which takes precedence over the kernel's.
    File(NextHop),
}

impl SetUpRoutes {
    fn of(routes: &Routes, links: (usize, usize)) -> SetUpRoutes {
        fn map<A: Address>(
            routes: &[(Prefix<A>, NextHop)],
            links: usize,
        ) -> HashMap<Prefix<A>, Source> {
            let source =
                |at: usize, hop| if at < links { Source::Link(hop) } else { Source::File(hop) };
            let all = routes.iter().enumerate();
            all.map(|(at, &(prefix, hop))| (prefix, source(at, hop))).collect()
        }
        SetUpRoutes { inet: map(&routes.inet, links.0), inet6: map(&routes.inet6, links.1) }
    }
}

/// Reads, generates and compiles all routes.
///
/// # Errors
/// Errors of routes or of their file.
pub(super) fn build(setup: &RouterSetup) -> anyhow::Result<Tables> {
    let (mut all, mut warnings) = (Routes::default(), Vec::new());
    // Later routes replace earlier ones of the same prefix, so routes of the set-up take
    // precedence.
    add(&mut all, connected(setup)?)?;
    let links = (all.inet.len(), all.inet6.len());
    if let Some(request) = &setup.synthesised {
        let made = synthesised(request)?;
        add(&mut all, made)?;
    }
    if let Some(file) = &setup.routes_file {
        let (routes, remark) = from_file(file)?;
        add(&mut all, routes)?;
        let of_file = |what| FileWarning { file: file.clone(), line: None, what };
        warnings.extend(remark.map(of_file));
    }
    let written = text::read(&setup.routes.join("\n"));
    add(&mut all, written.map_err(|error| mistake(format!("routes: {error}")))?)?;
    let follows = setup.host.as_ref().is_some_and(|host| host.routes);
    let written = follows.then(|| SetUpRoutes::of(&all, links));
    let (inet, inet6) = (all.inet.into_iter().collect(), all.inet6.into_iter().collect());
    let mut facts = Vec::new();
    let inet = noted(tables::inet(setup.fib, setup.locking, &inet), "inet", &mut facts);
    let inet6 = noted(tables::inet6(setup.fib, setup.locking, &inet6), "inet6", &mut facts);
    Ok(Tables { inet, inet6, next_hops: all.next_hops, written, facts, warnings })
}

/// Routes to the hosts of each interface's link, by the prefixes of its addresses.
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
            // Packets to link-local addresses do not leave their link.
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

/// The table; its facts are added for the statistics.
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

/// Reads text or an MRT dump: a dump begins with a time, whose first byte is not text. Also returns
/// the counts of what is left out.
fn from_file(file: &str) -> anyhow::Result<(Routes, Option<String>)> {
    let bytes = fs::read(file).map_err(|error| mistake(format!("routes file {file}: {error}")))?;
    let fault = |what: String| mistake(format!("routes file {file}: {what}"));
    // Windows writes a byte order mark.
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    if is_utf16(text) {
        return Err(fault(UTF16.into()));
    }
    if let Some(program) = mrt::packed_by(&bytes) {
        return Err(fault(format!("the file is packed\n  next step: unpack it with `{program}`")));
    }
    let dump = mrt::read(&bytes);
    match (dump, std::str::from_utf8(text)) {
        (Ok(dump), _) if !bytes.is_empty() => {
            dump.check().map_err(|error| fault(error.to_string()))?;
            let remark = dump.remark();
            Ok((dump.routes, remark))
        }
        (_, Ok(written)) => {
            let routes = text::read(written).map_err(|error| fault(error.to_string()))?;
            let is_empty = routes.inet.is_empty() && routes.inet6.is_empty();
            Ok((routes, is_empty.then(|| "the file contains no routes".to_owned())))
        }
        (Err(error), Err(_)) => Err(fault(error.to_string())),
        (Ok(dump), Err(_)) => Ok((dump.routes, None)),
    }
}

const UTF16: &str = "UTF-16 text, where UTF-8 is needed\n  next step: iconv -f UTF-16 -t UTF-8";

/// True for a byte order mark of UTF-16, or characters of which every other byte is 0.
fn is_utf16(bytes: &[u8]) -> bool {
    let marked = matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
    let begin = &bytes[..bytes.len().min(32) / 2 * 2];
    let alternates = |zero: usize| {
        begin.len() >= 8 && begin.iter().zip(0..).all(|(&byte, at)| (byte == 0) == (at % 2 == zero))
    };
    marked || alternates(0) || alternates(1)
}

/// Generated routes, none of them for addresses of the benchmark.
fn synthesised(request: &Synthesised) -> anyhow::Result<Routes> {
    let via = request.via.iter().map(|address| {
        address
            .parse::<IpAddr>()
            .map_err(|_| mistake(format!("synthesised.via: `{address}` is no address")))
    });
    let via: Vec<IpAddr> = via.collect::<Result<_, _>>()?;
    let (inet, inet6) = (request.inet as usize, request.inet6 as usize);
    if inet.max(inet6) > ROUTES_MAX {
        return Err(mistake(format!("synthesised: up to {ROUTES_MAX} routes of a family")));
    }
    let hops = u16::try_from(via.len()).ok().filter(|&count| count > 0);
    let next_hops =
        hops.ok_or_else(|| mistake("synthesised.via: name 1 to 65535 next hops".into()))?;
    // Some more, to replace those that are left out.
    let more =
        |count: usize| if count == 0 { 0 } else { (count + count / 64 + 64).min(ROUTES_MAX) };
    let made = synthesise(&Synthesis {
        inet: more(inet),
        inet6: more(inet6),
        next_hops,
        seed: request.seed,
    });
    let benchmark4: Prefix<V4> = "198.18.0.0/15".parse().context("a prefix")?;
    let benchmark6: Prefix<V6> = "2001:2::/48".parse().context("a prefix")?;
    let mut routes = Routes::default();
    let numbers: Option<Vec<NextHop>> =
        via.iter().map(|&address| routes.next_hops.number(address)).collect();
    let numbers = numbers.context("more next hops than there are numbers")?;
    // The generator numbers next hops consecutively by family.
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

/// True if one prefix contains the other.
fn overlap<A: Address>(a: Prefix<A>, b: Prefix<A>) -> bool {
    let length = a.length().min(b.length());
    a.address().masked(length) == b.address().masked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synthesised_routes_avoid_the_benchmark_and_match_the_count() {
        let via = vec!["198.19.0.2".into(), "2001:2:0:8000::2".into()];
        let request = Synthesised { inet: 30_000, inet6: 5_000, via, seed: 3 };
        let routes = synthesised(&request).expect("routes");
        assert_eq!((routes.inet.len(), routes.inet6.len()), (30_000, 5_000));
        let benchmark: Prefix<V4> = "198.18.0.0/15".parse().expect("a prefix");
        assert!(routes.inet.iter().all(|&(prefix, _)| !overlap(prefix, benchmark)));
        assert!(routes.inet.iter().all(|(_, hop)| hop.number() < 2));
    }

    #[test]
    fn routes_of_the_set_up_replace_synthesised_routes() {
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
        assert!(
            tables.facts.contains(&("routes inet".into(), "1002".into())),
            "{:?}",
            tables.facts
        );
    }

    #[test]
    fn files_of_other_encodings_are_read_or_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("routes").to_string_lossy().into_owned();
        let read = |bytes: &[u8]| {
            fs::write(&path, bytes).expect("a file");
            from_file(&path).map_err(|error| error.to_string().replace(&path, "FILE"))
        };
        let text = "10.0.0.0/8 via 192.0.2.7\r\n";
        let (routes, remark) = read(format!("\u{feff}{text}").as_bytes()).expect("a route");
        assert_eq!((text::write(&routes).as_str(), remark), ("10.0.0.0/8 via 192.0.2.7\n", None));
        let units: Vec<u16> = text.encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        for bytes in [&little, &big, &[&[0xff, 0xfe], &little[..]].concat()] {
            let error = read(bytes).expect_err("no route");
            assert!(error.starts_with("routes file FILE: UTF-16 text"), "{error}");
            assert!(error.contains("next step: iconv"), "{error}");
        }
        let packed = read(&[0x28, 0xb5, 0x2f, 0xfd, 0, 1]).expect_err("packed");
        assert_eq!(
            packed,
            "routes file FILE: the file is packed\n  next step: unpack it with `unzstd`"
        );
        for empty in ["", "# none yet\n"] {
            let (_, remark) = read(empty.as_bytes()).expect("no route");
            assert_eq!(remark.as_deref(), Some("the file contains no routes"));
        }
    }

    #[test]
    fn dumps_report_what_is_left_out_or_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rib").to_string_lossy().into_owned();
        let record = |kind: u16, subtype: u16, body: &[u8]| {
            let head = [0x6900_0000_u32.to_be_bytes(), [0; 4], (body.len() as u32).to_be_bytes()];
            let mut record = head.concat();
            record[4..6].copy_from_slice(&kind.to_be_bytes());
            record[6..8].copy_from_slice(&subtype.to_be_bytes());
            record.extend(body);
            record
        };
        let via = [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 7, 0x40, 3, 4, 192, 0, 2, 7];
        let route = |n: u8| record(13, 8, &[&[0, 0, 0, n, 16, 10, n, 0, 1], &via[..]].concat());
        let setup = |file: &[Vec<u8>]| {
            fs::write(&path, file.concat()).expect("a file");
            RouterSetup { routes_file: Some(path.clone()), ..RouterSetup::default() }
        };
        let tables = build(&setup(&[route(1), route(2), record(16, 4, &[0; 8])])).expect("tables");
        assert_eq!(
            tables.facts.iter().find(|(name, _)| name == "routes inet").expect("one").1,
            "2"
        );
        let what = "1 of 3 records left out: 1 x BGP4MP message (16/4)".to_owned();
        assert_eq!(tables.warnings, [FileWarning { file: path.clone(), line: None, what }]);
        let error = build(&setup(&[record(16, 4, &[0; 8])])).err().expect("no table").to_string();
        let expected = format!("routes file {path}: byte 0: 1 of 1 records left out");
        assert!(error.starts_with(&expected), "{error}");
    }

    #[test]
    fn route_faults_are_reported_with_their_place() {
        let setup = RouterSetup { routes: vec!["x via y".into()], ..RouterSetup::default() };
        let error = build(&setup).err().expect("no routes").to_string();
        assert!(error.contains("routes: line 1"), "{error}");
        let file = Some("/nonexistent/routes".into());
        let error = build(&RouterSetup { routes_file: file, ..RouterSetup::default() });
        assert!(error.err().expect("no file").to_string().contains("/nonexistent/routes"));
    }
}

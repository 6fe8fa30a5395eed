//! The readers of FreeBSD's files and outputs never panic. Files are preserved to the byte; a value
//! set in a file reads back and leaves other values unchanged.

#![no_main]

use fwdlab_bench::dut::freebsd::apply::{Interface, permanent, routing_table};
use fwdlab_bench::dut::freebsd::rc::{Document, Format};
use fwdlab_bench::dut::freebsd::system::{Boot, boot_of};
use fwdlab_bench::dut::freebsd::{counters, interrupts, plan, queues};
use fwdlab_bench::links::Links;
use libfuzzer_sys::fuzz_target;
use std::net::IpAddr;

fuzz_target!(|text: &str| {
    for format in [Format::Rc, Format::Loader, Format::Sysctl] {
        check_file(format, text);
    }
    for path in ["/etc/rc.conf", "/boot/loader.conf", "/etc/sysctl.conf", "/etc/pf.conf"] {
        let _ = plan::at_boot(path, Some(text), &Links::of_namespaces());
    }
    check_outputs(text);
});

/// Uses the first line as a value and the rest as the file to set it in.
fn check_file(format: Format, text: &str) {
    let (value, text) = text.split_once('\n').unwrap_or(("", text));
    let document = Document::parse(format, text);
    assert_eq!(document.text(), text);
    let _ = document.other_lines().count();
    for (name, _) in document.assignments() {
        assert!(format.is_name(name));
    }
    // An unterminated quote or compound command swallows the text after it.
    let more = Document::parse(format, &format!("{text}\nlast=\"1\"\n"));
    let others = more.assignments().filter(|(name, _)| *name != "last");
    let is_whole = more.get("last") == Some("1") && others.eq(document.assignments());
    if !format.is_value(value) || !is_whole {
        return;
    }
    for name in ["a", "new"] {
        let mut changed = document.clone();
        changed.set(name, value);
        let again = Document::parse(format, &changed.text());
        assert_eq!(again.get(name), Some(value), "{:?}", changed.text());
        let others = |document: &Document| -> Vec<(String, String)> {
            let others = document.assignments().filter(|(other, _)| *other != name);
            others.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        assert_eq!(others(&again), others(&document), "{:?}", changed.text());
        changed.set(name, value);
        assert_eq!(changed.text(), again.text(), "once is enough");
    }
}

fn check_outputs(text: &str) {
    let lines = text.lines().count();
    let is_prefix =
        |(address, length): &(IpAddr, u8)| *length <= if address.is_ipv4() { 32 } else { 128 };
    assert!(Interface::parse(text).addresses.iter().all(is_prefix));
    assert!(routing_table(text).keys().all(is_prefix));
    assert!(permanent(text).len() <= lines && queues::counted(text) <= lines);
    for (_, name, _) in interrupts::parse(text) {
        let _ = (interrupts::plain_queue(&name), interrupts::chelsio_queue(&name, "0"));
    }
    assert!(counters::interface_counters("cxl0", text).len() <= 6);
    let _ = (counters::json_counters("ip", text), counters::text_counters("ip", text));
    if let Some(cpus) = counters::cpu_times(text) {
        assert_eq!(cpus.len() * 5, text.split_whitespace().count());
    }
    let _ = queues::driver(text);
    let boot = Boot(boot_of(text));
    assert!(boot.0.is_empty() || boot.is(&boot.0));
    let _ = text.lines().map(|line| boot.is(line)).count();
}

//! netmap's pkt-gen, replaced by a script that prints the same output on the same streams.

use crate::bench::{Scripted, ends, load, trial};
use fwdlab_bench::generator::{Generator, GeneratorHosts, PktGen};
use fwdlab_model::warning::Warning;
use fwdlab_packet::Family;
use std::time::{Duration, Instant};
use tempfile::{TempDir, tempdir};

const PATIENCE: Duration = Duration::from_secs(60);
const WINDOW: Duration = Duration::from_millis(700);

/// Deviations of a test pkt-gen from a correct one.
#[derive(Clone, Copy, Default)]
struct Habits {
    /// True if it supports `-U`, like FreeBSD's port.
    is_port: bool,
    /// True if it never reports that it is ready.
    never_ready: bool,
    /// True if it prints no totals, as after a kill.
    no_totals: bool,
    /// Number of reports after which the receiver dies.
    dies_after: Option<u32>,
    /// Factor by which the totals exaggerate the sending time; 1 if `None`.
    stretches: Option<u32>,
    /// Packets per report, ten times a second; 100 if `None`.
    packets: Option<u32>,
}

/// Scripts a pkt-gen whose sender writes its packets to a file, from which the receiver takes half
/// of them.
fn pkt_gen(habits: Habits, wire: &TempDir) -> Scripted {
    let wire = wire.path().join("wire");
    let wire = wire.display();
    let packets = habits.packets.unwrap_or(100);
    let stretched = habits.stretches.unwrap_or(1);
    let dies_after = habits.dies_after.unwrap_or(0);
    let refuses = if habits.is_port { ":" } else { "echo \"pkt-gen: illegal option -- U\" >&2" };
    let never = if habits.never_ready { "exec sleep 60" } else { ":" };
    let at_end = match habits.no_totals {
        true => ":",
        false => "totals",
    };
    let text = format!(
        r#"#!/bin/sh
for word; do
    [ "$last" = -f ] && function=$word
    [ "$word" = -h ] && {{ {refuses}; echo "Usage:" >&2; exit 1; }}
    last=$word
done
total=0 reports=0
now() {{
    if [ $function = tx ]; then
        total=$((total + $1))
        echo $total > "{wire}.new" && mv "{wire}.new" "{wire}"
    else
        before=$total
        total=$(($(cat "{wire}" 2>/dev/null || echo 0) / 2))
    fi
}}
totals() {{
    verb=Sent; [ $function = rx ] && verb=Received && now 0
    [ $total = 0 ] && {{ echo "$verb nothing."; return; }}
    tenths=$((reports * {stretched}))
    echo "$verb $total packets $((total * 80)) bytes $reports events 80 bytes each in $((tenths / 10)).$((tenths % 10))0 seconds."
    echo "Speed: 1 pps Bandwidth: 2 bps (raw 2 bps). Average batch: 1.00 pkts"
}}
trap '{at_end}; exit 0' INT
echo "123.000001 main [3000] interface is netmap:ix0" >&2
echo "123.000002 start_threads [2847] Wait 2 secs for phy reset" >&2
{never}
echo "125.000002 start_threads [2849] Ready..." >&2
while :; do
    sleep 0.1
    if [ $function = tx ]; then new={packets}; now $new; else now 0; new=$((total - before)); fi
    reports=$((reports + 1))
    echo "126.000003 main_thread [2781] $new pps ($new pkts 64000 bps in 100000 usec) 1.00 avg_batch 99999 min_space" >&2
    [ $function = rx ] && [ $reports = {dies_after} ] && kill -9 $$
done
"#
    );
    Scripted::new("pkt-gen", &text)
}

fn generator<'a>(ends: GeneratorHosts<'a>) -> Box<PktGen<'a>> {
    Box::new(PktGen::new(ends).patience(PATIENCE))
}

#[test]
fn trial_has_totals_facts_and_packets_of_the_window() {
    let wire = tempdir().expect("a directory");
    let host = pkt_gen(Habits { is_port: true, ..Habits::default() }, &wire);
    let mut hosts = ends(&host, &host);
    hosts.sender_cpus = vec![0, 1];
    hosts.options = vec!["-U".into()];
    let load = load(Family::Inet, 20, 100, None);
    let (observed, outcome) = trial(generator(hosts), &load, WINDOW).expect("a trial");
    let counted = outcome.counted;
    assert!(counted.sent >= 300 && counted.sent % 100 == 0, "{counted:?}");
    assert_eq!((counted.received, counted.unsent), (counted.sent / 2, 0));
    // The totals come from the interrupted programs.
    assert_eq!(
        (observed.total.offered, observed.total.forwarded),
        (counted.sent, counted.received)
    );
    let window = observed.window;
    assert!((100..=5000).contains(&window.offered) && window.offered % 100 == 0, "{window:?}");
    assert!(
        window.forwarded.abs_diff(window.offered / 2) <= 100 + window.offered / 4,
        "{window:?}"
    );
    assert_eq!(
        outcome.facts["pkt-gen sender"],
        "pkt-gen -N -f tx -i ix0 -w 2 -T 100 -n 0 -4 -l 80 \
         -s 198.18.1.0:49184-198.18.1.19:49184 -d 198.19.1.0:7-198.19.1.99:7 \
         -S 02:00:00:00:00:01 -D 02:00:00:00:00:02 -p 2 -c 2 -a 0 -U"
    );
    assert_eq!(outcome.facts["pkt-gen receiver"], "pkt-gen -N -f rx -i ix1 -w 2 -T 100");
    assert!(outcome.facts["pkt-gen flows"].starts_with("2000 of 2000"), "{:?}", outcome.facts);
    assert_eq!(outcome.facts["pkt-gen sha256"].len(), 64);
    assert_eq!(outcome.facts["pkt-gen sender version"], "reports by line 2781 of pkt-gen.c");
    // This machine has no ix0: there are no other remarks.
    let remarks = &outcome.remarks;
    assert!(remarks.iter().all(|remark| remark.contains("no counters to compare")), "{remarks:?}");
}

#[test]
fn paced_ipv6_load_sets_the_options_and_shortfalls_cause_remarks() {
    let wire = tempdir().expect("a directory");
    let host = pkt_gen(Habits { packets: Some(50), ..Habits::default() }, &wire);
    let load = load(Family::Inet6, 20, 100, Some(1000.0));
    let (observed, outcome) = trial(generator(ends(&host, &host)), &load, WINDOW).expect("a trial");
    assert_eq!(
        outcome.facts["pkt-gen sender"],
        "pkt-gen -N -f tx -i ix0 -w 2 -T 100 -n 20000 -6 -l 80 \
         -s [2001:2:0:1::1:0]:49184-[2001:2:0:1::1:13]:49184 \
         -d [2001:2:0:8001::1:0]:7-[2001:2:0:8001::1:63]:7 \
         -S 02:00:00:00:00:01 -D 02:00:00:00:00:02 -R 1000 -b 1"
    );
    // netmap's own build advances both ranges together.
    assert!(outcome.facts["pkt-gen flows"].starts_with("100 of 2000"));
    assert!(outcome.remarks[0].contains("without a common divisor"), "{:?}", outcome.remarks);
    assert!(outcome.counted.unsent > 300, "{:?}", outcome.counted);
    assert!(outcome.remarks.iter().any(|r| r.contains("were to be sent were not")));
    assert!(observed.warnings.iter().any(|warning| format!("{warning:?}").contains("Unsent")));
}

/// A sender that reports a longer time than the real one would have a wrong rate: it is reported,
/// and its unsent packets are counted by the real time. A correct sender is not reported.
#[test]
fn exaggerated_sending_time_causes_a_remark() {
    for (stretches, is_reported) in [(1, false), (10, true)] {
        let wire = tempdir().expect("a directory");
        let habits = Habits { stretches: Some(stretches), packets: Some(50), ..Habits::default() };
        let host = pkt_gen(habits, &wire);
        let load = load(Family::Inet, 1, 1, Some(1000.0));
        let ends = ends(&host, &host);
        let began = Instant::now();
        let (observed, outcome) = trial(generator(ends), &load, WINDOW).expect("a trial");
        let took = began.elapsed().as_secs_f64();
        let remark = outcome.remarks.iter().find(|remark| remark.contains("says that it sent for"));
        assert_eq!(remark.is_some(), is_reported, "{:?}", outcome.remarks);
        if let Some(remark) = remark {
            assert!(remark.contains("its rate is not what it says"), "{remark}");
        }
        // Intended is the rate times the real time, whatever time it reports.
        let counted = outcome.counted;
        let intended = (counted.sent + counted.unsent) as f64;
        assert!(counted.unsent > 300 && intended <= 1000.0 * took, "{counted:?} in {took} s");
        let unsent = |warning: &Warning| matches!(warning, Warning::Unsent { .. });
        assert!(observed.warnings.iter().any(unsent), "{:?}", observed.warnings);
        // The window's length comes from the laboratory's clock.
        let window = observed.window_ns as f64 / 1e9;
        assert!((0.7..took).contains(&window), "{window} s of {took} s");
    }
}

#[test]
fn program_that_is_never_ready_is_an_error() {
    let wire = tempdir().expect("a directory");
    let host = pkt_gen(Habits { never_ready: true, ..Habits::default() }, &wire);
    let mut generator = PktGen::new(ends(&host, &host)).patience(Duration::from_secs(3));
    let error = generator.prepare(&load(Family::Inet, 1, 1, None)).expect_err("never ready");
    let text = error.to_string();
    assert!(text.contains("print `Ready...` within 3.0 s") && text.contains("phy reset"), "{text}");
}

#[test]
fn missing_program_is_reported() {
    let host = fwdlab_bench::host::LocalHost;
    let mut generator = PktGen::new(ends(&host, &host)).patience(PATIENCE);
    let error = generator.prepare(&load(Family::Inet, 1, 1, None)).expect_err("missing");
    assert!(error.to_string().contains("pkt-gen"), "{error}");
}

#[test]
fn dead_receiver_is_reported_when_the_trial_stops() {
    let wire = tempdir().expect("a directory");
    let sender = pkt_gen(Habits::default(), &wire);
    let receiver = pkt_gen(Habits { dies_after: Some(8), ..Habits::default() }, &wire);
    let load = load(Family::Inet, 1, 1, None);
    let error = trial(generator(ends(&sender, &receiver)), &load, WINDOW).expect_err("it died");
    let text = error.to_string();
    assert!(text.contains("-f rx") && text.contains("ended before its time"), "{text}");
    assert!(text.contains("signal: 9") && text.contains("main_thread"), "{text}");
}

#[test]
fn missing_totals_fall_back_to_reports_and_zero_is_a_valid_total() {
    let wire = tempdir().expect("a directory");
    let killed = pkt_gen(Habits { no_totals: true, ..Habits::default() }, &wire);
    let receiver = pkt_gen(Habits::default(), &wire);
    let load = load(Family::Inet, 1, 1, None);
    let (_, outcome) = trial(generator(ends(&killed, &receiver)), &load, WINDOW).expect("a trial");
    assert!(outcome.counted.sent >= 300, "{:?}", outcome.counted);
    let remarks = &outcome.remarks;
    assert!(remarks.iter().any(|r| r.contains("the sender left no totals")), "{remarks:?}");

    let wire = tempdir().expect("a directory");
    let silent = pkt_gen(Habits { packets: Some(0), ..Habits::default() }, &wire);
    let hosts = ends(&silent, &silent);
    let (observed, outcome) =
        trial(generator(hosts), &load, Duration::from_millis(1500)).expect("a trial");
    assert_eq!((observed.total.offered, observed.total.forwarded), (0, 0));
    let remarks = &outcome.remarks;
    assert!(remarks.iter().any(|r| r.contains("counter did not move")), "{remarks:?}");
    assert!(!remarks.iter().any(|r| r.contains("no totals")), "{remarks:?}");
}

use super::*;
use crate::log::{Direction, KEPT_LINES, LONGEST_LINE, Layout};

fn log(text: &str) -> GeneratorLog {
    GeneratorLog::parse(text.as_bytes()).unwrap()
}

const SECOND: &str = "1.000005 main_thread [1550] 85735 pps (85897 pkts in 1001892 usec)\n";

#[test]
fn receiver_log_of_2015_is_parsed_completely() {
    let log = log(&format!(
        "CMD: pkt-gen -f rx -i em0 -w 4\n\
         + eval /usr/bin/ssh -x host pkt-gen -f rx -i em0 -w 4\n\
         10.000001 main [1753] interface is em0\n\
         10.000002 extract_ip_range [294] range is 10.0.0.1:0 to 10.0.0.1:0\n\
         10.000003 nm_open [517] overriding ifname em0 ringid 0x0 flags 0x1\n\
         14.000003 main [1884] Wait 4 secs for phy reset\n\
         18.000004 main [1886] Ready...\n\
         18.000005 receiver_body [1289] waiting for initial packets, poll returns 0 0\n\
         {SECOND}Terminated\n+ return 1\n"
    ));
    assert_eq!((log.newlines, log.lines, log.intervals.len()), (11, 11, 1));
    assert_eq!((log.known_noise, log.unknown_count, log.error_count), (9, 0, 0));
    assert_eq!((log.version, log.ending), (Some(1550), LogEnd::Terminated));
    let form = Form { layout: Layout::F1, units: false, averaged: false };
    assert_eq!(log.form, Some(form));
    assert_eq!((log.intervals[0].line, log.intervals[0].clock_us), (9, 1_000_005));
    assert_eq!(log.command.unwrap().interface(), Some("em0"));
}

#[test]
fn sender_log_ends_with_totals() {
    let log = log("CMD on lab1: pkt-gen -N -f tx -i em0\n\
         999.999999 main [3348] --- SPECIAL OPTIONS: copy\n\n\
         0.000001 main_thread [2786] 5 pps (5 pkts 9 bps in 1000000 usec) 1.00 avg_batch 9 min_space\n\
         0.000002 sender_body [1859] pending tx tail 0 head 0 on ring 0\n\
         Sending on netmap:em0: 9 queues, 1 threads and 1 cpus.\n\
         10.0.0.1 -> 10.1.0.1 (02:00:00:00:00:02 -> 02:00:00:00:00:01)\n\
         Sent 5 packets 300 bytes 5 events 60 bytes each in 1.00 seconds.\n\
         Speed: 5 pps Bandwidth: 2400 bps (raw 2400 bps). Average batch: 1.00 pkts\n");
    assert_eq!((log.ending, log.unknown_count, log.known_noise), (LogEnd::Total, 0, 4));
    let total = log.total.unwrap();
    assert_eq!((total.line, total.direction, total.packets), (8, Direction::Sent, 5));
    assert_eq!(log.speed.unwrap().pps, 5.0);
    assert!(log.flows_line.unwrap().starts_with("10.0.0.1 -> "));
}

#[test]
fn tool_errors_are_collected_separately() {
    let log = log(&format!(
        "577.771941 receiver_body [1804] poll err\n{SECOND}\
         578.882170 main_thread [2541] ouch, thread 0 exited with error\n\
         809.895635 sender_body [1511] poll error/timeout on queue 0: No error: 0\n\
         ssh: connect to host lab1 port 22: Operation timed out\n"
    ));
    let numbers: Vec<usize> = log.errors.iter().map(|line| line.number).collect();
    assert_eq!((numbers, log.error_count), (vec![1, 3, 4, 5], 4));
    assert_eq!((log.unknown_count, log.ending), (0, LogEnd::Other));
}

#[test]
fn ending_ignores_blank_lines_and_shell_echo() {
    for (last, ending) in [
        ("", LogEnd::Interval),
        ("Terminated\n+ return 1\n\n", LogEnd::Terminated),
        ("Terminated", LogEnd::Terminated),
        ("Termin", LogEnd::Other),
        ("Received nothing.\n", LogEnd::Total),
        ("1.000000 main [5] Ready...\n", LogEnd::Other),
        ("1.000000 main_thread [1550] 857", LogEnd::Other),
    ] {
        assert_eq!(log(&format!("{SECOND}{last}")).ending, ending, "{last:?}");
    }
}

#[test]
fn unknown_lines_are_counted_and_the_first_are_kept() {
    let long = "x".repeat(LONGEST_LINE + 1);
    let log = log(&format!("{SECOND}{long}\n{}", "what is this\n".repeat(30)));
    assert_eq!((log.unknown_count, log.unknown.len()), (31, KEPT_LINES));
    assert_eq!(log.unknown[0].text, "(65537 bytes without a line feed)");
    assert_eq!((log.unknown[1].number, log.unknown[1].text.as_str()), (3, "what is this"));
}

#[test]
fn repeated_single_lines_are_unknown() {
    let once = "CMD: pkt-gen\nSent nothing.\na -> b (c -> d)\n\
                Speed: 1 pps Bandwidth: 2 bps (raw 3 bps)\n";
    let log = log(&format!("{once}{}", once.replace("nothing", "5 packets")));
    assert_eq!((log.unknown_count, log.total.unwrap().packets), (4, 0));
}

#[test]
fn unrecognised_messages_are_unknown() {
    for line in [
        "1.000000 main [5] something new",
        "1.000000 main_thread [5]",
        "1000.000000 main [5] Ready...",
        "1.00000 main [5] Ready...",
        "1.000000 main Ready...",
        "1.000000 two words [5] Ready...",
        "1.000000 main [99999999999] Ready...",
        "a -> b (c)",
        "a -> b (c -> d",
    ] {
        assert_eq!(log(&format!("{SECOND}{line}\n")).unknown_count, 1, "{line}");
    }
}

#[test]
fn other_input_is_refused() {
    assert_eq!(GeneratorLog::parse(b""), Err(LogError::Empty));
    let binary = GeneratorLog::parse(b"CMD: pkt-gen\n\0").unwrap_err();
    assert_eq!(binary, LogError::Binary { line: 2, offset: 13 });
    let foreign = GeneratorLog::parse(b"\nTerminated\n").unwrap_err();
    let first = "Terminated".to_owned();
    assert_eq!(foreign, LogError::Foreign { wanted: "pkt-gen", lines: 2, first });
    assert!(GeneratorLog::parse(b"CMD on lab1: \nThus no job control in this shell.\n").is_ok());
}

#[test]
fn invalid_utf8_and_crlf_are_tolerated() {
    let mut bytes = SECOND.replace('\n', "\r\n").into_bytes();
    bytes.extend_from_slice(b"\xff\xfe\x1b[2J\r\n");
    let log = GeneratorLog::parse(&bytes).unwrap();
    assert_eq!((log.intervals.len(), log.unknown_count), (1, 1));
    assert_eq!(log.unknown[0].text, "\u{fffd}\u{fffd}\u{fffd}[2J");
}

#[test]
fn zero_rate_is_in_the_range_but_not_kept() {
    let zero = "1.000000 main_thread [1550] 0 pps (0 pkts in 1000000 usec)\n";
    let text = format!("{}{zero}{}", SECOND.repeat(15), SECOND.repeat(11));
    let log = log(&text);
    assert_eq!((log.newlines, log.kept_range()), (27, 15..17));
    let lines: Vec<usize> = log.kept_by_netbenches_rule().map(|interval| interval.line).collect();
    assert_eq!(lines, [17]);
}

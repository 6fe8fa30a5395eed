//! testpmd.

use super::*;

/// `show port stats` of a port.
fn shown(port: u32, packets: u64, pps: u64) -> String {
    let hashes = "#".repeat(24);
    format!(
        "\n  {hashes} NIC statistics for port {port}  {hashes}\n  RX-packets: {packets}  RX-missed: \
         0          RX-bytes:  0\n  RX-errors: 0\n  RX-nombuf:  0         \n  TX-packets: {packets} \
         TX-errors: 0          TX-bytes:  0\n\n  Throughput (since last show)\n  Rx-pps:   {pps} \
         Rx-bps:            0\n  Tx-pps:   {}          Tx-bps:            0\n  {}\n",
        pps + 1,
        "#".repeat(76)
    )
}

/// Statistics at the end of a run.
fn stopped(ports: &[(u32, u64)]) -> String {
    let counters = |packets: u64| {
        format!(
            "  RX-packets: {packets}  RX-dropped: 0  RX-total: {packets}\n  TX-packets: {}  \
             TX-dropped: 0  TX-total: {}\n",
            packets - 1,
            packets - 1
        )
    };
    let dashes = "-".repeat(22);
    let each = ports.iter().map(|(port, packets)| {
        let counters = counters(*packets);
        let border = "-".repeat(76);
        format!("\n  {dashes} Forward statistics for port {port}  {dashes}\n{counters}  {border}\n")
    });
    let plus = "+".repeat(15);
    let sum = ports.iter().map(|(_, packets)| packets).sum();
    let title = "Accumulated forward statistics for all ports";
    each.collect::<String>()
        + &format!("\n  {plus} {title}{plus}\n{}  {}\n", counters(sum), "+".repeat(76))
}

#[test]
fn rate_of_a_run_is_the_mean_of_its_statistics() {
    let run = |pps: u64| {
        // The first rate is of the time since the run before.
        let first = shown(0, 10, 7) + &shown(1, 10, 7);
        let later = [pps - 10, pps + 10].map(|pps| shown(0, 20, pps) + &shown(1, 20, pps + 100));
        format!("testpmd> start\n{first}{}testpmd> stop\n", later.concat())
            + &stopped(&[(0, 1000), (1, 2000)])
    };
    // Both ports together: pps + pps + 100.
    let input = usual(&(run(1000) + &run(1010) + &run(990))).unwrap();
    assert_eq!(input.variants[0].values(), [2100.0, 2120.0, 2080.0]);
    let note = "dir/a.out: testpmd, 3 runs of `all ports` (18 port statistics), packets per second \
                received";
    assert_eq!(input.notes[0], note);
    let port = chosen(&(run(1000) + &run(1010)), only("port 1")).unwrap();
    assert_eq!(port.variants[0].values(), [1100.0, 1110.0]);
    let sent = chosen(&(run(1000) + &run(1010)), column("tx_pps")).unwrap();
    assert_eq!(sent.variants[0].values(), [2102.0, 2122.0]);
    // A second without packets is part of the run.
    let stalled = run(1000).replace("Rx-pps:   1010", "Rx-pps:   0");
    assert_eq!(values(&(stalled + &run(1000))), [495.0 + 1100.0, 2100.0]);
    let once = shown(0, 5, 900) + &stopped(&[(0, 1000)]);
    let refused = chosen(&(once.clone() + &once), column("rx_pps")).unwrap_err();
    assert!(refused.contains("run 1 has one `show port stats` of port 0"), "{refused}");
}

#[test]
fn periods_outside_the_traffic_are_left_out() {
    let run = |rates: &[u64]| {
        let shown = rates.iter().map(|pps| {
            let shown = shown(0, 20, *pps) + &shown(1, 20, *pps);
            if *pps == 0 { shown.replace("Tx-pps:   1 ", "Tx-pps:   0 ") } else { shown }
        });
        shown.collect::<String>() + &stopped(&[(0, 1000), (1, 1000)])
    };
    // The rate of both ports, without the periods in which the traffic began and ended.
    let text = run(&[0, 0, 0, 30, 100, 0, 110, 70, 0]) + &run(&[9, 100, 110]);
    let input = usual(&text).unwrap();
    assert_eq!(input.variants[0].values(), [140.0, 210.0]);
    let note = "dir/a.out: left out: 10 port statistics outside the traffic or at its edges";
    assert_eq!(input.notes[1], note);
    let refused = error(&(run(&[0, 0, 30, 40, 0]) + &run(&[9, 100, 110])));
    assert!(refused.contains("run 1 has no period of port 0 full of traffic; print"), "{refused}");
    let none = error(&run(&[0, 0, 0]).repeat(2));
    assert!(none.contains("run 1 of all ports has the value 0"), "{none}");
}

#[test]
fn packets_are_compared_if_there_is_no_rate() {
    let text = stopped(&[(0, 1000), (1, 500)]) + &stopped(&[(0, 1010), (1, 505)]);
    let input = usual(&text).unwrap();
    assert_eq!(input.variants[0].values(), [1500.0, 1515.0]);
    assert!(input.notes[0].ends_with("packets received per run"), "{:?}", input.notes);
    assert!(input.notes[1].contains("testpmd prints no time of a run"), "{:?}", input.notes);
    assert_eq!(input.notes[2], "dir/a.out: --only also selects `port 0`, `port 1`");
    let sent = chosen(&text, column("tx_packets")).unwrap();
    assert_eq!(sent.variants[0].values(), [1499.0, 1514.0]);
    let mixed = shown(0, 5, 900).repeat(2) + &text;
    let refused = error(&mixed);
    assert!(refused.contains("some runs have two `show port stats` or more"), "{refused}");
    let rate = chosen(&text, column("rx_pps"));
    assert!(rate.unwrap_err().contains("run 1 has no `show port stats`; give --column"));
}

#[test]
fn statistics_without_an_end_are_refused() {
    let refused = error(&shown(0, 5, 900).repeat(3));
    assert!(refused.contains("has no accumulated forward statistics"), "{refused}");
    let text = stopped(&[(0, 1000)]).repeat(2);
    let open = error(&(text.clone() + &shown(0, 5, 900)));
    assert!(open.contains("record the output until `stop` or `quit`"), "{open}");
    let idle = usual(&(text.clone() + &shown(0, 5, 0))).unwrap();
    assert_eq!(idle.variants[0].values().len(), 2);
    let cut = error(&text[..text.len() - 60]);
    assert!(cut.contains("these statistics have no end"), "{cut}");
    let joined = error(&(text[..text.len() - 78].to_owned() + &text));
    assert!(joined.contains("these statistics have no end"), "{joined}");
    let number = error(&text.replace("RX-packets: 1000", "RX-packets: 1k"));
    assert!(number.contains("`RX-packets:` has no number"), "{number}");
}

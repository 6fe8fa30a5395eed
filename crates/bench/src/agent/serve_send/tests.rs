use super::*;
use crate::agent::fakes::{FakeSender, Shared, facts};
use crate::agent::protocol::Hello;
use fwdlab_model::settings::Engine;
use fwdlab_packet::{Family, Flows, Stream};
use std::io::{Cursor, pipe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn order(at_most: Duration) -> Order {
    Order::Send(SendOrder {
        interface: "eth1".into(),
        source_mac: [2, 0, 0, 0, 0, 1],
        next_hop_mac: [2, 0, 0, 0, 0, 2],
        stream: Stream::new(Family::Inet, 64, Flows { sources: 1, destinations: 1 }),
        run_id: 1,
        first_number: 0,
        rate_pps: None,
        limit: None,
        first_flow: 0,
        timestamps: false,
        engine: Engine::Auto,
        cpus: vec![],
        at_most_ns: at_most.as_nanos() as u64,
    })
}

fn lines(orders: &[Order]) -> String {
    let mut text = serde_json::to_string(&Hello::own()).expect("JSON") + "\n";
    for order in orders {
        text += &(serde_json::to_string(order).expect("JSON") + "\n");
    }
    text
}

fn served(
    input: impl Read + Send + 'static,
    stopped: &dyn Fn() -> bool,
    wire: &Shared,
) -> (Result<(), BenchError>, Vec<String>) {
    let mut output = Vec::new();
    let result = serve(input, &mut output, stopped, |_| {
        let sender = || Box::new(FakeSender::new(wire)) as Box<dyn Sender>;
        Ok((vec![sender(), sender()], facts("sender")))
    });
    let output = String::from_utf8(output).expect("text");
    (result, output.lines().map(str::to_owned).collect())
}

fn sent(line: &str) -> Sent {
    match serde_json::from_str(line) {
        Ok(Answer::Sent(sent)) => sent,
        other => panic!("{line}: {other:?}"),
    }
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn orders_are_carried_out_in_turn_and_answered_each() {
    let orders = [
        order(LONG),
        Order::Report { flows: false },
        Order::Start,
        Order::Phase { phase: 1 },
        Order::Report { flows: true },
        Order::Phase { phase: 2 },
        Order::Stop,
        // Never read.
        Order::Start,
    ];
    let wire = Shared::default();
    let (result, said) = served(Cursor::new(lines(&orders)), &|| false, &wire);
    result.expect("served");
    assert_eq!(said.len(), 2 + 6, "{said:?}");
    assert_eq!(serde_json::from_str::<Hello>(&said[0]).expect("hello"), Hello::own());
    assert!(said[1].contains(r#""answer":"ready""#) && said[1].contains("fake"), "{said:?}");
    // Two senders, each of which sends ten packets when it is asked.
    let counts: Vec<[u64; 4]> = said[2..].iter().map(|line| sent(line).packets).collect();
    assert_eq!(
        counts,
        [[0; 4], [20, 0, 0, 0], [20, 20, 0, 0], [20, 40, 0, 0], [20, 40, 20, 0], [20, 40, 40, 0]]
    );
    let times: Vec<u64> = said[2..].iter().map(|line| sent(line).at_ns).collect();
    assert!(times.is_sorted() && times[0] > 0, "{times:?}");
    assert_eq!(sent(&said[7]).missed, 2);
    assert_eq!(wire.lock().expect("the wire").sending, 0);
}

#[test]
fn a_controller_that_is_gone_ends_the_traffic() {
    let wire = Shared::default();
    let orders = lines(&[order(LONG), Order::Start]);
    let (result, said) = served(Cursor::new(orders), &|| false, &wire);
    result.expect("no error");
    assert_eq!(said.len(), 3);
    assert_eq!(wire.lock().expect("the wire").sending, 0);

    // The same when nobody reads what is said.
    let (reader, mut closed) = pipe().expect("a pipe");
    drop(reader);
    let orders = lines(&[order(LONG), Order::Start]);
    serve(Cursor::new(orders), &mut closed, &|| false, |_| unreachable!("nobody listens"))
        .expect("no error");
}

#[test]
fn time_that_is_over_ends_the_traffic_aloud() {
    let wire = Shared::default();
    let (theirs, mut ours) = pipe().expect("a pipe");
    let orders = lines(&[order(Duration::from_millis(1)), Order::Start]);
    ours.write_all(orders.as_bytes()).expect("written");
    let (result, said) = served(theirs, &|| false, &wire);
    assert!(result.expect_err("an error").to_string().contains("time that the order gave"));
    assert!(said[3].contains(r#""answer":"failed""#) && said[3].contains("over"), "{said:?}");
    assert_eq!(wire.lock().expect("the wire").sending, 0);
    drop(ours);
}

#[test]
fn a_signal_ends_the_traffic() {
    let (wire, stop) = (Shared::default(), Arc::new(AtomicBool::new(false)));
    let (theirs, mut ours) = pipe().expect("a pipe");
    ours.write_all(lines(&[order(LONG), Order::Start]).as_bytes()).expect("written");
    let flag = stop.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        flag.store(true, Ordering::Relaxed);
    });
    let (result, said) = served(theirs, &|| stop.load(Ordering::Relaxed), &wire);
    result.expect("no error");
    assert_eq!((said.len(), wire.lock().expect("the wire").sending), (3, 0));
}

#[test]
fn what_is_no_order_is_told_back() {
    let wire = Shared::default();
    let hello = lines(&[]);
    for (text, what) in [
        ("{}\n".to_owned(), "told `{}`, which is no order"),
        (r#"{"fwdlab":"0.0.1","protocol":1}"#.to_owned() + "\n", "is fwdlab 0.0.1"),
        (hello.clone() + "go\n", "told `go`"),
        (lines(&[Order::Start]), "can't do that now"),
        (lines(&[order(LONG), Order::Phase { phase: 3 }]), "can't do that now"),
        (lines(&[order(LONG), order(LONG)]), "can't do that now"),
    ] {
        let (result, said) = served(Cursor::new(text), &|| false, &wire);
        assert!(result.expect_err(what).to_string().contains(what), "{what}");
        assert!(said.last().is_some_and(|line| line.contains("failed")), "{said:?}");
    }
    // What can't be opened is told with its next step.
    let mut output = Vec::new();
    let orders = Cursor::new(lines(&[order(LONG)]));
    let refused = |_: &SendOrder| Err(BenchError::environment("no way to send", "be root"));
    serve(orders, &mut output, &|| false, refused).expect_err("refused");
    let said = String::from_utf8(output).expect("text");
    assert!(
        said.ends_with(
            "{\"answer\":\"failed\",\"what\":\"no way to send\",\"next\":\"be root\"}\n"
        )
    );
}

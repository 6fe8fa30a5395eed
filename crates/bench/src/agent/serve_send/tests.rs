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
fn orders_are_executed_in_turn_with_one_answer_each() {
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
    let (result, answers) = served(Cursor::new(lines(&orders)), &|| false, &wire);
    result.expect("served");
    assert_eq!(answers.len(), 2 + 6, "{answers:?}");
    assert_eq!(serde_json::from_str::<Hello>(&answers[0]).expect("hello"), Hello::own());
    assert!(
        answers[1].contains(r#""answer":"ready""#) && answers[1].contains("fake"),
        "{answers:?}"
    );
    // Two senders, each of which sends ten packets per query.
    let counts: Vec<[u64; 4]> = answers[2..].iter().map(|line| sent(line).packets).collect();
    assert_eq!(
        counts,
        [[0; 4], [20, 0, 0, 0], [20, 20, 0, 0], [20, 40, 0, 0], [20, 40, 20, 0], [20, 40, 40, 0]]
    );
    let times: Vec<u64> = answers[2..].iter().map(|line| sent(line).at_ns).collect();
    assert!(times.is_sorted() && times[0] > 0, "{times:?}");
    assert_eq!(sent(&answers[7]).missed, 2);
    assert_eq!(wire.lock().expect("the wire").sending, 0);
}

#[test]
fn disconnected_controller_ends_the_traffic() {
    let wire = Shared::default();
    let orders = lines(&[order(LONG), Order::Start]);
    let (result, answers) = served(Cursor::new(orders), &|| false, &wire);
    result.expect("no error");
    assert_eq!(answers.len(), 3);
    assert_eq!(wire.lock().expect("the wire").sending, 0);

    // The same if the output is closed.
    let (reader, mut closed) = pipe().expect("a pipe");
    drop(reader);
    let orders = lines(&[order(LONG), Order::Start]);
    serve(Cursor::new(orders), &mut closed, &|| false, |_| unreachable!("nobody listens"))
        .expect("no error");
}

#[test]
fn time_limit_ends_the_traffic_with_an_error() {
    let wire = Shared::default();
    let (theirs, mut ours) = pipe().expect("a pipe");
    let orders = lines(&[order(Duration::from_millis(1)), Order::Start]);
    ours.write_all(orders.as_bytes()).expect("written");
    let (result, answers) = served(theirs, &|| false, &wire);
    assert!(result.expect_err("an error").to_string().contains("time that the order gave"));
    assert!(
        answers[3].contains(r#""answer":"failed""#) && answers[3].contains("over"),
        "{answers:?}"
    );
    assert_eq!(wire.lock().expect("the wire").sending, 0);
    drop(ours);
}

#[test]
fn signal_ends_the_traffic() {
    let (wire, stop) = (Shared::default(), Arc::new(AtomicBool::new(false)));
    let (theirs, mut ours) = pipe().expect("a pipe");
    ours.write_all(lines(&[order(LONG), Order::Start]).as_bytes()).expect("written");
    let flag = stop.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        flag.store(true, Ordering::Relaxed);
    });
    let (result, answers) = served(theirs, &|| stop.load(Ordering::Relaxed), &wire);
    result.expect("no error");
    assert_eq!((answers.len(), wire.lock().expect("the wire").sending), (3, 0));
}

#[test]
fn invalid_orders_are_answered_with_an_error() {
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
        let (result, answers) = served(Cursor::new(text), &|| false, &wire);
        assert!(result.expect_err(what).to_string().contains(what), "{what}");
        assert!(answers.last().is_some_and(|line| line.contains("failed")), "{answers:?}");
    }
    // A failure to open is sent with its next step.
    let mut output = Vec::new();
    let orders = Cursor::new(lines(&[order(LONG)]));
    let refused = |_: &SendOrder| Err(BenchError::environment("no way to send", "be root"));
    serve(orders, &mut output, &|| false, refused).expect_err("refused");
    let output = String::from_utf8(output).expect("text");
    assert!(
        output.ends_with(
            "{\"answer\":\"failed\",\"what\":\"no way to send\",\"next\":\"be root\"}\n"
        )
    );
}

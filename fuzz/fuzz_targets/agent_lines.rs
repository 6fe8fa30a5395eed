//! Agents neither panic nor hang on any lines. Their output consists of protocol lines, with at
//! most one answer per order and nothing after an error.

#![no_main]

use fwdlab_bench::agent::protocol::{Answer, Hello, Order, ReceiveOrder, SendOrder};
use fwdlab_bench::agent::{serve_receive, serve_send};
use fwdlab_netio::{NetioError, Received, Receiver, Sender};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::io::Cursor;

fuzz_target!(|text: &str| {
    for line in text.lines() {
        read_back(line);
    }
    let hello = serde_json::to_string(&Hello::own()).expect("JSON");
    for input in [text.to_owned(), format!("{hello}\n{text}")] {
        let lines = input.lines().count();
        let mut output = Vec::new();
        let open = |_: &SendOrder| {
            let senders: Vec<Box<dyn Sender>> = vec![Box::new(Nothing), Box::new(Nothing)];
            Ok((senders, BTreeMap::new()))
        };
        let result = serve_send::serve(Cursor::new(input.clone()), &mut output, &|| false, open);
        check_output(&output, lines, result.is_err());
        let mut output = Vec::new();
        let open = |_: &ReceiveOrder| {
            Ok((Box::new(Nothing) as Box<dyn Receiver>, BTreeMap::new(), Default::default()))
        };
        let result = serve_receive::serve(Cursor::new(input), &mut output, &|| false, open);
        check_output(&output, lines, result.is_err());
    }
});

/// Checks an agent's output after `lines` lines of input.
fn check_output(output: &[u8], lines: usize, has_failed: bool) {
    let output = std::str::from_utf8(output).expect("text");
    let (hello, answers) = output.split_once('\n').expect("a line");
    assert_eq!(serde_json::from_str::<Hello>(hello).expect("hello"), Hello::own());
    let answers: Vec<Answer> =
        answers.lines().map(|line| serde_json::from_str(line).expect("an answer")).collect();
    assert!(answers.len() <= lines);
    let failed = answers.iter().position(|answer| matches!(answer, Answer::Failed { .. }));
    assert_eq!(failed.map(|at| at + 1), has_failed.then_some(answers.len()));
}

/// Checks that a parsed line is written back with the same meaning.
fn read_back(line: &str) {
    if let Ok(order) = serde_json::from_str::<Order>(line) {
        let again = serde_json::to_string(&order).expect("JSON");
        assert!(!again.contains('\n'));
        let mut again = serde_json::from_str(&again).expect("an order");
        if let (Order::Send(one), Order::Send(other)) = (&order, &mut again) {
            // Floats may differ in the last bit.
            if let (Some(rate), Some(read)) = (one.rate_pps, &mut other.rate_pps) {
                assert!((rate - *read).abs() <= rate.abs() * 1e-15);
                *read = rate;
            }
        }
        assert_eq!(again, order);
    }
    if let Ok(answer) = serde_json::from_str::<Answer>(line) {
        let again = serde_json::to_string(&answer).expect("JSON");
        assert_eq!(serde_json::from_str::<Answer>(&again).expect("an answer"), answer);
    }
}

/// A sender and receiver without packets.
struct Nothing;

impl Sender for Nothing {
    fn set_phase(&self, _: fwdlab_packet::Phase) {}
    fn sent(&self) -> [u64; fwdlab_packet::stamp::PHASES] {
        Default::default()
    }
    fn missed(&self) -> u64 {
        0
    }
    fn set_rate(&self, _: f64) {}
    fn start(&self) {}
    fn halt(self: Box<Self>) -> Result<[u64; fwdlab_packet::stamp::PHASES], NetioError> {
        Ok(Default::default())
    }
}

impl Receiver for Nothing {
    fn received(&self) -> Received {
        Received::default()
    }
    fn flows(&self) -> Option<fwdlab_packet::arrivals::FlowSummary> {
        None
    }
    fn delays(&self) -> Option<fwdlab_packet::arrivals::Delays> {
        None
    }
    fn dropped(&self) -> u64 {
        0
    }
}

//! Requests to the Open Traffic Generator server never panic, whatever their bodies contain. A
//! refusal lists its reasons; an accepted configuration is returned unchanged.

#![no_main]

use fwdlab_bench::agent::protocol::{ReceiveOrder, SendOrder};
use fwdlab_bench::agent::{serve_receive, serve_send};
use fwdlab_bench::error::BenchError;
use fwdlab_model::settings::Engine;
use fwdlab_otg::{Generator, Link, Options, Wires};
use libfuzzer_sys::fuzz_target;

/// Interfaces of any name, without senders and receivers.
struct Names;

impl Wires for Names {
    fn mac(&self, _: &str) -> Result<[u8; 6], BenchError> {
        Ok([2, 0, 0, 0, 0, 1])
    }

    fn link(&self, _: &str) -> Link {
        Link { is_up: true, speed: Some(10_000_000_000) }
    }

    fn senders(&self, _: &SendOrder) -> Result<serve_send::Opened, BenchError> {
        Err(BenchError::Refused("no sender".into()))
    }

    fn receiver(&self, _: &ReceiveOrder) -> Result<serve_receive::Opened, BenchError> {
        Err(BenchError::Refused("no receiver".into()))
    }

    fn cpus(&self) -> Vec<u16> {
        vec![0]
    }
}

fuzz_target!(|bodies: &[u8]| {
    let options = Options { hops: 1, engine: Engine::Auto };
    let mut generator = Generator::new(Box::new(Names), options);
    let mut bodies = bodies.split(|byte| *byte == 0);
    for path in ["/config", "/monitor/metrics", "/control/state"] {
        let body = bodies.next().unwrap_or_default();
        let answer = generator.answer("POST", path, body);
        match answer.status {
            200 => {}
            400 | 500 => assert!(answer.body["errors"].as_array().is_some_and(|all| !all.is_empty())),
            other => panic!("{other}: {}", answer.body),
        }
        if path == "/config" && answer.status == 200 {
            let posted: serde_json::Value = serde_json::from_slice(body).expect("JSON");
            assert_eq!(generator.answer("GET", path, &[]).body, posted);
        }
    }
});

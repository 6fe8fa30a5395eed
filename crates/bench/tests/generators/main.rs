//! Tests of external generators, with programs and servers of the tests: requests sent to the
//! generator, optional output, and reports of wrong counts or dead programs. Only testpmd is the
//! real program.

mod bench;
mod otg;
mod pkt_gen;
mod pktgen;
mod searches;
mod testpmd;
mod trex;

use fwdlab_bench::generator::open;
use fwdlab_bench::host::LocalHost;
use fwdlab_model::settings::GeneratorKind;

#[test]
fn every_kind_opens_a_generator_of_its_name() {
    for kind in GeneratorKind::ALL {
        let mut ends = bench::ends(&LocalHost, &LocalHost);
        ends.server = Some("127.0.0.1:1".into());
        match open(kind, ends) {
            Ok(generator) => assert_eq!(generator.name(), kind.name()),
            Err(error) => assert!(kind == GeneratorKind::Fwdlab, "{error}"),
        }
    }
}

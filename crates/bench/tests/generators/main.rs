//! Generators that are not ours, against programs and servers of the test: what is
//! asserted is what they are asked for, what they may leave unsaid, and that a lie or
//! a death is told. Only testpmd is the real one.

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
fn every_kind_is_opened_by_its_name() {
    for kind in GeneratorKind::ALL {
        let mut ends = bench::ends(&LocalHost, &LocalHost);
        ends.server = Some("127.0.0.1:1".into());
        match open(kind, ends) {
            Ok(generator) => assert_eq!(generator.name(), kind.name()),
            Err(error) => assert!(kind == GeneratorKind::Fwdlab, "{error}"),
        }
    }
}

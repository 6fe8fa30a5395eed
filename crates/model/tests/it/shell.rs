//! Assignments of sh scripts, compared with sh(1) of this machine.

use fwdlab_model::shell::assignments;

fn beta(name: &str) -> Option<&'static str> {
    Some(if name == "B" { "beta" } else { "" })
}

#[test]
fn assignments_match_sh() {
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(
        proptest::test_runner::Config { cases: 1, ..Default::default() },
        proptest::test_runner::TestRng::from_seed(
            proptest::test_runner::RngAlgorithm::ChaCha,
            &[7; 32],
        ),
    );
    let piece = "[a-z#]|\\\\[ab $#\n]|'[ab $#\\\\\n]*'|\"([ab #\n]|\\$B|\\$\\{B\\}|\\\\[$`\"a\\\\])*\"|\\$\\{B\\}";
    let value = format!("({piece}){{0,5}}");
    let script = proptest::collection::vec((value.as_str(), "( |\t)?( #[a-z'\"]*)?"), 80);
    runner
        .run(&script, |lines| {
            let mut script = String::from("B=beta\n");
            for (index, (value, behind)) in lines.iter().enumerate() {
                script += &format!("v{index}={value}{behind}\n");
            }
            let (found, others) = assignments(&script);
            proptest::prop_assert_eq!((found.len(), others), (81, 0), "{}", script);
            for index in 0..lines.len() {
                script += &format!("printf '%s\\001' \"$v{index}\"\n");
            }
            let output = std::process::Command::new("sh").args(["-c", &script]).output();
            let output = String::from_utf8(output.expect("sh").stdout).expect("text");
            let expected: Vec<&str> = output.split_terminator('\u{1}').collect();
            let assigned: Vec<String> =
                found[1..].iter().filter_map(|v| v.resolved(beta).ok()).collect();
            proptest::prop_assert_eq!(assigned, expected, "{}", script);
            Ok(())
        })
        .expect("sh agrees");
}

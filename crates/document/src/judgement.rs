//! Comparisons as tests that pass, fail or are skipped: KTAP and JUnit report these.

/// The result of a comparison as a test.
///
/// It agrees with the exit code of `--fail-on worse`: a comparison fails where that code is 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The device got better, or stayed within the margin.
    Pass,
    /// The device got worse.
    Fail,
    /// The measurement shows neither, for this reason. A test without an answer must not pass.
    Skip(String),
}

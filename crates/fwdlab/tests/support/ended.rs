//! The end of a program, for the tests of the command line and of laboratories.

/// Exit code and output of the program.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Asserts the exit code; on failure shows the output.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Ended {
        let Ended { stdout, stderr, .. } = &self;
        assert_eq!(self.code, Some(code), "stdout:\n{stdout}\nstderr:\n{stderr}");
        self
    }

    /// Asserts that an experiment was completed, on however busy a machine: 0, or 4 because most
    /// runs were disturbed, but never because the results cannot be trusted.
    #[track_caller]
    pub(crate) fn carried_out(self) -> Ended {
        let Ended { stdout, stderr, .. } = &self;
        let is_busy = self.code == Some(4) && !stderr.contains("these figures can't be trusted");
        assert!(self.code == Some(0) || is_busy, "stdout:\n{stdout}\nstderr:\n{stderr}");
        self
    }
}

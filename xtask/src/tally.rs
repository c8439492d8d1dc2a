//! Counts of what passed, failed and was left out, and how to read them from a runner's output.

/// What a step found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Tally {
    pub(crate) fn check(green: bool) -> Self {
        Self { passed: u64::from(green), failed: u64::from(!green), skipped: 0 }
    }

    pub(crate) fn skip() -> Self {
        Self { skipped: 1, ..Self::default() }
    }

    pub(crate) fn green(self) -> bool {
        self.failed == 0
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// The line that ends a run.
    pub(crate) fn line(self) -> String {
        let Self { passed, failed, skipped } = self;
        if skipped == 0 {
            format!("{passed} passed, {failed} failed")
        } else {
            format!("{passed} passed, {failed} failed, {skipped} skipped")
        }
    }

    /// Reads one line of a runner: `Summary [..] 9 tests run: 8 passed, 1 failed, 2 skipped` of
    /// nextest, or `test result: ok. 3 passed; 0 failed; 1 ignored; ..` of the built-in harness.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let line = plain(line);
        let line = line.trim();
        let counts = if line.starts_with("Summary [") {
            line.split_once(": ")?.1
        } else {
            line.strip_prefix("test result: ")?.split_once(". ")?.1
        };
        let mut tally = Self::default();
        let mut number = 0;
        for word in counts.split([' ', ',', ';', '(', ')']) {
            match word {
                "passed" => tally.passed = number,
                "failed" | "timed" => tally.failed += number,
                "skipped" | "ignored" => tally.skipped += number,
                // `1 exec failed`: a word between the number and what it counts.
                _ => number = word.parse().unwrap_or(number),
            }
        }
        Some(tally)
    }
}

/// The line without its colours.
fn plain(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            chars.by_ref().find(char::is_ascii_alphabetic);
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(passed: u64, failed: u64, skipped: u64) -> Option<Tally> {
        Some(Tally { passed, failed, skipped })
    }

    #[test]
    fn counts_of_nextest_are_read() {
        let line = "     Summary [   0.006s] 3 tests run: 3 passed, 0 skipped";
        assert_eq!(Tally::read(line), tally(3, 0, 0));
        let line =
            "Summary [  1.0s] 9/12 tests run: 5 passed (1 slow), 3 failed, 1 timed out, 2 skipped";
        assert_eq!(Tally::read(line), tally(5, 4, 2));
        let line = "\u{1b}[32;1m  Summary\u{1b}[0m [ 0.0s] \u{1b}[1m1\u{1b}[0m test run: \
                    \u{1b}[1m1\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, 0 skipped";
        assert_eq!(Tally::read(line), tally(1, 0, 0));
    }

    #[test]
    fn a_failure_to_start_a_test_is_a_failure() {
        let line = "Summary [  1.0s] 2 tests run: 1 passed, 1 exec failed, 0 skipped";
        assert_eq!(Tally::read(line), tally(1, 1, 0));
    }

    #[test]
    fn counts_of_the_built_in_harness_are_read() {
        let line =
            "test result: ok. 3 passed; 0 failed; 1 ignored; 7 filtered out; finished in 0.00s";
        assert_eq!(Tally::read(line), tally(3, 0, 1));
        let line = "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(Tally::read(line), tally(3, 2, 0));
    }

    #[test]
    fn other_lines_are_no_counts() {
        assert_eq!(Tally::read("3 passed, 1 failed"), None);
        assert_eq!(Tally::read("   Compiling passed v0.1.0"), None);
    }

    #[test]
    fn the_closing_line_names_what_was_left_out_only_when_something_was() {
        assert_eq!(tally(7, 0, 0).map(Tally::line).as_deref(), Some("7 passed, 0 failed"));
        assert_eq!(
            tally(7, 1, 2).map(Tally::line).as_deref(),
            Some("7 passed, 1 failed, 2 skipped")
        );
    }
}

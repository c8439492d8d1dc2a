//! Whether a search that ended without a counterexample shows anything.

use std::fmt;

use crate::{Spec, floor};

/// How a search ended.
#[derive(Clone, Debug)]
pub struct Finish {
    /// How many executions there were.
    pub executions: usize,
    /// The search was stopped before it was through.
    pub truncated: bool,
    /// How often each state of [`Spec::must_reach`] was met, in that order.
    pub reached: Vec<u64>,
}

/// Why a search shows nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It was cut short.
    Truncated(usize),
    /// No execution met that state.
    Vacuous(&'static str),
    /// It was smaller than its floor.
    BelowFloor {
        /// How many executions there were.
        executions: usize,
        /// How many there must be.
        floor: usize,
    },
    /// It has no floor.
    NoFloor(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated(executions) => write!(f, "truncated after {executions} executions"),
            Self::Vacuous(state) => write!(f, "vacuous: no execution reached \"{state}\""),
            Self::BelowFloor { executions, floor } => {
                write!(f, "{executions} executions are below the floor of {floor}")
            }
            Self::NoFloor(why) => f.write_str(why),
        }
    }
}

impl Finish {
    /// Says whether the search shows what the model is about.
    ///
    /// # Errors
    ///
    /// The first rule that it breaks.
    pub fn judge(&self, spec: &Spec, floors: &str) -> Result<(), Fault> {
        if self.truncated {
            return Err(Fault::Truncated(self.executions));
        }
        let missed = spec.must_reach.iter().zip(&self.reached).find(|(_, times)| **times == 0);
        if let Some((state, _)) = missed {
            return Err(Fault::Vacuous(state));
        }
        let floor = floor::of(floors, spec.id).map_err(Fault::NoFloor)?;
        if self.executions < floor {
            return Err(Fault::BelowFloor { executions: self.executions, floor });
        }
        Ok(())
    }

    /// The line about the search: `18231 executions, exhaustive`.
    #[must_use]
    pub fn line(&self, spec: &Spec) -> String {
        let how = match (self.truncated, spec.preemption) {
            (true, _) => "truncated".to_owned(),
            (false, None) => "exhaustive".to_owned(),
            (false, Some(bound)) => format!("preemption bound {bound}"),
        };
        let mut line = format!("{} executions, {how}", self.executions);
        for (state, times) in spec.must_reach.iter().zip(&self.reached) {
            line.push_str(&format!(", {state} {times}"));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: Spec = Spec::new("X").must_reach(&["parked", "woken"]);
    const FLOORS: &str = "X = 100\n";

    fn finish() -> Finish {
        Finish { executions: 100, truncated: false, reached: vec![3, 1] }
    }

    #[test]
    fn a_whole_search_is_accepted() {
        assert_eq!(finish().judge(&SPEC, FLOORS), Ok(()));
        assert_eq!(finish().line(&SPEC), "100 executions, exhaustive, parked 3, woken 1");
        let bounded = SPEC.preemption(2);
        let line = finish().line(&bounded);
        assert_eq!(line, "100 executions, preemption bound 2, parked 3, woken 1");
    }

    #[test]
    fn a_truncated_search_fails() {
        let finish = Finish { truncated: true, ..finish() };
        assert_eq!(finish.judge(&SPEC, FLOORS), Err(Fault::Truncated(100)));
        assert!(finish.line(&SPEC).contains("truncated"));
    }

    #[test]
    fn a_vacuous_search_fails() {
        let finish = Finish { reached: vec![3, 0], ..finish() };
        assert_eq!(finish.judge(&SPEC, FLOORS), Err(Fault::Vacuous("woken")));
    }

    #[test]
    fn a_search_below_its_floor_fails() {
        let finish = Finish { executions: 99, ..finish() };
        let fault = Fault::BelowFloor { executions: 99, floor: 100 };
        assert_eq!(finish.judge(&SPEC, FLOORS), Err(fault));
    }

    #[test]
    fn a_model_without_floor_fails() {
        assert!(matches!(finish().judge(&SPEC, ""), Err(Fault::NoFloor(_))));
    }
}

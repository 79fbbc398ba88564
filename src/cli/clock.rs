//! The clock of a command: local time, or UTC.

use super::environment::Environment;

pub(super) use crate::tools::clock::Clock;

impl Clock {
    /// Returns a clock of the environment; `utc` asks for UTC.
    pub(super) fn of(environment: &Environment, utc: bool) -> Clock {
        Clock::new(environment.local_time && !utc)
    }
}

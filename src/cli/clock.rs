//! The clock of a command: local time, or UTC.

use super::environment::Environment;

pub(super) use crate::tools::clock::Clock;

impl Clock {
    /// Returns a clock in the environment's time zone, or in UTC if `utc` is set.
    pub(super) fn of(environment: &Environment, utc: bool) -> Clock {
        Clock::new(environment.local_time && !utc)
    }
}

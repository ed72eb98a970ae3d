//! How fast a move task goes: so many messages a second at most, in steps of some.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::limits::MOVED_ROWS_MAX;

/// Messages a second; `None`: as many as it can.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MoveRate(pub(crate) Option<u32>);

impl MoveRate {
    /// Returns how many messages a step moves at most: those of a second, if they are not too many.
    pub(crate) fn step_rows_max(self) -> usize {
        self.0.map_or(MOVED_ROWS_MAX, |rate| (rate as usize).clamp(1, MOVED_ROWS_MAX))
    }

    /// Waits until the next step may begin after one that began then and moved so many messages.
    pub(crate) async fn after(self, began: Instant, moved: u64) {
        if let Some(rate) = self.0 {
            let seconds = moved as f64 / f64::from(rate.max(1));
            sleep_until(began + Duration::from_secs_f64(seconds)).await;
        }
    }
}

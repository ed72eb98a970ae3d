//! The timestamps of a front-end's heartbeats.

use std::sync::{Mutex, PoisonError};

/// Numbers that only grow, whatever the clock does, until the last one.
#[derive(Debug, Default)]
pub(crate) struct HeartbeatTimestamps(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    latest: i64,
    is_over: bool,
}

impl HeartbeatTimestamps {
    /// Returns the next timestamp: the time, unless the clock went back. `None`: there was the last
    /// one already.
    pub(crate) fn next(&self, now_us: i64) -> Option<i64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_over {
            return None;
        }
        state.latest = now_us.max(state.latest.saturating_add(1));
        Some(state.latest)
    }

    /// Takes the last timestamp, later than all others, also those that are under way still.
    pub(crate) fn last(&self, now_us: i64) -> Option<i64> {
        let last = self.next(now_us);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beats_grow_though_the_clock_goes_back_until_the_last() {
        let heartbeat_timestamps = HeartbeatTimestamps::default();
        let next: Vec<_> =
            [100, 50, 50, 200].into_iter().map(|now| heartbeat_timestamps.next(now)).collect();
        assert_eq!(next, [Some(100), Some(101), Some(102), Some(200)]);
        assert_eq!(heartbeat_timestamps.last(150), Some(201));
        assert_eq!((heartbeat_timestamps.next(300), heartbeat_timestamps.last(300)), (None, None));
    }
}

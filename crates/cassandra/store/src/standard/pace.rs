//! How fast the sweep reads. Sweeps of several queues share one pace, and take turns at it: whoever has read waits for as long as that
//! counts, one after the other.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

/// How much later what is missing is looked for again.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Rows that a request counts as beside those that it reads.
const REQUEST_ROWS: usize = 10;

/// How fast a sweep goes. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// `None`: as fast as it can.
    rate: Option<Rate>,
    /// How long it waits before what is missing is looked for again.
    pub(crate) again_after: Duration,
}

#[derive(Clone, Debug)]
struct Rate {
    rows_per_s: u32,
    /// Given out in the order in which it is asked for.
    turn: Arc<Mutex<()>>,
}

impl Pace {
    /// Returns the pace of a front-end that sweeps beside its work.
    pub(crate) fn slow(rows_per_s: u32) -> Self {
        let rate = Rate { rows_per_s: rows_per_s.max(1), turn: Arc::default() };
        Self { rate: Some(rate), again_after: AGAIN_AFTER }
    }

    /// As tests do it.
    pub(crate) const AT_ONCE: Self = Self { rate: None, again_after: Duration::ZERO };

    /// Waits after a request that has read so many rows.
    pub(crate) async fn after(&self, rows: usize) {
        if let Some(Rate { rows_per_s, turn }) = &self.rate {
            let _turn = turn.lock().await;
            let seconds = (rows + REQUEST_ROWS) as f64 / f64::from(*rows_per_s);
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn two_that_read_at_once_are_no_faster_and_take_turns() {
        let (pace, began) = (Pace::slow(100), Instant::now());
        let long = async {
            for _ in 0..10 {
                pace.clone().after(90).await;
            }
            began.elapsed()
        };
        let short = async {
            for _ in 0..3 {
                pace.clone().after(0).await;
            }
            began.elapsed()
        };
        let (long, short) = join(long, short).await;
        let about = |elapsed: Duration| (elapsed.as_secs_f64() * 10.0).round() / 10.0;
        assert_eq!((about(long), about(short)), (10.3, 3.3));
    }
}

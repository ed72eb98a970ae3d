//! What runs the core's turns: after the tasks that were ready, when another thread has something for
//! the core, and at its deadlines.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::sleep_until;

use crate::clock::Clock;
use crate::core::SharedCore;
use crate::stop::Stopped;

/// Runs turns until the node has stopped.
pub(crate) async fn run(core: SharedCore, wake: Arc<Notify>, clock: Clock) -> Stopped {
    let mut timer = pin!(sleep_until(Instant::now().into()));
    let mut armed = None;
    loop {
        let (more, deadline, stopped) =
            core.with(|core| (core.turn(), core.deadline(), core.stop.done()));
        if let Some(stopped) = stopped {
            return stopped;
        }
        if more {
            yield_now().await;
            continue;
        }
        if let Some(at) = deadline
            && armed != deadline
        {
            timer.as_mut().reset(clock.instant(at).into());
        }
        armed = deadline;
        tokio::select! {
            biased;
            () = wake.notified() => {}
            () = &mut timer, if deadline.is_some() => armed = None,
        }
    }
}

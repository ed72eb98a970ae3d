//! How the tasks of a front hear that it stops.

use tokio::sync::watch;
use tokio::time::sleep;

use crate::Backoff;

/// Waits until the front stops; at once if it does already.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Whoever could stop it and is gone has stopped it.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Waits before the next try; returns whether the front stops instead.
pub async fn stops_before_retry(stop: &mut watch::Receiver<bool>, backoff: &mut Backoff) -> bool {
    tokio::select! {
        biased;
        () = stopped(stop) => true,
        () = sleep(backoff.next_wait()) => false,
    }
}

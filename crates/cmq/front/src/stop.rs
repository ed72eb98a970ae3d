//! How the tasks of the front hear that it stops.

use tokio::sync::watch;

/// Waits until the front stops; at once if it does already.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Whoever could stop it and is gone has stopped it.
    let _ = stop.wait_for(|stop| *stop).await;
}

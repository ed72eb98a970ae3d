//! How long the bridge waits.

use std::time::Duration;

use quelea_node::stopped;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::fault::BridgeFault;

/// How long a stop waits for what is under way, each time it has to wait.
pub(crate) const CLOSE_MAX: Duration = Duration::from_secs(1);

/// How long an elastic queue may take to have a relay before that counts as a fault.
const RELAY_MAX: Duration = Duration::from_secs(10);

/// Returns the elastic queue's producer or listener, `None` if the bridge stops before.
///
/// # Errors
/// If the client fails, or there is no relay in time.
pub(crate) async fn opened<T>(
    stop: &mut watch::Receiver<bool>,
    opening: impl Future<Output = Result<T, quelea_elastic_client::Error>>,
) -> Result<Option<T>, BridgeFault> {
    tokio::select! {
        biased;
        () = stopped(stop) => Ok(None),
        opened = timeout(RELAY_MAX, opening) => {
            let opened = opened.map_err(|_| BridgeFault::NoRelay(RELAY_MAX.as_secs()))?;
            Ok(Some(opened?))
        }
    }
}

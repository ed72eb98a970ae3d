//! Waits for another store, which is asked whether it has a queue of a name that is declared here.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::handle::{CoreHandle, CoreStopped};

/// How long a declaration waits: longer than it takes to say that the other store does not answer.
const NAME_CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// How often it is asked meanwhile whether anything was answered.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

impl CoreHandle {
    /// Declares a queue, and again when another store has said whether it has one of that name: as long as the result
    /// `is_being_checked`, for ten seconds at most. Returns the last result.
    ///
    /// # Errors
    /// [`CoreStopped`] if the core answers nothing any more.
    pub async fn when_name_checked<T, F: Future<Output = T>>(
        &self,
        mut declare: impl FnMut() -> F,
        is_being_checked: impl Fn(&T) -> bool,
    ) -> Result<T, CoreStopped> {
        let deadline = Instant::now() + NAME_CHECK_TIMEOUT;
        loop {
            // What is answered between the declaration and the first poll counts, too.
            let freed = self.names_freed().await?;
            let declared = declare().await;
            if !is_being_checked(&declared) || Instant::now() >= deadline {
                return Ok(declared);
            }
            drop(declared);
            while Instant::now() < deadline && self.names_freed().await? == freed {
                sleep(POLL_INTERVAL).await;
            }
        }
    }

    async fn names_freed(&self) -> Result<u64, CoreStopped> {
        self.call(|core| core.broker.names_freed()).await
    }
}

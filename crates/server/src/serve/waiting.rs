//! Connects to Cassandra, however long it is away, and has calls refused meanwhile: clients get 503 in their own protocol and try again,
//! where a process that ends and is started again would leave them without an answer.

use std::pin::pin;
use std::time::Duration;

use quelea_cassandra_front::AWAY;
use quelea_node::Backoff;
use sd_notify::NotifyState;

use super::cassandra::{self, CassandraError, Cluster};
use super::connection_limits::ConnectionLimits;
use super::management::{self, Management};
use super::sqs::{self, SqsFront};
use super::{ServeError, notify_service_manager};
use crate::config::Config;

/// An attempt that takes longer, as where a node is frozen or tables are made, has calls refused meanwhile.
const REFUSED_AFTER: Duration = Duration::from_secs(1);
/// How much longer the service manager is asked to wait, every so often.
const START_EXTENDED: Duration = Duration::from_secs(30);
/// Between two attempts: first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(8));

/// Where calls are refused.
#[derive(Clone, Copy)]
pub(super) struct Listening<'a> {
    pub(super) management: Option<&'a management::Prepared>,
    pub(super) sqs: Option<&'a sqs::Prepared>,
}

/// Connects, if nodes are named, and has what is first asked of that Cassandra answered.
///
/// # Errors
/// What waiting does not mend: settings, rights, versions.
pub(super) async fn connect(
    config: &Config,
    limits: ConnectionLimits,
    listening: Listening<'_>,
    ask_first: impl AsyncFn(&Cluster) -> Result<(), CassandraError>,
) -> Result<Option<Cluster>, ServeError> {
    let mut wait = Wait { config, limits, listening, refusing: None };
    let cluster = wait.until_done(async || cassandra::connect(config, limits).await).await?;
    if let Some(cluster) = &cluster {
        wait.until_done(async || ask_first(cluster).await).await?;
    }
    if let Some(refusing) = wait.refusing {
        refusing.stop().await;
        notify_service_manager(NotifyState::Status(""));
    }
    Ok(cluster)
}

/// By whom calls are refused as long as Cassandra is waited for.
struct Wait<'a> {
    config: &'a Config,
    limits: ConnectionLimits,
    listening: Listening<'a>,
    refusing: Option<Refusing>,
}

impl Wait<'_> {
    /// Tries until it is done, or fails in a way that waiting does not mend.
    async fn until_done<T>(
        &mut self,
        attempt: impl AsyncFn() -> Result<T, CassandraError>,
    ) -> Result<T, ServeError> {
        let mut backoff = Backoff::between(PAUSES.0, PAUSES.1);
        loop {
            match self.unless_long(attempt()).await? {
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, "waits for Cassandra; calls are refused until it answers");
                    self.refuse()?;
                }
                done => return Ok(done?),
            }
            extend_start();
            tokio::time::sleep(backoff.next_wait()).await;
        }
    }

    /// Waits for an attempt and returns what it gives; calls are refused if it takes long.
    async fn unless_long<T>(&mut self, attempt: impl Future<Output = T>) -> Result<T, ServeError> {
        let mut attempt = pin!(attempt);
        let mut patience = REFUSED_AFTER;
        loop {
            if let Ok(done) = tokio::time::timeout(patience, attempt.as_mut()).await {
                return Ok(done);
            }
            self.refuse()?;
            extend_start();
            patience = START_EXTENDED / 3;
        }
    }

    /// Refuses calls from now on, if that was not so.
    fn refuse(&mut self) -> Result<(), ServeError> {
        if self.refusing.is_none() {
            let Listening { management, sqs } = self.listening;
            let management =
                management.map(|it| it.start_away(AWAY, self.config, self.limits.http));
            let sqs = sqs.map(|it| it.start_away(self.config, self.limits.sqs));
            self.refusing =
                Some(Refusing { management: management.transpose()?, sqs: sqs.transpose()? });
        }
        Ok(())
    }
}

fn extend_start() {
    notify_service_manager(NotifyState::Status("waits for Cassandra"));
    let extended_us = START_EXTENDED.as_micros() as u32;
    notify_service_manager(NotifyState::ExtendTimeoutUsec(extended_us));
}

/// What refuses calls.
struct Refusing {
    management: Option<Management>,
    sqs: Option<SqsFront>,
}

impl Refusing {
    async fn stop(self) {
        if let Some(sqs) = self.sqs {
            sqs.stop().await;
        }
        if let Some(management) = self.management {
            management.stop().await;
        }
    }
}

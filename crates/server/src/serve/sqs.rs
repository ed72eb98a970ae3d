//! The SQS interface over the broker in this process, as `serve` starts and stops it.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use quelea_net::HostNames;
use quelea_node::{CoreStopped, ListenError, Node};
use quelea_sqs_embedded::{EmbeddedQueues, EmbeddedSettings};
use quelea_sqs_server::{BODIES_BYTES_MAX, SqsCounters, SqsServer, SqsSettings, SqsStartError};

use crate::config::{Config, Sqs};

/// The running interface.
pub(crate) struct SqsFront {
    server: SqsServer,
}

/// Why it does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SqsError {
    #[error("sqs.listen: {0}")]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Start(#[from] SqsStartError),
    #[error("cannot start SQS: {0}")]
    Core(#[from] CoreStopped),
}

/// What has to be there before the log is opened: addresses that are taken show early.
pub(crate) struct Prepared(Vec<TcpListener>);

/// Listens, unless the interface is not wanted.
pub(crate) fn listen(config: &Sqs) -> Result<Option<Prepared>, SqsError> {
    if !config.enabled {
        return Ok(None);
    }
    let listeners = config.listen.iter().map(|address| quelea_node::listen(address));
    Ok(Some(Prepared(listeners.collect::<Result<_, _>>()?)))
}

impl Prepared {
    /// Serves the node's queues.
    pub(crate) async fn start(
        self,
        node: &Node,
        config: &Config,
        counters: Arc<SqsCounters>,
        connections_max: usize,
    ) -> Result<SqsFront, SqsError> {
        let Self(listeners) = self;
        let sqs = &config.sqs;
        let queues = EmbeddedQueues::new(
            node.handle().clone(),
            EmbeddedSettings {
                account_id: sqs.account_id.as_str().into(),
                cooldown_ms: sqs.cooldown_ms,
            },
        );
        let settings = SqsSettings {
            threads: sqs.threads,
            account: sqs.account_id.as_str().into(),
            region: sqs.region.as_str().into(),
            verify: sqs.verify,
            hosts: HostNames::new(&sqs.hosts),
            connections_max,
            bodies_bytes_max: BODIES_BYTES_MAX,
            idle_max: Duration::from_millis(sqs.idle_timeout_ms),
            request_max: Duration::from_millis(sqs.request_timeout_ms),
            counters,
        };
        let server = match sqs.threads {
            0 => {
                let (server, run) = SqsServer::on_other_thread(listeners, &queues, &settings)?;
                node.handle().spawn_local(move || run()).await?;
                server
            }
            _ => SqsServer::start(listeners, &queues, &settings)?,
        };
        Ok(SqsFront { server })
    }
}

impl SqsFront {
    /// Where it listens, separated by commas.
    pub(crate) fn addresses(&self) -> String {
        let addresses: Vec<_> = self.server.addresses().iter().map(ToString::to_string).collect();
        addresses.join(",")
    }

    /// Stops it, while the broker can still answer what is under way.
    pub(crate) async fn stop(self) {
        super::stop_on_thread("the SQS interface", move || self.server.stop()).await;
    }
}

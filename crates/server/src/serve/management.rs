//! The management API and the metrics page, as `serve` starts and stops them: on its own thread's runtime.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use quelea_elastic_directory::DirectoryHandle;
use quelea_management::{HttpLimits, HttpSettings};
use quelea_net::HostNames;
use quelea_node::{ListenError, Node};
use quelea_sqs_server::SqsCounters;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::config::{Config, Http};

/// How long it may take to answer what it was asked before the stop.
const STOP_MAX: Duration = Duration::from_secs(1);

/// The running API.
pub(crate) struct Management {
    address: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// Why it does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManagementError {
    #[error("http.listen: {0}")]
    Listen(#[from] ListenError),
    #[error("cannot register the management listener: {0}")]
    Register(std::io::Error),
}

/// What has to be there before the log is opened: an address that is taken shows early.
pub(crate) struct Prepared(TcpListener);

/// Listens, unless the API is not wanted.
pub(crate) fn listen(config: &Http) -> Result<Option<Prepared>, ManagementError> {
    let listener = config.enabled.then(|| quelea_node::listen(&config.listen)).transpose()?;
    Ok(listener.map(Prepared))
}

impl Prepared {
    /// Serves on the calling thread's runtime.
    pub(crate) fn start(
        self,
        node: &Node,
        config: &Config,
        sqs: Option<Arc<SqsCounters>>,
        collectors: Vec<Arc<dyn Collector>>,
        directory: Option<DirectoryHandle>,
        connections_max: usize,
    ) -> Result<Management, ManagementError> {
        let address = self.0.local_addr().map_err(ManagementError::Register)?.to_string();
        let listener =
            tokio::net::TcpListener::from_std(self.0).map_err(ManagementError::Register)?;
        let settings = HttpSettings {
            loopback_users: config.access.loopback_users.clone(),
            node: "quelea@localhost".to_owned(),
            account_id: config.sqs.account_id.clone(),
            sqs,
            collectors,
            limits: HttpLimits {
                connections_max,
                requests_per_s_max: config.http.requests_per_s_max,
                request_max: Duration::from_millis(config.http.request_timeout_ms),
            },
            hosts: HostNames::new(&config.http.hosts),
            elastic: quelea_elastic_directory::routes(directory),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async move {
            // An error is the sender's end, which means the same.
            let _ = stopped.await;
        };
        let (core, authenticator) = (node.handle().clone(), node.authenticator().clone());
        let serve = quelea_management::serve(listener, core, authenticator, settings, stopped);
        Ok(Management { address, stop, task: tokio::spawn(serve) })
    }
}

impl Management {
    /// Where it listens.
    pub(crate) fn address(&self) -> String {
        self.address.clone()
    }

    /// Stops it; connections that are still busy then are left open.
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        match tokio::time::timeout(STOP_MAX, self.task).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the management API broke"),
            Err(_) => tracing::debug!("management connections are left open"),
        }
    }
}

//! A broker in a directory of its own, which a test asks as handlers do.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use quelea_net::HostNames;
use quelea_node::{DataDir, Node, NodeConfig};

use crate::api::HttpSettings;
use crate::server::HttpLimits;
use crate::state::ApiState;

/// It is stopped and removed with the test.
pub(crate) struct TestBroker {
    pub(crate) api: ApiState,
    node: Option<Node>,
    directory: PathBuf,
}

impl TestBroker {
    pub(crate) fn start() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!("quelea-management-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let data = DataDir::lock(&directory).unwrap();
        let node = Node::start(NodeConfig::of_test(directory.clone()), data).unwrap();
        let (core, authenticator) = (node.handle().clone(), node.authenticator().clone());
        let (api, ..) = ApiState::new(core, authenticator, settings(directory.clone()));
        Self { api, node: Some(node), directory }
    }
}

impl Drop for TestBroker {
    fn drop(&mut self) {
        if let Some(node) = self.node.take() {
            node.handle().try_call(|core| core.begin_stop());
            let _ = node.join();
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn settings(data_dir: PathBuf) -> HttpSettings {
    let limits = HttpLimits {
        connections_max: 1,
        requests_per_s_max: 1,
        request_max: Duration::from_secs(60),
    };
    HttpSettings {
        loopback_users: Vec::new(),
        token_key: None,
        node: "quelea@localhost".to_owned(),
        account_id: "000000000000".to_owned(),
        data_dir,
        sqs: None,
        collectors: Vec::new(),
        limits,
        hosts: HostNames::new(&[]),
        sample_interval: Duration::from_secs(60),
        listeners: Vec::new(),
        elastic: Vec::new(),
        datagram: Vec::new(),
        replicated: Vec::new(),
        audit: Arc::default(),
        queue_classes: Vec::new(),
        sqs_service: None,
    }
}

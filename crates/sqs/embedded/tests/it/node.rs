//! A node of its own for a test, in a directory that goes with it.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use quelea_node::{CoreHandle, DataDir, Node, NodeConfig};
use quelea_sqs_embedded::EmbeddedSettings;
use tokio::runtime::{Builder, Runtime};

/// The account that the virtual host `/` is.
pub(crate) const ACCOUNT: &str = "000000000000";

/// How long names and purges rest here.
pub(crate) const COOLDOWN_MS: u64 = 300;

pub(crate) fn settings() -> EmbeddedSettings {
    EmbeddedSettings { account_id: ACCOUNT.into(), cooldown_ms: COOLDOWN_MS }
}

/// A running node; it is stopped at the end of the test.
pub(crate) struct TestNode {
    node: Option<Node>,
    directory: PathBuf,
    runtime: Runtime,
}

impl TestNode {
    pub(crate) fn start() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("quelea-sqs-embedded-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let config = NodeConfig::of_test(directory.join("data"));
        fs::create_dir_all(&directory).unwrap();
        let data = DataDir::lock(&config.data_dir).unwrap();
        let node = Some(Node::start(config, data).unwrap());
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        Self { node, directory, runtime }
    }

    pub(crate) fn handle(&self) -> &CoreHandle {
        self.node.as_ref().unwrap().handle()
    }

    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        if let Some(node) = self.node.take() {
            // A node that has stopped already is what is wanted.
            let _ = self.runtime.block_on(node.handle().call(|core| core.begin_stop()));
            let _ = node.join();
        }
        fs::remove_dir_all(&self.directory).unwrap();
    }
}

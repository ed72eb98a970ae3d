//! A node of its own for a test.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use quelea_amqp_codec::ConnectionConfig;
use quelea_amqp_session::SessionConfig;
use quelea_broker::BrokerConfig;
use quelea_node::{Authenticator, Core, CoreHandle, DataDir, Node, NodeConfig, Stopped};
use quelea_store::Disk;

use crate::client::PATIENCE;

/// A directory that goes with the test.
pub(crate) struct TestDir(PathBuf);

impl TestDir {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("quelea-node-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Returns the configuration of a test's node: a free port, small limits.
pub(crate) fn config(dir: &Path) -> NodeConfig {
    NodeConfig {
        data_dir: dir.join("data"),
        amqp_listen: vec!["127.0.0.1:0".to_owned()],
        connections_max: 1_000,
        tcp_nodelay: true,
        stop_timeout_ms: 60_000,
        session: session(ConnectionConfig::default()),
        broker: BrokerConfig { loopback_user: String::new(), ..BrokerConfig::default() },
        segment_bytes: 1024 * 1024,
        accept_damage: false,
        bootstrap_user: "guest".to_owned(),
        bootstrap_password: "guest".to_owned(),
    }
}

pub(crate) fn session(connection: ConnectionConfig) -> SessionConfig {
    SessionConfig { connection: Arc::new(connection), loopback_users: vec!["guest".to_owned()] }
}

/// A running node; it is stopped at the end of the test.
pub(crate) struct Server {
    node: Option<Node>,
    pub(crate) address: SocketAddr,
}

impl Server {
    pub(crate) fn start(dir: &TestDir) -> Self {
        Self::start_with(config(dir.path()))
    }

    pub(crate) fn start_with(config: NodeConfig) -> Self {
        let directory = DataDir::lock(&config.data_dir).unwrap();
        Self::of(Node::start(config, directory).unwrap())
    }

    pub(crate) fn start_on_disk(disk: Arc<dyn Disk>) -> Self {
        Self::of(Node::start_on_disk(config(Path::new("/nowhere")), disk).unwrap())
    }

    fn of(node: Node) -> Self {
        let address = node.amqp_addresses()[0];
        Self { node: Some(node), address }
    }

    pub(crate) fn handle(&self) -> &CoreHandle {
        self.node.as_ref().unwrap().handle()
    }

    pub(crate) fn authenticator(&self) -> &Authenticator {
        self.node.as_ref().unwrap().authenticator()
    }

    /// Runs a closure on the core thread.
    pub(crate) fn call<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Core) -> R + Send + 'static,
    ) -> R {
        block_on(self.handle().call(call)).unwrap()
    }

    /// Waits until the core says so.
    pub(crate) fn until(
        &self,
        what: &str,
        condition: impl Fn(&mut Core) -> bool + Copy + Send + 'static,
    ) {
        let deadline = Instant::now() + PATIENCE;
        while !self.call(condition) {
            assert!(Instant::now() < deadline, "waited for: {what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn stop(mut self) -> Stopped {
        let node = self.node.take().unwrap();
        block_on(node.handle().call(|core| core.begin_stop())).unwrap();
        node.join()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(node) = self.node.take() {
            // A node that has stopped already is what is wanted.
            let _ = block_on(node.handle().call(|core| core.begin_stop()));
            let _ = node.join();
        }
    }
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

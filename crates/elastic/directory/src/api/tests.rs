//! Changes through the API, of a directory whose store can be cut off.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use quelea_elastic_core::directory::Settings;
use quelea_elastic_core::ownership::keys;
use quelea_elastic_proto::frame::Acknowledge;
use quelea_net::SignInFailures;
use tokio::task::JoinHandle;

use super::*;
use crate::counters::DirectoryCounters;
use crate::meta::MetaStore;
use crate::ownership::tests::{Cut, store};
use crate::server::{DirectoryServer, DirectorySettings, MetaSettings, ProviderSettings};

/// A relay that waits to be ended; if it is held by a file, until that is gone.
const PROGRAM: &str = r#"#!/bin/sh
[ "$(head -c 2)" = go ] || exit 9
[ -e "$0.held" ] || exec sleep 600
trap '' TERM
while [ -e "$0.held" ]; do sleep 0.01; done
"#;

/// A directory whose relays wait to be ended.
struct Site {
    meta: Arc<Cut>,
    directory: DirectoryHandle,
    server: Option<DirectoryServer>,
    file: PathBuf,
    dir: PathBuf,
}

impl Site {
    fn start(name: &str) -> Self {
        let (meta, file) = store(name);
        let dir = file.with_extension("relays");
        std::fs::create_dir_all(&dir).expect("a directory");
        let program = dir.join("program");
        std::fs::write(&program, PROGRAM).expect("a program");
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, executable).expect("a program that can be run");
        let server = Self::serve(&meta, dir.clone(), program);
        Self { meta, directory: server.handle(), server: Some(server), file, dir }
    }

    fn serve(meta: &Arc<Cut>, dir: PathBuf, program: PathBuf) -> DirectoryServer {
        let shared = Arc::clone(meta) as Arc<dyn MetaStore>;
        let server = DirectoryServer::start(DirectorySettings {
            listener: TcpListener::bind("127.0.0.1:0").expect("a port"),
            advertise: String::new(),
            key: Vec::new(),
            core: Settings::default(),
            queues: Vec::new(),
            provider: ProviderSettings::Process { dir, program },
            relay_listen: "127.0.0.1:0".to_owned(),
            relay_network_bytes_per_s_max: 0,
            key_file: String::new(),
            metadata: MetaSettings::Shared(Box::new(|| Box::pin(async { Ok(shared) }))),
            stop_relays: true,
            counters: Arc::<DirectoryCounters>::default(),
            connections_max: 8,
            failures: SignInFailures::default(),
        });
        server.expect("a directory")
    }

    /// Another directory over the same store, which has not looked at its queues yet.
    fn restart(&mut self) {
        self.stop();
        let server = Self::serve(&self.meta, self.dir.clone(), self.dir.join("program"));
        self.directory = server.handle();
        self.server = Some(server);
    }

    fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            // It waits, which a runtime's thread may not.
            let _ = std::thread::spawn(|| server.stop()).join();
        }
    }

    fn cut(&self, is_cut: bool) {
        self.meta.cut.send_replace(is_cut);
    }

    async fn put(&self, fields: &'static str) -> StatusCode {
        status(self.begin_put(fields)).await
    }

    fn begin_put(&self, fields: &'static str) -> JoinHandle<Result<StatusCode, Refusal>> {
        let fields = Bytes::from_static(fields.as_bytes());
        tokio::spawn(define(self.directory.clone(), Path("prices".to_owned()), fields))
    }

    /// Asks for the deletion, and returns when it has begun.
    async fn begin_delete(&self) -> JoinHandle<Result<StatusCode, Refusal>> {
        let deleted = tokio::spawn(delete(self.directory.clone(), Path("prices".to_owned())));
        while self.definition().await.is_some() {
            tokio::task::yield_now().await;
        }
        deleted
    }

    async fn definition(&self) -> Option<Definition> {
        let found = self.directory.ask(|driver| driver.core.definition("prices").cloned()).await;
        found.expect("a directory")
    }

    async fn record(&self) -> Option<String> {
        let found = self.meta.get(&keys::queue("prices")).await.expect("a store");
        found.map(|entry| String::from_utf8_lossy(&entry.value).into_owned())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop();
        let _ = std::fs::remove_file(&self.file);
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

async fn status(answer: JoinHandle<Result<StatusCode, Refusal>>) -> StatusCode {
    answer.await.expect("an answer").expect("no refusal")
}

#[tokio::test]
async fn a_deletion_is_answered_when_it_is_durable() {
    let site = Site::start("deletion");
    assert_eq!(site.put("{}").await, StatusCode::CREATED);
    site.cut(true);
    let deleted = site.begin_delete().await;
    for _ in 0..100 {
        // The directory has done all that it can.
        assert!(site.definition().await.is_none());
        assert!(!deleted.is_finished(), "nobody else would know of it");
    }
    site.cut(false);
    assert_eq!(status(deleted).await, StatusCode::NO_CONTENT);
    let record = site.record().await;
    let is_durable = |record: &String| record.contains(r#""deleting":true"#);
    assert!(record.as_ref().is_none_or(is_durable), "{record:?}");
}

#[tokio::test]
async fn a_queue_put_while_it_is_deleted_is_a_new_one() {
    let site = Site::start("redefinition");
    let held = site.dir.join("program.held");
    std::fs::write(&held, "").expect("a file");
    assert_eq!(site.put(r#"{"acknowledge":"delivered"}"#).await, StatusCode::CREATED);
    // Its relay is not asked to end before the store says that it is to.
    site.cut(true);
    let deleted = site.begin_delete().await;
    let made = site.begin_put(r#"{"relays_max":4}"#);
    while site.definition().await.is_none() {
        tokio::task::yield_now().await;
    }
    site.cut(false);
    assert_eq!(status(deleted).await, StatusCode::NO_CONTENT, "although its relay has not ended");
    std::fs::remove_file(&held).expect("the file");
    assert_eq!(status(made).await, StatusCode::CREATED);
    let definition = site.definition().await.expect("a queue");
    assert_eq!((definition.sla.relays_max, definition.acknowledge), (4, Acknowledge::Relayed));
    let record = site.record().await.expect("a record");
    assert!(record.contains(r#""relays_max":4"#), "{record}");
}

#[tokio::test]
async fn fields_that_are_not_named_stay_although_the_queue_is_not_loaded() {
    let mut site = Site::start("not-loaded");
    assert_eq!(site.put(r#"{"acknowledge":"delivered"}"#).await, StatusCode::CREATED);
    site.restart();
    assert_eq!(site.put(r#"{"relays_max":4}"#).await, StatusCode::NO_CONTENT);
    let definition = site.definition().await.expect("a queue");
    assert_eq!((definition.sla.relays_max, definition.acknowledge), (4, Acknowledge::Delivered));
}

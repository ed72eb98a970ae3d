//! Directories' ownership with a store that can be cut off.

use std::path::PathBuf;

use quelea_elastic_core::directory::{Input as DirectoryInput, RelayHandle, RelaySpec};
use quelea_elastic_core::ownership::ClusterView;
use quelea_elastic_core::ownership::keys::Shard;
use quelea_elastic_proto::Fence;
use tokio::sync::mpsc::{Receiver, UnboundedSender, channel, unbounded_channel};
use tokio::sync::{oneshot, watch};

use super::*;
use crate::ResultFuture;
use crate::meta::embedded::Embedded;
use crate::meta::{Entry, LeaseId, Listing, Revision, Txn, TxnOutcome};
use crate::provider::{ProviderError, ProviderEvent, Running};

/// Long for a loaded machine; nothing here takes as long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Nothing answers while it is cut off.
pub(crate) struct Cut {
    store: Embedded,
    pub(crate) cut: watch::Sender<bool>,
}

impl Cut {
    fn through<'a, T: Send + 'a>(
        &'a self,
        asked: ResultFuture<'a, T, MetaError>,
    ) -> ResultFuture<'a, T, MetaError> {
        Box::pin(async move {
            // It fails only without `self`.
            let _ = self.cut.subscribe().wait_for(|cut| !cut).await;
            asked.await
        })
    }
}

impl MetaStore for Cut {
    fn name(&self) -> &'static str {
        "cut"
    }

    fn get<'a>(&'a self, key: &'a str) -> ResultFuture<'a, Option<Entry>, MetaError> {
        self.through(self.store.get(key))
    }

    fn list<'a>(&'a self, prefix: &'a str) -> ResultFuture<'a, Listing, MetaError> {
        self.through(self.store.list(prefix))
    }

    fn txn(&self, txn: Txn) -> ResultFuture<'_, TxnOutcome, MetaError> {
        self.through(self.store.txn(txn))
    }

    fn lease(&self, ttl: Duration) -> ResultFuture<'_, LeaseId, MetaError> {
        self.through(self.store.lease(ttl))
    }

    fn keep_alive(&self, lease: LeaseId) -> ResultFuture<'_, (), MetaError> {
        self.through(self.store.keep_alive(lease))
    }

    fn revoke(&self, lease: LeaseId) -> ResultFuture<'_, (), MetaError> {
        self.through(self.store.revoke(lease))
    }

    fn watch<'a>(
        &'a self,
        prefix: &'a str,
        after: Revision,
    ) -> ResultFuture<'a, Box<dyn Watch>, MetaError> {
        let cut = self.cut.subscribe();
        self.through(Box::pin(async move {
            let inner = self.store.watch(prefix, after).await?;
            Ok(Box::new(CutWatch { inner, cut }) as Box<dyn Watch>)
        }))
    }
}

/// Breaks when the store is cut off.
struct CutWatch {
    inner: Box<dyn Watch>,
    cut: watch::Receiver<bool>,
}

impl Watch for CutWatch {
    fn next(&mut self) -> ResultFuture<'_, Vec<Change>, MetaError> {
        Box::pin(async move {
            tokio::select! {
                changes = self.inner.next() => changes,
                _ = self.cut.wait_for(|cut| *cut) => {
                    let (store, what, cause) = ("cut", "watch".to_owned(), "it is cut".to_owned());
                    Err(MetaError::Unavailable { store, what, cause })
                }
            }
        })
    }
}

/// Runs nothing, and says so; or fails, which takes it some time, and counts how often it was asked.
struct Nobody {
    fails: Option<watch::Sender<u32>>,
}

impl Provider for Nobody {
    fn name(&self) -> &'static str {
        "nobody"
    }

    fn start<'a>(&'a self, _spec: &'a RelaySpec) -> ResultFuture<'a, RelayHandle, ProviderError> {
        Box::pin(pending())
    }

    fn list<'a>(
        &'a self,
        _queue: Option<&'a str>,
    ) -> ResultFuture<'a, Vec<Running>, ProviderError> {
        Box::pin(async {
            let Some(asked) = &self.fails else { return Ok(Vec::new()) };
            asked.send_modify(|count| *count += 1);
            tokio::time::sleep(Duration::from_millis(100)).await;
            let (provider, what) = ("nobody", "list relays".to_owned());
            Err(ProviderError::Unavailable { provider, what, cause: "it fails".to_owned() })
        })
    }

    fn stop<'a>(
        &'a self,
        _queue: &'a str,
        _handle: &'a RelayHandle,
        _grace: Duration,
    ) -> ResultFuture<'a, (), ProviderError> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn event(&self) -> std::pin::Pin<Box<dyn Future<Output = ProviderEvent> + Send + '_>> {
        Box::pin(pending())
    }
}

struct Life {
    commands: UnboundedSender<Command>,
    outbox: Receiver<Message>,
}

impl Life {
    fn start(meta: Arc<dyn MetaStore>) -> Self {
        Self::at("127.0.0.1:5670", meta)
    }

    fn at(advertise: &str, meta: Arc<dyn MetaStore>) -> Self {
        Self::with(advertise, meta, Nobody { fails: None })
    }

    fn with(advertise: &str, meta: Arc<dyn MetaStore>, provider: Nobody) -> Self {
        let (commands, commanded) = unbounded_channel();
        let (inbox, outbox) = channel(64);
        let ownership = Ownership {
            meta,
            provider: Arc::new(provider),
            advertise: advertise.to_owned(),
            directories: Directories::default(),
            is_shared: true,
            inbox,
        };
        tokio::spawn(ownership.run(commanded));
        Self { commands, outbox }
    }

    fn claim(&self) {
        assert!(
            self.commands.send(Command::Input(Input::Claim { queue: "prices".to_owned() })).is_ok()
        );
    }

    /// Waits for the next message that is not of directories.
    async fn outbox(&mut self) -> Message {
        loop {
            let outbox = timeout(PATIENCE, self.outbox.recv()).await.expect("a message in time");
            match outbox.expect("a message") {
                Message::Input(DirectoryInput::Directories(_)) => {}
                other => return other,
            }
        }
    }

    /// Waits until it says that there are these directories.
    async fn knows(&mut self, directories: &[&str]) {
        loop {
            let outbox = timeout(PATIENCE, self.outbox.recv()).await.expect("a message in time");
            if let Some(Message::Input(DirectoryInput::Directories(outbox))) = outbox
                && outbox == directories
            {
                return;
            }
        }
    }

    async fn owned(&mut self) -> Fence {
        match self.outbox().await {
            Message::Input(DirectoryInput::Owned { queue, fence, .. }) => {
                assert_eq!(queue, "prices");
                fence
            }
            _ => panic!("not owned"),
        }
    }

    /// Returns who owns the queue's shard, as this one knows it. What it was sent before has been
    /// done then.
    async fn owner(&self) -> Option<Fence> {
        let (sender, outbox) = oneshot::channel();
        let look = Box::new(move |view: Option<&ClusterView>| {
            let owner = view.and_then(|view| view.owner(Shard::of("prices")));
            let owner = owner.map(|(_, fence)| fence);
            assert!(sender.send(owner).is_ok());
        });
        assert!(self.commands.send(Command::View(look)).is_ok());
        timeout(PATIENCE, outbox).await.expect("a look in time").expect("a look")
    }
}

pub(crate) fn store(name: &str) -> (Arc<Cut>, PathBuf) {
    let path = std::env::temp_dir().join(format!("quelea-ownership-{name}-{}", std::process::id()));
    let store = Embedded::open(&path).expect("a store");
    (Arc::new(Cut { store, cut: watch::Sender::new(false) }), path)
}

#[tokio::test]
async fn one_that_is_cut_off_gives_up_what_it_owns_by_itself() {
    let (meta, path) = store("cut");
    let mut life = Life::start(Arc::clone(&meta) as _);
    life.claim();
    let fence = life.owned().await;
    assert_eq!(life.owner().await, Some(fence));
    meta.cut.send_replace(true);
    // Asked all the while, and the store never answers.
    life.claim();
    assert!(matches!(life.outbox().await, Message::ShardLost { owner: None, .. }));
    assert_eq!(life.owner().await, None);
    life.claim();
    meta.cut.send_replace(false);
    assert!(life.owned().await > fence);
    std::fs::remove_file(path).expect("the store's file");
}

#[tokio::test]
async fn a_directory_learns_which_others_come_and_go() {
    let (meta, path) = store("directories");
    let mut first = Life::at("10.0.0.2:5670", Arc::clone(&meta) as _);
    first.knows(&["10.0.0.2:5670"]).await;
    let mut second = Life::at("10.0.0.1:5670", Arc::clone(&meta) as _);
    first.knows(&["10.0.0.2:5670", "10.0.0.1:5670"]).await;
    second.knows(&["10.0.0.1:5670", "10.0.0.2:5670"]).await;
    assert!(second.commands.send(Command::Stop).is_ok());
    first.knows(&["10.0.0.2:5670"]).await;
    std::fs::remove_file(path).expect("the store's file");
}

#[tokio::test]
async fn an_address_has_one_directory_at_a_time() {
    let (meta, path) = store("address");
    let mut first = Life::start(Arc::clone(&meta) as _);
    first.claim();
    let fence = first.owned().await;
    let mut second = Life::start(Arc::clone(&meta) as _);
    while second.owner().await != Some(fence) {
        tokio::task::yield_now().await;
    }
    second.claim();
    assert_eq!(second.owner().await, Some(fence));
    while let Ok(outbox) = first.outbox.try_recv() {
        let of_directories = matches!(outbox, Message::Input(DirectoryInput::Directories(_)));
        assert!(of_directories, "nothing was taken from it");
    }
    assert!(first.commands.send(Command::Stop).is_ok());
    assert!(second.owned().await > fence);
    std::fs::remove_file(path).expect("the store's file");
}

/// With several queues one is always due again.
#[tokio::test]
async fn a_slow_provider_that_fails_keeps_nobody_from_looking() {
    let (meta, path) = store("provider");
    let (asked, mut count) = watch::channel(0);
    let life = Life::with("127.0.0.1:5670", Arc::clone(&meta) as _, Nobody { fails: Some(asked) });
    for number in 0..8 {
        let queue = format!("queue {number}");
        assert!(life.commands.send(Command::Input(Input::Claim { queue })).is_ok());
    }
    let asked = timeout(PATIENCE, count.wait_for(|count| *count > 16)).await;
    assert!(asked.is_ok_and(|asked| asked.is_ok()));
    assert_eq!(life.owner().await, None);
    std::fs::remove_file(path).expect("the store's file");
}

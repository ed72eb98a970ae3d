//! The task beside the driver that asks the metadata store and the provider what
//! [`quelea_elastic_core::ownership`] wants to know, and gives it what they say.

use std::collections::VecDeque;
use std::future::pending;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use quelea_elastic_core::directory::Input as DirectoryInput;
use quelea_elastic_core::ownership::{Answer, Call, Effect, Input, LEASE_TTL_MS, Request};
use quelea_elastic_core::ownership::{Ownership as Core, keys};
use quelea_elastic_proto::Time;
use tokio::sync::mpsc::{Permit, Sender, UnboundedReceiver};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

use crate::driver::message::Message;
use crate::meta::{Change, MetaError, MetaStore, Watch};
use crate::ownership_command::Command;
use crate::provider::{Directories, Provider};

/// What the store may take at the end, milliseconds.
const REVOKE_MS_MAX: u64 = 3_000;

/// What the task works with.
pub(crate) struct Ownership {
    pub(crate) meta: Arc<dyn MetaStore>,
    pub(crate) provider: Arc<dyn Provider>,
    /// This directory's address, as others reach it.
    pub(crate) advertise: String,
    /// Where relays are to register.
    pub(crate) directories: Directories,
    /// Other directories can have the same store: else directories are announced to nobody.
    pub(crate) is_shared: bool,
    pub(crate) inbox: Sender<Message>,
}

/// An answer, and how the store is followed from there.
type Answered = (Call, Answer, Option<Box<dyn Watch>>);

struct Task {
    with: Ownership,
    core: Core,
    began: Instant,
    asked: JoinSet<Answered>,
    watch: Option<Box<dyn Watch>>,
    /// For the driver, which may be slow: until it has this no more is taken or begun, but the lease is kept.
    outbox: VecDeque<Message>,
    /// It hears nothing any more.
    driver_ended: bool,
}

/// What the task waits for.
enum Event<'a> {
    Command(Option<Command>),
    Changes(Result<Vec<Change>, MetaError>),
    Answered(Result<Answered, JoinError>),
    /// For a message to the driver; none: it has ended.
    Room(Option<Permit<'a, Message>>),
    Deadline,
    Due,
}

impl Ownership {
    /// Runs until [`Command::Stop`], or the driver's end.
    pub(crate) async fn run(self, mut commands: UnboundedReceiver<Command>) {
        let instance = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
        let mut task = Task {
            core: Core::new(self.advertise.clone(), instance, Time::ZERO),
            with: self,
            began: Instant::now(),
            asked: JoinSet::new(),
            watch: None,
            outbox: VecDeque::new(),
            driver_ended: false,
        };
        let inbox = task.with.inbox.clone();
        task.apply_effects();
        loop {
            let deadline = task.instant(task.core.next_deadline());
            let due = task.core.next_due().map(|at| task.instant(at));
            let idle = !task.core.is_busy() && task.outbox.is_empty();
            let event = tokio::select! {
                command = commands.recv(), if idle => Event::Command(command),
                changes = next(&mut task.watch), if idle => Event::Changes(changes),
                Some(answered) = task.asked.join_next() => Event::Answered(answered),
                room = inbox.reserve(), if !task.outbox.is_empty() => Event::Room(room.ok()),
                () = sleep_until(deadline) => Event::Deadline,
                () = sleep_until(due.unwrap_or(deadline)), if idle && due.is_some() => Event::Due,
            };
            match event {
                Event::Command(None | Some(Command::Stop)) => return task.stop().await,
                Event::Command(Some(Command::Input(input))) => task.core.handle(task.now(), input),
                Event::Command(Some(Command::View(look))) => look(task.core.view()),
                Event::Changes(changes) => task.changed(changes),
                Event::Answered(Ok(answered)) => task.answered(answered),
                Event::Answered(Err(broken)) => std::panic::resume_unwind(broken.into_panic()),
                Event::Room(Some(room)) => {
                    if let Some(message) = task.outbox.pop_front() {
                        room.send(message);
                    }
                }
                // Its relays may still be ended: the queues are its own until that is done.
                Event::Room(None) => {
                    task.driver_ended = true;
                    task.outbox.clear();
                }
                Event::Deadline => task.core.tick(task.now()),
                Event::Due => task.core.run_deferred(task.now()),
            }
            task.apply_effects();
        }
    }
}

impl Task {
    fn now(&self) -> Time {
        Time::from_micros(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn instant(&self, at: Time) -> Instant {
        self.began + Duration::from_micros(at.as_micros())
    }

    /// The driver gets it when there is room.
    fn notify(&mut self, message: Message) {
        if !self.driver_ended {
            self.outbox.push_back(message);
        }
    }

    fn changed(&mut self, changes: Result<Vec<Change>, MetaError>) {
        let input = changes.map_or_else(
            |error| {
                tracing::warn!(%error, "changes of metadata are not seen: looking again");
                self.watch = None;
                Input::WatchLost
            },
            Input::Changes,
        );
        self.core.handle(self.now(), input);
    }

    fn answered(&mut self, (call, answer, watch): Answered) {
        if watch.is_some() {
            self.watch = watch;
        }
        self.core.answered(self.now(), call, answer);
    }

    fn apply_effects(&mut self) {
        while let Some(effect) = self.core.poll_effect() {
            match effect {
                Effect::Request { call, request, timeout_ms } => {
                    self.ask(call, request, timeout_ms)
                }
                Effect::Notify(DirectoryInput::Directories(_)) if !self.with.is_shared => {}
                Effect::Notify(DirectoryInput::Directories(all)) => {
                    // Relays that are started get them, as those that run.
                    self.with.directories.set(all.clone());
                    self.notify(Message::Input(DirectoryInput::Directories(all)));
                }
                Effect::Notify(input) => self.notify(Message::Input(input)),
                Effect::ShardLost { shard, owner } => {
                    self.notify(Message::ShardLost { shard, owner });
                }
                Effect::Info(text) => tracing::info!("{text}"),
                Effect::Warn(text) => tracing::warn!("{text}"),
            }
        }
    }

    fn ask(&mut self, call: Call, request: Request, timeout_ms: u64) {
        let (meta, provider) = (Arc::clone(&self.with.meta), Arc::clone(&self.with.provider));
        self.asked.spawn(async move {
            let asked = answer(meta.as_ref(), provider.as_ref(), request);
            let answered = timeout(Duration::from_millis(timeout_ms), asked).await;
            let (answer, watch) = answered.unwrap_or_else(|_| {
                (Answer::Failed(format!("no answer within {} s", timeout_ms as f64 / 1e3)), None)
            });
            (call, answer, watch)
        });
    }

    async fn stop(self) {
        let Some(lease) = self.core.lease() else { return };
        let revoked = timeout(Duration::from_millis(REVOKE_MS_MAX), self.with.meta.revoke(lease));
        if !matches!(revoked.await, Ok(Ok(()))) {
            tracing::warn!("this directory's lease is left to end by itself");
        }
    }
}

/// Waits for the next changes; for ever if nothing is watched.
async fn next(watch: &mut Option<Box<dyn Watch>>) -> Result<Vec<Change>, MetaError> {
    match watch {
        Some(watch) => watch.next().await,
        None => pending().await,
    }
}

async fn answer(
    meta: &dyn MetaStore,
    provider: &dyn Provider,
    request: Request,
) -> (Answer, Option<Box<dyn Watch>>) {
    let answered = match request {
        Request::ListAndWatch => match list_and_watch(meta).await {
            Ok((answer, watch)) => return (answer, Some(watch)),
            Err(error) => Err(error),
        },
        Request::Get(key) => meta.get(&key).await.map(Answer::Got),
        Request::Txn(txn) => meta.txn(txn).await.map(Answer::Txn),
        Request::Lease => meta.lease(Duration::from_millis(LEASE_TTL_MS)).await.map(Answer::Lease),
        Request::KeepAlive(lease) => meta.keep_alive(lease).await.map(|()| Answer::Alive),
        Request::Relays { queue } => {
            let listed = provider.list(Some(&queue)).await;
            let running = |running: Vec<crate::provider::Running>| {
                Answer::Running(running.into_iter().map(|running| running.handle).collect())
            };
            return (listed.map_or_else(|error| Answer::Failed(error.to_string()), running), None);
        }
    };
    let answer = answered.unwrap_or_else(|error| match error {
        MetaError::LeaseEnded(_) => Answer::LeaseEnded,
        error => Answer::Failed(error.to_string()),
    });
    (answer, None)
}

async fn list_and_watch(meta: &dyn MetaStore) -> Result<(Answer, Box<dyn Watch>), MetaError> {
    let listing = meta.list(keys::ROOT).await?;
    let watch = meta.watch(keys::ROOT, listing.revision).await?;
    Ok((Answer::Listed(listing.entries), watch))
}

#[cfg(test)]
pub(crate) mod tests;

//! One relay's messages: read, published in order, and acknowledged when the store has them.
//!
//! While the broker takes no messages nothing is read, so the relay's producers get no
//! acknowledgement, and hold back by themselves.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use quelea_broker::Effect;
use quelea_elastic_proto::frame::{ErrorCode, Hello, Role, Welcome, WireError};
use quelea_elastic_proto::wire::FrameBuffer;
use quelea_elastic_proto::{ClientId, Frame, FrameError, MessageSeq, limits};
use quelea_net::Front;
use quelea_node::{Backoff, Core, CoreStopped, InternalClient, Promise, stopped};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, channel, unbounded_channel};
use tokio::sync::watch;
use tokio::task::spawn_local;
use tokio::time::{interval, sleep, timeout};

use super::Keeper;
use super::batch::{Batch, Run};
use super::durable_publisher::{Attempt, DurablePublisher, Position, PublisherError};
use super::ledger::Ledger;
use crate::declare;
use crate::publish::PublishRefusal;

/// How often a relay says something; silent for three times as long it is gone.
const HEARTBEAT_MS: u32 = 10_000;

/// A relay has to greet and to name its queue within this time.
const GREETING_MAX: Duration = Duration::from_secs(10);

/// Batches that wait for the store: what they hold is in the broker's memory already, and bounded
/// there.
const BATCHES_UNSTORED_MAX: usize = 1_024;

/// How often a relay that nothing is read from hears of us: it gives up a keeper that is silent for 10 s.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);

/// How long a stop waits for what is published to become safe.
const END_MAX: Duration = Duration::from_secs(1);

/// A batch that was published: the store's promise, and what to acknowledge then.
type Unstored = (Promise, Vec<(ClientId, MessageSeq)>);

/// A relay that has messages kept.
pub(crate) struct Connection {
    keeper: Keeper,
    peer: SocketAddr,
    reading: OwnedReadHalf,
    buffer: FrameBuffer,
    /// What goes back, in order.
    answers: Sender<Frame>,
}

/// Why it ends.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("the relay has closed")]
    Closed,
    #[error("the bridge stops")]
    Stopped,
    #[error("it has said nothing for {} s", 3 * HEARTBEAT_MS / 1_000)]
    Silent,
    #[error(transparent)]
    CoreStopped(#[from] CoreStopped),
    #[error("{}: {}", .0.field, .0.text)]
    Refused(WireError),
}

impl From<FrameError> for End {
    fn from(error: FrameError) -> Self {
        Self::Refused(error.into())
    }
}

impl Connection {
    /// Serves it to its end.
    pub(crate) async fn serve(
        keeper: Keeper,
        socket: TcpStream,
        peer: SocketAddr,
        mut stop: watch::Receiver<bool>,
    ) {
        // Small answers are not to wait for one another.
        let _ = quelea_net::prepare_socket(&socket);
        let (reading, writing) = socket.into_split();
        let (answers, to_write) = channel(BATCHES_UNSTORED_MAX);
        let writer = spawn_local(write(writing, to_write));
        let mut connection = Self { keeper, peer, reading, buffer: FrameBuffer::new(), answers };
        let end = connection.keep(&mut stop).await;
        if let Err(End::Refused(error)) = &end {
            // The writer may have ended with the socket.
            let sent = connection.answers.send(Frame::Error(error.clone()));
            let _ = timeout(END_MAX, sent).await;
        }
        if let Err(end) = end {
            tracing::debug!(%peer, reason = %end, "a relay's messages are not kept any more");
        }
        drop(connection);
        let _ = timeout(END_MAX, writer).await;
    }

    async fn keep(&mut self, stop: &mut watch::Receiver<bool>) -> Result<(), End> {
        let greeted = timeout(GREETING_MAX, self.open()).await;
        let (publisher, effects) = greeted.unwrap_or(Err(End::Silent))?;
        let (unstored, promises) = channel(BATCHES_UNSTORED_MAX);
        let acknowledging = spawn_local(acknowledge(promises, self.answers.clone()));
        let end = self.take_all(&publisher, effects, &unstored, stop).await;
        drop(unstored);
        // What is published becomes safe soon, and then need not come again; but not while the disk is
        // full.
        let _ = timeout(END_MAX, acknowledging).await;
        let connection = publisher.connection;
        self.keeper.core.call(move |core| core.detach(connection)).await?;
        end
    }

    /// Answers HELLO with WELCOME, and waits for KEEP_OPEN. Returns the publisher into the durable
    /// queue, with the receiver of its effects.
    async fn open(&mut self) -> Result<(DurablePublisher, UnboundedReceiver<Effect>), End> {
        match self.next_frame().await? {
            Frame::Hello(hello) => self.check(&hello)?,
            other => {
                let text = format!("got {}", other.kind().name());
                return Err(refuse(ErrorCode::Order, "hello", text));
            }
        }
        self.buffer.greeted();
        let welcome = Welcome { version: limits::VERSION, heartbeat_ms: HEARTBEAT_MS };
        self.answer(Frame::Welcome(welcome)).await?;
        loop {
            match self.next_frame().await? {
                Frame::KeepOpen { queue, target } => {
                    return self.open_publisher(queue, target).await;
                }
                Frame::Ping(number) => self.answer(Frame::Pong(number)).await?,
                other => {
                    let text = format!("got {} before it", other.kind().name());
                    return Err(refuse(ErrorCode::Order, "keep_open", text));
                }
            }
        }
    }

    fn check(&self, hello: &Hello) -> Result<(), End> {
        if hello.version != limits::VERSION {
            let text = format!("version {} is spoken here, not {}", limits::VERSION, hello.version);
            return Err(refuse(ErrorCode::Version, "version", text));
        }
        if hello.role != Role::Keeper {
            let text = format!("the keeper takes role Keeper, not {:?}", hello.role);
            return Err(refuse(ErrorCode::Value, "role", text));
        }
        if !hello.has_key(&self.keeper.key) {
            return Err(self.refuse_proof("key", "it is not the one that is asked for".to_owned()));
        }
        if self.keeper.loopback_only && !self.peer.ip().to_canonical().is_loopback() {
            let (user, peer) = (&self.keeper.user, self.peer);
            let text = format!("user '{user}' may come from this machine only, not from {peer}");
            return Err(self.refuse_proof("address", text));
        }
        Ok(())
    }

    /// Refuses who is not a relay of ours: counted, and logged when their number has doubled. A key cannot be guessed, so
    /// the answer need not be late.
    fn refuse_proof(&self, field: &'static str, text: String) -> End {
        let peer = self.peer.ip().to_canonical();
        let failed = self.keeper.failures.add(Front::Keeper, peer, Front::Keeper.name());
        if failed.is_logged() {
            let in_row = failed.in_row;
            tracing::warn!(%peer, field, text, in_row, "a relay that brings messages is refused");
        }
        refuse(ErrorCode::Key, field, text)
    }

    async fn open_publisher(
        &self,
        queue: String,
        target: String,
    ) -> Result<(DurablePublisher, UnboundedReceiver<Effect>), End> {
        let (sender, effects) = unbounded_channel();
        let (user, vhost) = (self.keeper.user.clone(), self.keeper.vhost.clone());
        let local =
            self.reading.local_addr().map_or_else(|_| String::new(), |local| local.to_string());
        let opened = declare::when_checked(&self.keeper.core, || {
            let (user, vhost, local, sender) =
                (user.clone(), vhost.clone(), local.clone(), sender.clone());
            let (queue, target) = (queue.clone(), target.clone());
            move |core: &mut Core| {
                let name = format!("elastic queue {queue}");
                let (user, vhost, local, name) = (&*user, &*vhost, &*local, &*name);
                let client = InternalClient { user, vhost, local, name, protocol: "EQS 1" };
                DurablePublisher::open(core, client, sender, queue.into(), target.into())
            }
        });
        match opened.await? {
            Ok(publisher) => Ok((publisher, effects)),
            Err(error @ (PublisherError::Open(_) | PublisherError::Declare(_))) => {
                Err(refuse(ErrorCode::Unavailable, "target", error.to_string()))
            }
        }
    }

    async fn take_all(
        &mut self,
        publisher: &DurablePublisher,
        mut effects: UnboundedReceiver<Effect>,
        unstored: &Sender<Unstored>,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<(), End> {
        loop {
            let batch = tokio::select! {
                biased;
                () = stopped(stop) => return Err(End::Stopped),
                Some(effect) = effects.recv() => {
                    if let Effect::CloseConnection { reason, .. } = effect {
                        return Err(refuse(ErrorCode::Unavailable, "target", reason.text()));
                    }
                    continue;
                }
                batch = self.next_batch() => batch?,
            };
            if !batch.is_empty() {
                self.publish(publisher, batch, unstored, stop).await?;
            }
        }
    }

    /// Returns what is there, up to a batch's size; empty if only other frames came. Loses nothing
    /// when it is dropped: it waits only while it has nothing.
    async fn next_batch(&mut self) -> Result<Batch, End> {
        let mut batch = Batch::default();
        loop {
            while !batch.is_full() {
                match self.buffer.next_frame()? {
                    Some(Frame::Keep { producer, first, messages }) => {
                        let (value, count) = (first.0, messages.len() as u64);
                        if value.checked_add(count).is_none() {
                            let text = format!("{value} and {count} messages pass the last number");
                            return Err(refuse(ErrorCode::Value, "first", text));
                        }
                        batch.push(Run { producer, first, messages });
                    }
                    Some(Frame::Ping(number)) => {
                        // A relay that reads nothing is not answered; it does not hold us up.
                        let _ = self.answers.try_send(Frame::Pong(number));
                    }
                    Some(Frame::Pong(_)) => {}
                    Some(Frame::Bye(_)) => return Err(End::Closed),
                    Some(other) => {
                        let text = format!("got {}", other.kind().name());
                        return Err(refuse(ErrorCode::Order, "keep", text));
                    }
                    None => break,
                }
            }
            if !batch.is_empty() {
                return Ok(batch);
            }
            self.read().await?;
        }
    }

    /// Publishes a batch, as soon as the broker takes it; it is acknowledged when it is safe.
    async fn publish(
        &self,
        publisher: &DurablePublisher,
        batch: Batch,
        unstored: &Sender<Unstored>,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<(), End> {
        let batch = Arc::new(batch);
        let (mut backoff, mut at) = (Backoff::new(), Position::default());
        loop {
            let (attempt, promise) = self.attempt(publisher, &batch, at).await?;
            at = attempt.at;
            self.keeper.counters.kept.fetch_add(attempt.published, Relaxed);
            if attempt.published > 0 {
                // Somebody makes room: there may be more soon.
                backoff.reset();
            }
            self.keeper.counters.repeated.fetch_add(attempt.repeated, Relaxed);
            // The other end is gone after the store has failed: then nothing is acknowledged any more.
            let _ = waiting(&self.answers, stop, unstored.send((promise, attempt.kept))).await?;
            match attempt.refusal {
                None => return Ok(()),
                Some(refusal) if refusal.passes() => {
                    let queue = &publisher.target;
                    if matches!(refusal, PublishRefusal::Declare(_)) {
                        // Whether the name is another store's is answered soon, and the answer is only good for a second.
                        backoff.reset();
                    }
                    tracing::debug!(%queue, reason = %refusal, "the keeper waits");
                }
                Some(refusal) => {
                    return Err(refuse(ErrorCode::Unavailable, "target", refusal.to_string()));
                }
            }
            waiting(&self.answers, stop, sleep(backoff.next_wait())).await?;
        }
    }

    async fn attempt(
        &self,
        publisher: &DurablePublisher,
        batch: &Arc<Batch>,
        from: Position,
    ) -> Result<(Attempt, Promise), CoreStopped> {
        let (publisher, batch) = (publisher.clone(), Arc::clone(batch));
        let ledger = Arc::clone(&self.keeper.ledger);
        let publish =
            move |core: &mut Core| publisher.publish(core, &mut lock(&ledger), &batch, from);
        self.keeper.core.begin(publish).await
    }

    async fn next_frame(&mut self) -> Result<Frame, End> {
        loop {
            if let Some(frame) = self.buffer.next_frame()? {
                return Ok(frame);
            }
            self.read().await?;
        }
    }

    async fn read(&mut self) -> Result<(), End> {
        let silent = Duration::from_millis(u64::from(3 * HEARTBEAT_MS));
        let reading = self.reading.read_buf(self.buffer.room());
        match timeout(silent, reading).await {
            Err(_) => Err(End::Silent),
            Ok(Ok(0) | Err(_)) => Err(End::Closed),
            Ok(Ok(_)) => Ok(()),
        }
    }

    async fn answer(&self, frame: Frame) -> Result<(), End> {
        self.answers.send(frame).await.map_err(|_| End::Closed)
    }
}

/// Waits for something while nothing is read. The relay gets signs of life meanwhile, or it would come
/// again and again with the same messages; if it has gone, writing them finds it out.
async fn waiting<T>(
    answers: &Sender<Frame>,
    stop: &mut watch::Receiver<bool>,
    done: impl Future<Output = T>,
) -> Result<T, End> {
    let (mut done, mut signs) = (pin!(done), interval(SIGN_OF_LIFE));
    loop {
        tokio::select! {
            biased;
            () = stopped(stop) => return Err(End::Stopped),
            () = answers.closed() => return Err(End::Closed),
            value = &mut done => return Ok(value),
            _ = signs.tick() => {
                // If there is no place others are on their way.
                let _ = answers.try_send(Frame::Ping(0));
            }
        }
    }
}

/// Acknowledges batches in their order, each when the store has it.
async fn acknowledge(mut promises: Receiver<Unstored>, answers: Sender<Frame>) {
    while let Some((promise, kept)) = promises.recv().await {
        if promise.kept().await.is_err() {
            // The store failed, or the core stops: the relay has to bring all of it again.
            tracing::warn!("messages of an elastic queue are not acknowledged any more");
            return;
        }
        for (producer, below) in kept {
            if answers.send(Frame::Kept { producer, below }).await.is_err() {
                return;
            }
        }
    }
}

/// Writes what there is in one go.
async fn write(mut writing: OwnedWriteHalf, mut frames: Receiver<Frame>) {
    let mut out = BytesMut::new();
    while let Some(first) = frames.recv().await {
        let mut next = Some(first);
        while let Some(frame) = next {
            if let Err(error) = frame.encode(&mut out) {
                tracing::error!(%error, "a frame of the keeper cannot be written");
            }
            next = frames.try_recv().ok();
        }
        if writing.write_all(&out).await.is_err() {
            return;
        }
        out.clear();
    }
    // The other end may have gone first.
    let _ = writing.shutdown().await;
}

fn refuse(code: ErrorCode, field: &str, text: impl Into<String>) -> End {
    End::Refused(WireError::fatal(code, field, text))
}

fn lock(ledger: &std::sync::Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[test]
    fn a_wait_pings_and_ends_with_the_connection_or_the_bridge() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (stopping, mut stop) = watch::channel(false);
            let (answers, mut to_write) = channel(8);
            // What is there at once is not waited for.
            assert!(matches!(waiting(&answers, &mut stop, async { 7 }).await, Ok(7)));
            assert!(to_write.try_recv().is_err());
            let relay = async {
                assert_eq!(to_write.recv().await, Some(Frame::Ping(0)));
                // The writer has found out that nobody reads.
                drop(to_write);
            };
            let (end, ()) = tokio::join!(waiting(&answers, &mut stop, pending::<()>()), relay);
            assert!(matches!(end, Err(End::Closed)), "{end:?}");

            let (answers, mut to_write) = channel(8);
            let stop_it = async {
                assert_eq!(to_write.recv().await, Some(Frame::Ping(0)));
                stopping.send(true).unwrap();
            };
            let (end, ()) = tokio::join!(waiting(&answers, &mut stop, pending::<()>()), stop_it);
            assert!(matches!(end, Err(End::Stopped)), "{end:?}");
        });
    }
}

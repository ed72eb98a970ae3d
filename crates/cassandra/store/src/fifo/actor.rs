//! The task of a queue that this front-end owns: calls come in by a channel, and what the owner's state wants done is done
//! beside it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use quelea_cassandra_fifo::{
    Arrival, Batch, CallId, Effect, Noted, Now, Owner, OwnerRow, ReceiveCall, Renewal, Row, RowKey,
    SegmentKey, SendCall, Settings,
};
use quelea_sqs_protocol::Fault;
use rustc_hash::FxHashMap;
use tokio::sync::{Semaphore, mpsc, oneshot};
use uuid::Uuid;

use super::by_segment::{ReadContents, delete, read_contents};
use super::inbox::Input;
use super::left_out::PartialRead;
use super::move_out::Moved;
use super::operation::{Answer, FifoQueue, Operation, Outgoing};
use super::part_reads::{Unread, read_each};
use super::send_then_delete::send_then_delete;
use super::unless_refused::unless_refused;
use crate::database::transaction::Change;
use crate::shared::Shared;

/// Calls that wait to be looked at. Who comes then waits for room.
const INBOX_MAX: usize = 64;

/// How long one that lets go of its queue waits for messages that are on their way to another.
const MOVES_MAX: Duration = Duration::from_secs(1);

/// What came of something.
enum Done {
    Deduplications(Vec<(SegmentKey, Vec<Noted>)>),
    Loaded(Vec<(SegmentKey, PartialRead<Vec<Row>>)>, u64),
    Written,
    Refused(Fault),
    /// Whether it is gone.
    Discarded(bool),
    /// What the owner has to know cannot be read.
    Unread(Fault),
    Contents(u64, Result<ReadContents, Fault>),
    Deleted(u64, Vec<Result<(), Fault>>),
    Moved(u64, bool),
    MovedOut(CallId, Moved),
    Renewed(u64, Result<Change, Fault>),
    /// The queue was purged or deleted.
    Obsolete,
    Nothing,
}

impl Done {
    const fn is_move(&self) -> bool {
        matches!(self, Self::Moved(..) | Self::MovedOut(..))
    }
}

type Doing = Pin<Box<dyn Future<Output = Done> + Send>>;

/// A queue that this front-end owns.
pub(super) struct Actor {
    shared: Weak<Shared>,
    queue: FifoQueue,
    row: OwnerRow,
    owner: Owner,
    inbox: mpsc::Receiver<Input>,
    doing: FuturesUnordered<Doing>,
    /// How many of those move messages to other queues.
    moving: usize,
    replies: FxHashMap<CallId, oneshot::Sender<Answer>>,
    /// Why it does not go on: calls that wait fail with it, and the next call takes the queue over.
    failure: Option<Fault>,
    /// What lets go of the queue, and who waits for it.
    releasing: Option<Doing>,
    released: Vec<oneshot::Sender<()>>,
    /// What it was last accounted for, in bytes.
    bytes: usize,
}

impl Actor {
    /// Begins to serve a queue; returns where its calls go.
    pub(super) fn spawn(
        shared: &Arc<Shared>,
        queue: FifoQueue,
        row: OwnerRow,
        owner: Owner,
    ) -> mpsc::Sender<Input> {
        let (calls, inbox) = mpsc::channel(INBOX_MAX);
        let actor = Self {
            shared: Arc::downgrade(shared),
            queue,
            row,
            owner,
            inbox,
            doing: FuturesUnordered::new(),
            moving: 0,
            replies: FxHashMap::default(),
            failure: None,
            releasing: None,
            released: Vec::new(),
            bytes: 0,
        };
        shared.runtime.spawn(actor.run());
        calls
    }

    async fn run(mut self) {
        while !self.owner.has_ended() {
            let Some(shared) = self.shared.upgrade() else { return };
            let now = shared.fifo.owners_now(&shared.database);
            self.owner.set_memory_short(shared.fifo.is_full());
            self.owner.tick(now);
            self.carry_out(&shared, now);
            self.account(&shared, self.owner.bytes());
            if self.owner.has_ended() {
                break;
            }
            let due = Duration::from_millis(self.owner.due_in_ms(now));
            // Nothing is held while it waits: the store may be dropped.
            drop(shared);
            tokio::select! {
                input = self.inbox.recv(), if self.owner.is_serving() => {
                    let Some(input) = input else { return };
                    let Some(shared) = self.shared.upgrade() else { return };
                    let now = shared.fifo.owners_now(&shared.database);
                    self.take(&shared, input, now);
                    self.carry_out(&shared, now);
                }
                Some(done) = self.doing.next() => {
                    let Some(shared) = self.shared.upgrade() else { return };
                    let now = shared.fifo.owners_now(&shared.database);
                    self.note(done, now);
                    self.carry_out(&shared, now);
                }
                () = tokio::time::sleep(due) => {}
            }
        }
        self.end().await;
    }

    /// Answers all who still come, and lets go of the queue.
    async fn end(mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        let now = shared.fifo.owners_now(&shared.database);
        self.carry_out(&shared, now);
        self.account(&shared, 0);
        shared.fifo.forget(self.queue.generation, self.row.holder);
        self.inbox.close();
        while let Ok(input) = self.inbox.try_recv() {
            match input {
                Input::Call { reply, .. } => drop(reply.send(self.no_answer())),
                Input::Cancel(_) => {}
                Input::Release(released) => self.released.push(released),
            }
        }
        drop(shared);
        // What is at another queue is gone here before the next owner looks: else it would move once more.
        let _ = tokio::time::timeout(MOVES_MAX, self.end_moves()).await;
        // What is still being written counts for nothing that is confirmed.
        drop(self.doing);
        if let Some(releasing) = self.releasing {
            releasing.await;
        }
        for released in self.released {
            let _ = released.send(());
        }
    }

    /// Returns the answer to calls that wait where there is no owner any more.
    fn no_answer(&self) -> Answer {
        self.failure.clone().map_or(Answer::NotOwner, Answer::Failed)
    }

    async fn end_moves(&mut self) {
        while self.moving > 0
            && let Some(done) = self.doing.next().await
        {
            self.moving -= usize::from(done.is_move());
        }
    }

    fn account(&mut self, shared: &Shared, bytes: usize) {
        shared.fifo.account(self.bytes, bytes);
        self.bytes = bytes;
    }

    fn take(&mut self, shared: &Shared, input: Input, now: Now) {
        match input {
            // Nobody waits for it any more.
            Input::Call { reply, .. } if reply.is_closed() => {}
            // It changes nothing, not even by which attributes the queue goes.
            Input::Call { operation: Operation::Peek(max), reply, .. } => {
                let _ = reply.send(Answer::Peeked(self.owner.peek(max, now)));
            }
            Input::Call { queue, operation, reply, call } => {
                self.queue = queue;
                self.owner.set(settings_of(&self.queue));
                self.begin(shared, operation, reply, call, now);
            }
            Input::Cancel(call) => {
                self.replies.remove(&call);
                self.owner.cancel(call);
            }
            Input::Release(released) => {
                self.released.push(released);
                self.owner.release();
            }
        }
    }

    fn begin(
        &mut self,
        shared: &Shared,
        operation: Operation,
        reply: oneshot::Sender<Answer>,
        call: CallId,
        now: Now,
    ) {
        if let Operation::Backlog = operation {
            let _ = reply.send(Answer::Backlog(self.owner.backlog(now)));
            return;
        }
        if matches!(operation, Operation::Send(_)) && shared.fifo.is_full() {
            let why = "this front-end's FIFO queues take all the memory that they may".to_owned();
            let _ = reply.send(Answer::Failed(Fault::Unavailable(why)));
            return;
        }
        self.replies.insert(call, reply);
        match operation {
            Operation::Send(messages) => {
                let messages = messages.into_iter().map(|one| arrival(shared, one, now)).collect();
                self.owner.send(call, SendCall { messages }, now);
            }
            Operation::Receive(receive) => {
                let receive = ReceiveCall {
                    max: receive.max,
                    visibility_timeout_ms: receive.visibility_timeout_ms,
                    wait_ms: receive.wait_ms,
                    attempt_id: receive.attempt_id,
                };
                self.owner.receive(call, receive, now);
            }
            Operation::Delete(deliveries) => self.owner.delete(call, &deliveries, now),
            Operation::ChangeVisibility(changes) => {
                self.owner.change_visibility(call, &changes, now);
            }
            Operation::MoveOut(wanted) => self.owner.move_out(call, wanted, now),
            Operation::Backlog | Operation::Peek(_) => {}
        }
    }

    fn note(&mut self, done: Done, now: Now) {
        self.moving -= usize::from(done.is_move());
        match done {
            Done::Deduplications(read) => self.owner.deduplications_read(read, now),
            Done::Loaded(read, to) => {
                let unreadable = read.iter().filter(|(_, rows)| rows.has_unreadable);
                unreadable.for_each(|(segment, _)| self.owner.keep_partition(*segment));
                let read = read.into_iter().map(|(segment, rows)| (segment, rows.found));
                self.owner.loaded(read.collect(), to, now);
            }
            Done::Written => self.owner.written(now),
            Done::Refused(fault) => {
                tracing::warn!(queue = %self.queue.name.name, %fault, "messages of a FIFO queue are refused");
                self.owner.refused(fault, now);
            }
            Done::Discarded(is_gone) => self.owner.discarded(is_gone, now),
            Done::Unread(fault) => {
                tracing::warn!(queue = %self.queue.name.name, %fault, "a FIFO queue cannot be read");
                self.failure = Some(fault);
                self.owner.release();
            }
            Done::Contents(id, read) => {
                let unreadable = read.iter().flat_map(|read| &read.unreadable);
                unreadable.for_each(|segment| self.owner.keep_partition(*segment));
                self.owner.contents_read(id, read.map(|read| read.contents), now);
            }
            Done::Deleted(id, outcomes) => self.owner.deleted(id, &outcomes, now),
            Done::Moved(number, is_moved) => self.owner.moved(number, is_moved, now),
            Done::MovedOut(call, Moved { gone, fault }) => {
                let gone: Vec<u64> = gone.iter().map(|row| row.number).collect();
                self.owner.moved_out(call, &gone, fault, now);
            }
            Done::Renewed(asked_at_ms, Ok(Change::Done)) => self.owner.renewed(asked_at_ms, now),
            Done::Renewed(_, Ok(Change::Refused)) => {
                tracing::warn!(queue = %self.queue.name.name, "another front-end has taken a FIFO queue over");
                self.owner.lost();
            }
            Done::Renewed(_, Ok(Change::Unknown) | Err(_)) => self.owner.renewal_failed(now),
            Done::Obsolete => self.owner.release(),
            Done::Nothing => {}
        }
    }

    /// Does what the owner wants done.
    fn carry_out(&mut self, shared: &Arc<Shared>, now: Now) {
        while let Some(effect) = self.owner.poll_effect() {
            match effect {
                Effect::Sent(call, outcomes) => self.reply(call, Answer::Sent(outcomes)),
                Effect::Settled(call, outcomes) => self.reply(call, Answer::Settled(outcomes)),
                Effect::MovedOut(call, moved) => self.reply(call, Answer::MovedOut(moved)),
                Effect::Failed(call, fault) => self.reply(call, Answer::Failed(fault)),
                Effect::NotOwner(call) => {
                    let answer = self.no_answer();
                    self.reply(call, answer);
                }
                Effect::Received(call, received) => {
                    let answer = Answer::Received(received);
                    let unheard = match self.replies.remove(&call) {
                        Some(reply) => reply.send(answer).err(),
                        None => Some(answer),
                    };
                    if let Some(Answer::Received(received)) = unheard {
                        self.owner.undo(&received, now);
                    }
                }
                Effect::Release(renewal) => {
                    let (shared, generation) = (shared.clone(), self.queue.generation);
                    let row = self.next_row(&shared, renewal, true);
                    self.releasing = Some(Box::pin(async move {
                        // If it fails, the lease ends by itself.
                        let _ =
                            shared.fifo.owners.release(&shared.database, generation, &row).await;
                        Done::Nothing
                    }));
                }
                effect => {
                    let is_move = matches!(effect, Effect::Move { .. } | Effect::MoveOut { .. });
                    self.moving += usize::from(is_move);
                    let doing = self.start_effect(shared, effect, now);
                    self.doing.push(doing);
                }
            }
        }
    }

    fn reply(&mut self, call: CallId, answer: Answer) {
        if let Some(reply) = self.replies.remove(&call) {
            // Whoever does not wait any more does not hear of it.
            let _ = reply.send(answer);
        }
    }

    fn start_effect(&mut self, shared: &Arc<Shared>, effect: Effect, now: Now) -> Doing {
        let (weak, shared, generation) =
            (self.shared.clone(), shared.clone(), self.queue.generation);
        match effect {
            Effect::Write(batch) => Box::pin(write(weak, generation, batch)),
            Effect::Discard(batch) => Box::pin(discard(weak, generation, batch)),
            Effect::Load(wanted) => {
                let permits = shared.fifo.reads.clone();
                Box::pin(load(weak, permits, generation, wanted))
            }
            Effect::ReadDeduplications(wanted) => {
                let permits = shared.fifo.reads.clone();
                Box::pin(read_deduplications(weak, permits, generation, wanted))
            }
            Effect::ReadContents { id, rows, bytes } => Box::pin(async move {
                let _reading = shared.standard.reading(bytes).await;
                Done::Contents(id, read_contents(&shared, generation, &rows).await)
            }),
            Effect::Delete { id, rows } => {
                Box::pin(async move { Done::Deleted(id, delete(&shared, generation, &rows).await) })
            }
            Effect::Move { row, message, receives } => {
                let queue = self.queue.clone();
                Box::pin(move_to_dead_letters(weak, shared, queue, row, message, receives))
            }
            Effect::MoveOut { call, rows, to } => {
                let queue = self.queue.clone();
                Box::pin(
                    async move { Done::MovedOut(call, shared.move_out(&queue, rows, to).await) },
                )
            }
            Effect::Drop(segments) => Box::pin(async move {
                for segment in segments {
                    // One that stays is not looked at again: it ends as its time to live does.
                    let _ =
                        shared.fifo.rows.drop_segment(&shared.database, generation, segment).await;
                }
                Done::Nothing
            }),
            Effect::Renew(renewal) => {
                let row = self.next_row(&shared, renewal, false);
                let name = self.queue.name.clone();
                Box::pin(async move {
                    let fifo = &shared.fifo;
                    let record = shared.queues.record(&shared.database, &name).await;
                    if record
                        .is_ok_and(|record| record.is_none_or(|it| it.generation != generation))
                    {
                        return Done::Obsolete;
                    }
                    let changed = fifo.owners.renew(&shared.database, generation, &row).await;
                    Done::Renewed(now.steady_ms, changed)
                })
            }
            // They are answers, or the end.
            Effect::Release(_)
            | Effect::Sent(..)
            | Effect::Received(..)
            | Effect::Settled(..)
            | Effect::MovedOut(..)
            | Effect::Failed(..)
            | Effect::NotOwner(_) => Box::pin(async { Done::Nothing }),
        }
    }

    /// Makes the row with which the lease is renewed, or ends. No two say the same time.
    fn next_row(&mut self, shared: &Shared, renewal: Renewal, is_released: bool) -> OwnerRow {
        let Renewal { sealed, sealed_to, oldest, received } = renewal;
        let held_until_ms = shared.fifo.held_until_ms(&shared.database);
        self.row.held_until_ms = match is_released {
            true => 0,
            false => held_until_ms.max(self.row.held_until_ms + 1),
        };
        self.row.sealed = sealed;
        self.row.sealed_to = sealed_to;
        self.row.oldest = oldest;
        self.row.received = received;
        self.row.clone()
    }
}

pub(super) fn settings_of(queue: &FifoQueue) -> Settings {
    Settings {
        retention_ms: queue.retention_ms,
        receives_max: queue.redrive.as_ref().map(|(_, max)| *max),
    }
}

fn arrival(shared: &Shared, outgoing: Outgoing, now: Now) -> Arrival {
    let Outgoing { id, content, delay_ms, ttl_s, deduplication } = outgoing;
    let database = &shared.database;
    let id = id.unwrap_or_else(|| database.clock.new_message_id());
    let visible_at_ms = if delay_ms == 0 { 0 } else { now.wall_ms.saturating_add(delay_ms) };
    Arrival { id, content, visible_at_ms, ttl_s, deduplication }
}

async fn move_to_dead_letters(
    weak: Weak<Shared>,
    shared: Arc<Shared>,
    queue: FifoQueue,
    row: RowKey,
    message: Uuid,
    receives: u32,
) -> Done {
    let generation = queue.generation;
    let from = &queue;
    let send = async move { shared.send_to_dead_letters(from, row, message, receives).await };
    let delete = |shared: Arc<Shared>| async move {
        shared.fifo.rows.delete(&shared.database, generation, &[row]).await
    };
    let moved = send_then_delete(weak, send, delete).await;
    if let Err(fault) = &moved {
        tracing::warn!(queue = %queue.name.name, %fault, "a message was not moved to its dead-letter queue");
    }
    Done::Moved(row.number, moved.is_ok())
}

async fn write(weak: Weak<Shared>, generation: Uuid, batch: Arc<Batch>) -> Done {
    let written = unless_refused(weak, |shared: Arc<Shared>| {
        let batch = batch.clone();
        async move { shared.fifo.rows.write(&shared.database, generation, &batch).await }
    });
    match written.await {
        Ok(true) => Done::Written,
        Ok(false) => Done::Nothing,
        Err(failure) => Done::Refused(failure.refusal()),
    }
}

async fn discard(weak: Weak<Shared>, generation: Uuid, batch: Arc<Batch>) -> Done {
    let discarded = unless_refused(weak, |shared: Arc<Shared>| {
        let batch = batch.clone();
        async move { shared.fifo.rows.discard(&shared.database, generation, &batch).await }
    });
    match discarded.await {
        Ok(true) => Done::Discarded(true),
        Ok(false) => Done::Nothing,
        Err(failure) => {
            tracing::warn!(%failure, "what was refused of a FIFO queue cannot be deleted");
            Done::Discarded(false)
        }
    }
}

/// Returns what came of a read.
fn done<T>(read: Result<T, Unread>, done: impl FnOnce(T) -> Done) -> Done {
    match read {
        Ok(read) => done(read),
        Err(Unread::Stopped) => Done::Nothing,
        Err(Unread::Refused(fault)) => Done::Unread(fault),
    }
}

async fn load(
    shared: Weak<Shared>,
    permits: Arc<Semaphore>,
    generation: Uuid,
    wanted: Vec<(SegmentKey, u64, u64)>,
) -> Done {
    let to = wanted.last().map_or(0, |(_, _, to)| *to);
    let read = |shared: Arc<Shared>, part: (SegmentKey, u64, u64)| async move {
        Ok((part.0, shared.fifo.rows.load(&shared.database, generation, part).await?))
    };
    let read = read_each(&shared, &permits, wanted, read).await;
    done(read, |read| Done::Loaded(read, to))
}

async fn read_deduplications(
    shared: Weak<Shared>,
    permits: Arc<Semaphore>,
    generation: Uuid,
    wanted: Vec<(SegmentKey, u64)>,
) -> Done {
    let read = |shared: Arc<Shared>, part: (SegmentKey, u64)| async move {
        Ok((part.0, shared.fifo.rows.noted(&shared.database, generation, part).await?))
    };
    done(read_each(&shared, &permits, wanted, read).await, Done::Deduplications)
}

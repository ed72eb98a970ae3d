//! What a store of queues does for the service. The embedded log implements it, and Cassandra: so nothing
//! here supposes that queues are on this machine, or that one process serves them, and a front-end that uses
//! it keeps no state of its own (BDQS §III-C).

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::{
    Capabilities, Fault, MessageAttribute, NewQueue, Peeked, QueueClass, QueueFacts, QueueRef,
};

/// What became of the wish to make a queue.
#[derive(Clone, Debug, PartialEq)]
pub enum Created {
    /// It was made.
    New,
    /// There is one of that name, perhaps of another class.
    Exists(Arc<QueueFacts>),
    /// One of that name was deleted less than a minute ago.
    DeletedRecently,
}

/// A message to send; what its sizes and characters have to be has been checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewMessage {
    /// The body, UTF-8.
    pub body: Bytes,
    /// Its attributes, sorted by name.
    pub attributes: Vec<MessageAttribute>,
    /// The system attribute AWSTraceHeader.
    pub trace_header: Option<String>,
    /// Who sends.
    pub sender_id: Arc<str>,
    /// The delay of this message; `None`: the queue's.
    pub delay_ms: Option<u64>,
    /// MessageGroupId.
    pub group_id: Option<String>,
    /// MessageDeduplicationId, or the SHA-256 of the body in hexadecimal where the queue
    /// deduplicates by content. `None` in a standard queue.
    pub deduplication_id: Option<String>,
}

/// What a sent message was called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// A UUID. Of a duplicate, that of the first.
    pub message_id: String,
    /// Of a message in a FIFO queue.
    pub sequence_number: Option<String>,
}

/// What became of one message of a batch.
pub type SendOutcome = Result<Sent, Fault>;

/// What to receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receive {
    /// At most so many, 1 to 10.
    pub max: usize,
    /// For how long the others will not see them.
    pub visibility_timeout_ms: u64,
    /// How long to wait for the first.
    pub wait_ms: u64,
    /// ReceiveRequestAttemptId.
    pub attempt_id: Option<String>,
}

/// Names one delivery of one message; bytes of the store's own. Clients see them encoded.
pub type Delivery = Vec<u8>;

/// A received message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// What its receipt handle stands for.
    pub delivery: Delivery,
    /// A UUID.
    pub message_id: String,
    /// The body. What came by another protocol may be no UTF-8.
    pub body: Bytes,
    /// Its attributes, sorted by name.
    pub attributes: Vec<MessageAttribute>,
    /// ApproximateReceiveCount, this time included.
    pub receive_count: u32,
    /// SentTimestamp.
    pub sent_at_ms: u64,
    /// ApproximateFirstReceiveTimestamp.
    pub first_received_at_ms: u64,
    /// SenderId.
    pub sender_id: Option<String>,
    /// AWSTraceHeader.
    pub trace_header: Option<String>,
    /// MessageGroupId.
    pub group_id: Option<String>,
    /// MessageDeduplicationId.
    pub deduplication_id: Option<String>,
    /// SequenceNumber.
    pub sequence_number: Option<String>,
    /// DeadLetterQueueSourceArn's queue: where it was before it was dead-lettered.
    pub dead_letter_source: Option<QueueRef>,
}

/// What became of deleting a message, or of changing its visibility.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptOutcome {
    /// Done. Deleting what is deleted already, or what a standard queue has delivered to another
    /// since, is done too: nothing happens.
    Done,
    /// The bytes are no delivery, or one of another queue.
    Invalid,
    /// The message is there, but not in flight (changing visibility only).
    NotInFlight,
    /// The message is not there (changing visibility only).
    NoSuchMessage,
    /// The visibility timeout is over, and the queue is a FIFO queue.
    Expired,
    /// The visibility would end more than 12 hours after the message was received.
    TooLong,
}

/// What waits in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Ready to be received.
    pub visible: u64,
    /// Received and not deleted.
    pub in_flight: u64,
    /// Not yet to be received.
    pub delayed: u64,
    /// Age of the oldest message, in seconds; 0 if there is none.
    pub oldest_age_s: u64,
}

/// Moves the messages of a dead-letter queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMoveTask {
    /// Where to; `None`: where each came from.
    pub destination: Option<QueueRef>,
    /// `None`: as fast as it goes.
    pub messages_per_second_max: Option<u32>,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveTaskState {
    /// At it.
    Running,
    /// Done.
    Completed,
    /// About to stop.
    Cancelling,
    /// Stopped by request.
    Cancelled,
    /// Stopped by a failure.
    Failed,
}

/// A task that moves messages out of a dead-letter queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveTask {
    /// Its handle, while it can be cancelled.
    pub handle: Option<String>,
    /// The state.
    pub state: MoveTaskState,
    /// From where.
    pub source: QueueRef,
    /// What was asked for.
    pub task: NewMoveTask,
    /// Messages moved so far.
    pub moved: u64,
    /// Messages that there were to move at the start.
    pub to_move: u64,
    /// Why it failed; if its destination is gone, the code of [`ErrorKind::QueueDoesNotExist`](crate::ErrorKind), which
    /// clients compare.
    pub failure_reason: Option<String>,
    /// When it began, in ms since 1970.
    pub started_at_ms: u64,
}

/// A store of queues. Cheap to clone. What a call has promised is durable as the queue's settings mean it
/// when the call returns.
///
/// A call whose future is dropped may have happened. A dropped receive loses nothing: what it took
/// is visible again at once, or after the visibility timeout.
///
/// **Facts and their age.** Calls about one queue are given the facts that the service has just looked up,
/// and act by them: delay, retention, visibility timeout, order hint and redrive are those of the facts,
/// though another front-end may have set others since (within
/// [`Capabilities::facts_age_ms_max`]; what was done through a clone of this store is seen at once). A
/// store never looks a queue up by its name where it is given its key. When the queue behind the key is
/// gone, and the store knows it, the call is [`Fault::NoSuchQueue`]; within that age it may still succeed,
/// and what was sent then went with the queue. It never touches a queue of the same name that was made
/// since. When the key is there and the revision is another, the call is done all the same; only
/// [`Queues::put_attributes`] and [`Queues::put_tags`] compare what they replace. A key of another class
/// is [`Fault::NoSuchQueue`].
pub trait Queues: Clone + Send + Sync + 'static {
    /// Returns what the store of queues of that class is like; `None`: there is none here.
    fn capabilities(&self, class: QueueClass) -> Option<Capabilities>;

    /// Looks up a queue. Mostly answered from memory.
    ///
    /// # Errors
    ///
    /// [`Fault::Unavailable`] if the store cannot be asked now.
    fn facts(
        &self,
        queue: &QueueRef,
    ) -> impl Future<Output = Result<Option<Arc<QueueFacts>>, Fault>> + Send;

    /// Looks up a queue as it is now: what any front-end has done before this call is seen. For
    /// calls about the queue itself, whose clients expect to see what they have just set, through
    /// whichever front-end.
    ///
    /// # Errors
    ///
    /// As [`Queues::facts`].
    fn facts_now(
        &self,
        queue: &QueueRef,
    ) -> impl Future<Output = Result<Option<Arc<QueueFacts>>, Fault>> + Send {
        self.facts(queue)
    }

    /// Makes a queue, unless there is one of that name, of whatever class. Of two that are made at once one
    /// is new, and the other call returns its facts.
    ///
    /// # Errors
    ///
    /// [`Fault::Unsupported`] of a class or of settings that the store does not have;
    /// [`Fault::Invalid`] of what else it does not take, such as an account that is not there;
    /// otherwise as [`Queues::facts`].
    fn create(
        &self,
        queue: &QueueRef,
        new: NewQueue,
    ) -> impl Future<Output = Result<Created, Fault>> + Send;

    /// Deletes a queue with its messages.
    ///
    /// # Errors
    ///
    /// [`Fault::NoSuchQueue`] if the queue is gone; [`Fault::Unavailable`] if it cannot be done
    /// now.
    fn delete_queue(
        &self,
        queue: &Arc<QueueFacts>,
    ) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Deletes all messages of a queue that were sent before, those in flight and delayed included.
    ///
    /// # Errors
    ///
    /// [`Fault::PurgeInProgress`] if the last purge was less than a minute ago; otherwise as
    /// [`Queues::delete_queue`].
    fn purge(&self, queue: &Arc<QueueFacts>) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Lists names of an account's queues that begin with `prefix`, sorted by their bytes; those
    /// after `after`, at most `max`. Fewer than `max` only if there are no more.
    ///
    /// # Errors
    ///
    /// As [`Queues::facts`].
    fn list(
        &self,
        account: &Arc<str>,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> impl Future<Output = Result<Vec<String>, Fault>> + Send;

    /// Lists queues of the account whose redrive policy names this queue, as [`Queues::list`].
    ///
    /// # Errors
    ///
    /// As [`Queues::facts`].
    fn dead_letter_sources(
        &self,
        queue: &Arc<QueueFacts>,
        after: Option<&str>,
        max: usize,
    ) -> impl Future<Output = Result<Vec<String>, Fault>> + Send;

    /// Replaces the attributes of the queue that was seen, if they still are as they were; else it
    /// is [`Fault::Conflict`], and nothing happens. The new ones are complete and valid.
    ///
    /// # Errors
    ///
    /// [`Fault::Conflict`] if they are not as they were; [`Fault::Unsupported`] of settings that
    /// the store does not have; otherwise as [`Queues::delete_queue`].
    fn put_attributes(
        &self,
        seen: &Arc<QueueFacts>,
        attributes: BTreeMap<String, String>,
    ) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Replaces the tags of the queue that was seen, as [`Queues::put_attributes`].
    ///
    /// # Errors
    ///
    /// [`Fault::Conflict`] if they are not as they were; otherwise as [`Queues::delete_queue`].
    fn put_tags(
        &self,
        seen: &Arc<QueueFacts>,
        tags: BTreeMap<String, String>,
    ) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Counts what waits.
    ///
    /// # Errors
    ///
    /// As [`Queues::delete_queue`].
    fn backlog(
        &self,
        queue: &Arc<QueueFacts>,
    ) -> impl Future<Output = Result<Backlog, Fault>> + Send;

    /// Looks at the oldest messages, at most `max` (up to [`PEEKED_MESSAGES_MAX`](crate::PEEKED_MESSAGES_MAX)), whether or not
    /// they can be received. It is no reception, and changes nothing: the store writes nothing, takes nothing over and counts
    /// nothing. A store whose [`Capabilities::peeks`] is false answers [`Fault::Unsupported`].
    ///
    /// # Errors
    ///
    /// [`Fault::Unsupported`] where such queues have no peeks; otherwise as
    /// [`Queues::delete_queue`].
    fn peek(
        &self,
        queue: &Arc<QueueFacts>,
        max: usize,
    ) -> impl Future<Output = Result<Peeked, Fault>> + Send {
        let (_, _) = (queue, max);
        let why = "Messages of such queues cannot be looked at without receiving them.".to_owned();
        std::future::ready(Err(Fault::Unsupported(why)))
    }

    /// Sends up to ten messages, in order; an outcome for each.
    ///
    /// # Errors
    ///
    /// As [`Queues::delete_queue`]. What fails of one message alone is its outcome.
    fn send(
        &self,
        queue: &Arc<QueueFacts>,
        messages: Vec<NewMessage>,
    ) -> impl Future<Output = Result<Vec<SendOutcome>, Fault>> + Send;

    /// Receives messages; waits for the first if asked to. Drop the future to stop waiting.
    ///
    /// # Errors
    ///
    /// [`Fault::OverLimit`] if too many messages are in flight; otherwise as
    /// [`Queues::delete_queue`].
    fn receive(
        &self,
        queue: &Arc<QueueFacts>,
        receive: Receive,
    ) -> impl Future<Output = Result<Vec<Received>, Fault>> + Send;

    /// Deletes messages; an outcome for each.
    ///
    /// # Errors
    ///
    /// As [`Queues::delete_queue`].
    fn delete(
        &self,
        queue: &Arc<QueueFacts>,
        deliveries: Vec<Delivery>,
    ) -> impl Future<Output = Result<Vec<ReceiptOutcome>, Fault>> + Send;

    /// Sets for how long from now the others will not see messages; 0: they see them at once. An
    /// outcome for each.
    ///
    /// # Errors
    ///
    /// As [`Queues::delete_queue`].
    fn change_visibility(
        &self,
        queue: &Arc<QueueFacts>,
        changes: Vec<(Delivery, u64)>,
    ) -> impl Future<Output = Result<Vec<ReceiptOutcome>, Fault>> + Send;

    /// Starts to move the messages of a dead-letter queue; returns the task's handle.
    ///
    /// What is known of a task is in the store, not in the process that started it. Whoever serves the
    /// queues may take a task's next step, so a front-end that ends only delays it, and of two that step
    /// it at once the worst that comes is a duplicate. At most one task of a queue runs: a second is
    /// [`Fault::Unsupported`]. Each message is at its destination before it leaves its source.
    ///
    /// # Errors
    ///
    /// [`Fault::Unsupported`] while a task of the queue runs; [`Fault::NoSuchQueue`] also if the
    /// destination is not there; otherwise as [`Queues::delete_queue`].
    fn start_move(
        &self,
        queue: &Arc<QueueFacts>,
        task: NewMoveTask,
    ) -> impl Future<Output = Result<String, Fault>> + Send;

    /// Stops a task of that queue by its handle, at any front-end; returns the messages moved so far. The
    /// handle of another queue's task, and of one that has ended, is [`Fault::NotFound`].
    ///
    /// # Errors
    ///
    /// [`Fault::NotFound`] of a handle that is none of a running task of the queue; otherwise as
    /// [`Queues::facts`].
    fn cancel_move(
        &self,
        queue: &Arc<QueueFacts>,
        handle: &str,
    ) -> impl Future<Output = Result<u64, Fault>> + Send;

    /// Returns the last tasks of a queue, newest first, at most `max`.
    ///
    /// # Errors
    ///
    /// As [`Queues::facts`].
    fn move_tasks(
        &self,
        queue: &Arc<QueueFacts>,
        max: usize,
    ) -> impl Future<Output = Result<Vec<MoveTask>, Fault>> + Send;
}

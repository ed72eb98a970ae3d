//! What a store of queues does for the service. The embedded log implements it, and Cassandra will:
//! so nothing here supposes that queues are on this machine, and a front-end that uses it keeps no
//! state of its own (BDQS §III-C).

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

/// The store's own name of a queue that exists: a queue that is deleted and made anew gets another.
pub type QueueKey = u64;

/// A queue as clients name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueRef {
    /// The account, which is a virtual host: 12 digits, or a virtual host's own name.
    pub account: Arc<str>,
    /// The queue's name.
    pub name: Arc<str>,
}

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct User {
    /// The broker's user that the access key belongs to; `None`: anybody on this machine, who may do
    /// everything, in any account.
    pub name: Option<Arc<str>>,
    /// The account whose key it is.
    pub account: Arc<str>,
}

/// An access key, enabled or not.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessKey {
    /// Whose it is.
    pub user: User,
    /// What signatures are made with.
    pub secret: Arc<str>,
    /// A disabled key signs nothing.
    pub enabled: bool,
}

impl std::fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { user, enabled, .. } = self;
        f.debug_struct("AccessKey")
            .field("user", user)
            .field("enabled", enabled)
            .finish_non_exhaustive()
    }
}

/// What a user's permissions in the queue's virtual host allow with that queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permits {
    /// Create, delete, set attributes, tag.
    pub configure: bool,
    /// Send.
    pub write: bool,
    /// Receive, delete messages, change their visibility, purge, look at attributes.
    pub read: bool,
}

/// A queue, as far as requests need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueFacts {
    /// The store's name of it.
    pub key: QueueKey,
    /// Its attributes as they were set, by their names in the API. Those that were never set, and
    /// those that are counted (`ApproximateNumberOfMessages`, …), are not among them.
    pub attributes: BTreeMap<String, String>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// When it was made, in ms since 1970.
    pub created_at_ms: u64,
    /// When its attributes were last set, in ms since 1970.
    pub modified_at_ms: u64,
    /// What the user who asked may do with it.
    pub permits: Permits,
}

/// What became of the wish to make a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Created {
    /// It was made.
    New,
    /// There is one of that name.
    Exists(Arc<QueueFacts>),
    /// One of that name was deleted less than a minute ago.
    DeletedRecently,
    /// The user may not.
    Refused,
}

/// Why the store did not do what it was asked for. Errors of the request itself are outcomes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The queue went away since its facts were asked for.
    #[error("the queue does not exist")]
    NoSuchQueue,
    /// Too many messages are in flight (120,000).
    #[error("too many messages are in flight, the limit is {limit}")]
    OverLimit {
        /// The limit.
        limit: usize,
    },
    /// The queue was purged less than a minute ago.
    #[error("a purge is under way or less than 60 seconds old")]
    PurgeInProgress,
    /// What was named (a move task, say) is not there, or is not in a state to be acted on.
    #[error("{0}")]
    NotFound(String),
    /// It makes no sense for this queue.
    #[error("{0}")]
    Unsupported(String),
    /// A limit of the broker, or arguments that it does not take.
    #[error("{0}")]
    Invalid(String),
    /// What was to be replaced is not what was seen any more.
    #[error("the queue is being changed by others")]
    Conflict,
    /// It cannot be done now: the disk is full, memory is short, the broker stops. Try again.
    #[error("{0}")]
    Unavailable(String),
}

/// A message attribute with its data type, such as `Number.int`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageAttribute {
    /// Its name.
    pub name: String,
    /// Its type, custom label included.
    pub data_type: String,
    /// UTF-8 for the types String and Number, anything for Binary.
    pub value: Bytes,
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
    /// Why it failed.
    pub failure_reason: Option<String>,
    /// When it began, in ms since 1970.
    pub started_at_ms: u64,
}

/// A store of queues. Cheap to clone. What a call has promised is durable as the queue's durability
/// means it when the call returns.
///
/// A call whose future is dropped may have happened. A dropped receive loses nothing: what it took
/// is visible again at once, or after the visibility timeout.
pub trait Queues: Clone + Send + Sync + 'static {
    /// Looks up an access key.
    fn access_key(&self, id: &str)
    -> impl Future<Output = Result<Option<AccessKey>, Fault>> + Send;

    /// Looks up a queue for a user. Mostly answered from memory.
    fn facts(
        &self,
        user: &User,
        queue: &QueueRef,
    ) -> impl Future<Output = Result<Option<Arc<QueueFacts>>, Fault>> + Send;

    /// Makes a queue, unless there is one of that name. `attributes` are complete and valid.
    fn create(
        &self,
        user: &User,
        queue: &QueueRef,
        attributes: BTreeMap<String, String>,
        tags: BTreeMap<String, String>,
    ) -> impl Future<Output = Result<Created, Fault>> + Send;

    /// Deletes a queue with its messages.
    fn delete_queue(&self, queue: QueueKey) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Deletes all messages of a queue, those in flight and delayed included.
    fn purge(&self, queue: QueueKey) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Names of an account's queues that the user may see, sorted; those after `after`, at most `max`.
    fn list(
        &self,
        user: &User,
        account: &str,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> impl Future<Output = Result<Vec<String>, Fault>> + Send;

    /// Queues of the account whose redrive policy names this queue, as [`Queues::list`].
    fn dead_letter_sources(
        &self,
        user: &User,
        queue: &QueueRef,
        after: Option<&str>,
        max: usize,
    ) -> impl Future<Output = Result<Vec<String>, Fault>> + Send;

    /// Replaces the attributes of the queue that was seen, if they still are as they were; else it
    /// is [`Fault::Conflict`], and nothing happens. The new ones are complete and valid.
    fn put_attributes(
        &self,
        seen: Arc<QueueFacts>,
        attributes: BTreeMap<String, String>,
    ) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Replaces the tags of the queue that was seen, as [`Queues::put_attributes`].
    fn put_tags(
        &self,
        seen: Arc<QueueFacts>,
        tags: BTreeMap<String, String>,
    ) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Counts what waits.
    fn backlog(&self, queue: QueueKey) -> impl Future<Output = Result<Backlog, Fault>> + Send;

    /// Sends up to ten messages, in order; an outcome for each.
    fn send(
        &self,
        queue: QueueKey,
        messages: Vec<NewMessage>,
    ) -> impl Future<Output = Result<Vec<SendOutcome>, Fault>> + Send;

    /// Receives messages; waits for the first if asked to. Drop the future to stop waiting.
    fn receive(
        &self,
        queue: QueueKey,
        receive: Receive,
    ) -> impl Future<Output = Result<Vec<Received>, Fault>> + Send;

    /// Deletes messages; an outcome for each.
    fn delete(
        &self,
        queue: QueueKey,
        deliveries: Vec<Delivery>,
    ) -> impl Future<Output = Result<Vec<ReceiptOutcome>, Fault>> + Send;

    /// Sets for how long from now the others will not see messages; 0: they see them at once. An
    /// outcome for each.
    fn change_visibility(
        &self,
        queue: QueueKey,
        changes: Vec<(Delivery, u64)>,
    ) -> impl Future<Output = Result<Vec<ReceiptOutcome>, Fault>> + Send;

    /// Starts to move the messages of a dead-letter queue; returns the task's handle.
    fn start_move(
        &self,
        queue: QueueKey,
        task: NewMoveTask,
    ) -> impl Future<Output = Result<String, Fault>> + Send;

    /// Stops a task of that queue by its handle; returns the messages moved so far. The handle of
    /// another queue's task is [`Fault::NotFound`].
    fn cancel_move(
        &self,
        queue: QueueKey,
        handle: &str,
    ) -> impl Future<Output = Result<u64, Fault>> + Send;

    /// The last tasks of a queue, newest first, at most `max`.
    fn move_tasks(
        &self,
        queue: QueueKey,
        max: usize,
    ) -> impl Future<Output = Result<Vec<MoveTask>, Fault>> + Send;
}

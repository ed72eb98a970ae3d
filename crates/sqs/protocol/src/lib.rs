//! Amazon SQS's service interface without I/O: its actions, the JSON and Query encodings, signatures,
//! policies and rules. It must never touch a socket, a clock or a queue: requests come in as bytes,
//! queues are reached through the trait [`Queues`], time is an argument.
//! Start with `action.rs`, the operations, and `queues.rs`, what a store of queues does for the
//! service.

mod account_names;
pub mod action;
mod any_store;
mod attributes;
mod capabilities;
mod class_router;
pub mod encoding;
mod error;
mod fault;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod identity;
mod identity_directory;
mod limits;
mod lossy_text;
mod md5;
mod message_attribute;
mod message_rules;
mod names;
mod peek;
mod policy;
mod queue_facts;
mod queue_key;
mod queue_settings;
mod queues;
mod redrive;
mod refusal;
mod service;
mod shape;
mod signing;
mod sigv4;

pub use account_names::AccountNames;
pub use action::{Action, ReceiveMessageResult, Reply, Request};
pub use any_store::{AnyIdentity, AnyQueues};
pub use capabilities::{
    Capabilities, Consistency, Counts, OldReceipts, Order, QueueDurability, Reappearance,
};
pub use class_router::{ClassRouter, NameLock};
pub use error::{Blame, Error, ErrorKind};
pub use fault::Fault;
pub use identity::{AccessKey, Identity, Permits, User};
pub use identity_directory::{
    AccessKeyRecord, IdentityDirectory, PermissionRecord, TakenOver, UserRecord, UserWithVhosts,
    VhostRecord,
};
pub use limits::{
    CONDITIONS_MAX, EXPIRES_S_MAX, PEEKED_BYTES_MAX, PEEKED_MESSAGES_MAX, POLICY_BYTES_MAX,
    PRINCIPALS_MAX, SKEW_S_MAX, STATEMENTS_MAX,
};
pub use md5::{md5_of_attributes, md5_of_body};
pub use message_attribute::MessageAttribute;
pub use names::{
    arn_of_queue, is_account_name, path_of_queue, queue_of_arn, queue_of_url, sequence_number,
};
pub use peek::{Peeked, PeekedMessage, PeekedState};
pub use policy::{Policy, PolicyCaller, PolicyError, PolicyQuestion, Verdict};
pub use queue_facts::{NewQueue, QueueFacts};
pub use queue_key::{QueueClass, QueueKey, QueueRef};
pub use queue_settings::{DeduplicationScope, FifoSettings, OrderHint, QueuePolicy, QueueSettings};
pub use queues::{
    Backlog, Created, Delivery, MoveTask, MoveTaskState, NewMessage, NewMoveTask, Queues,
    ReceiptOutcome, Receive, Received, SendOutcome, Sent,
};
pub use redrive::{RedriveAllowPolicy, RedrivePolicy};
pub use service::{
    AnyService, Caller, ChangeSink, QueueChange, Service, ServiceSettings, check_new_queue,
};
pub use shape::{Description, Kind, Member, Names};
pub use signing::{SignedHeaders, Signer};
pub use sigv4::{
    AmzTime, BodyDigest, BodyHasher, Claim, Computed, HttpRequest, Payload, SERVICE,
    SignatureError, Verifier,
};

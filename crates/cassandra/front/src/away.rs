//! The server of a front-end whose Cassandra has not answered yet: whatever call needs queues or keys is refused in its own protocol,
//! with 503.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;

use quelea_sqs_protocol::{
    AccessKey, AnyIdentity, AnyQueues, Backlog, Capabilities, Consistency, Counts, Created,
    Delivery, Fault, Identity, MoveTask, NewMessage, NewMoveTask, NewQueue, OldReceipts, Order,
    Permits, QueueClass, QueueFacts, QueueRef, Queues, Reappearance, ReceiptOutcome, Receive,
    Received, SendOutcome, User,
};
use quelea_sqs_server::{SqsServer, SqsSettings};

use crate::error::FrontError;

/// Refuses all calls on these listeners, on a thread of its own, until it is stopped.
///
/// # Errors
/// [`FrontError`] if the server does not start.
pub fn serve_away(
    listeners: Vec<TcpListener>,
    server: &SqsSettings,
) -> Result<SqsServer, FrontError> {
    let settings = SqsSettings { threads: 1, ..server.clone() };
    let (queues, identity) = (AnyQueues::new(Away), AnyIdentity::new(Away));
    Ok(SqsServer::start(listeners, &queues, &identity, &settings)?)
}

/// Queues and keys that cannot be asked for.
#[derive(Clone, Copy)]
struct Away;

/// Why every call is refused.
pub const AWAY: &str = "Cassandra does not answer yet";

/// Methods that refuse.
macro_rules! refuse {
    ($(fn $name:ident($($argument:ty),*) -> $answer:ty;)*) => {$(
        async fn $name(&self, $(_: $argument),*) -> Result<$answer, Fault> {
            Err(Fault::Unavailable(AWAY.to_owned()))
        }
    )*};
}

impl Queues for Away {
    /// Returns capabilities by which nothing is refused for good: what there will be is not known.
    fn capabilities(&self, _: QueueClass) -> Option<Capabilities> {
        Some(Capabilities {
            order: Order::Almost,
            reappearance: Reappearance::ByNewTime,
            old_receipts: OldReceipts::Delete,
            counts: Counts::Approximate,
            order_hint_auto: true,
            durability: true,
            consistency: Some(Consistency::LocalQuorum),
            facts_age_ms_max: 0,
            peeks: false,
        })
    }

    refuse! {
        fn facts(&QueueRef) -> Option<Arc<QueueFacts>>;
        fn create(&QueueRef, NewQueue) -> Created;
        fn delete_queue(&Arc<QueueFacts>) -> ();
        fn purge(&Arc<QueueFacts>) -> ();
        fn list(&Arc<str>, &str, Option<&str>, usize) -> Vec<String>;
        fn dead_letter_sources(&Arc<QueueFacts>, Option<&str>, usize) -> Vec<String>;
        fn put_attributes(&Arc<QueueFacts>, BTreeMap<String, String>) -> ();
        fn put_tags(&Arc<QueueFacts>, BTreeMap<String, String>) -> ();
        fn backlog(&Arc<QueueFacts>) -> Backlog;
        fn send(&Arc<QueueFacts>, Vec<NewMessage>) -> Vec<SendOutcome>;
        fn receive(&Arc<QueueFacts>, Receive) -> Vec<Received>;
        fn delete(&Arc<QueueFacts>, Vec<Delivery>) -> Vec<ReceiptOutcome>;
        fn change_visibility(&Arc<QueueFacts>, Vec<(Delivery, u64)>) -> Vec<ReceiptOutcome>;
        fn start_move(&Arc<QueueFacts>, NewMoveTask) -> String;
        fn cancel_move(&Arc<QueueFacts>, &str) -> u64;
        fn move_tasks(&Arc<QueueFacts>, usize) -> Vec<MoveTask>;
    }
}

impl Identity for Away {
    refuse! {
        fn access_key(&str) -> Option<AccessKey>;
        fn permits(&User, &QueueRef) -> Permits;
        fn visible(&User, &Arc<str>, Vec<String>) -> Vec<String>;
    }
}

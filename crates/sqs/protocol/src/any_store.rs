//! A store of queues, and of those who may use them, of whatever type: a server over one of them is compiled once for all
//! stores. A call costs a box, which is nothing beside the network to a cluster.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use crate::{
    AccessKey, Backlog, Capabilities, Created, Delivery, Fault, Identity, MoveTask, NewMessage,
    NewMoveTask, NewQueue, Peeked, Permits, QueueClass, QueueFacts, QueueRef, Queues,
    ReceiptOutcome, Receive, Received, SendOutcome, User,
};

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send + 'a>>;

/// Makes `$any` of whatever implements `$of`, with these methods: first those that answer at once, then the asynchronous.
macro_rules! erase {
    ($of:ident as $erased:ident in $any:ident {
        $(sync fn $now:ident($asked:ident: $asked_type:ty) -> $found:ty;)*
        $(fn $method:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+
    }) => {
        trait $erased: Send + Sync {
            $(fn $now(&self, $asked: $asked_type) -> $found;)*
            $(fn $method<'a>(&'a self, $($argument: $type),*) -> Answer<'a, $answer>;)+
        }

        impl<T: $of> $erased for T {
            $(fn $now(&self, $asked: $asked_type) -> $found {
                $of::$now(self, $asked)
            })*
            $(fn $method<'a>(&'a self, $($argument: $type),*) -> Answer<'a, $answer> {
                Box::pin($of::$method(self, $($argument),*))
            })+
        }

        impl $any {
            /// Returns a handle on this one.
            #[must_use]
            pub fn new(of: impl $of) -> Self {
                Self(Arc::new(of))
            }
        }

        impl std::fmt::Debug for $any {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($any)).finish_non_exhaustive()
            }
        }
    };
}

/// Any store of queues.
#[derive(Clone)]
pub struct AnyQueues(Arc<dyn ErasedQueues>);

erase! {
    Queues as ErasedQueues in AnyQueues {
        sync fn capabilities(class: QueueClass) -> Option<Capabilities>;
        fn facts(queue: &'a QueueRef) -> Option<Arc<QueueFacts>>;
        fn facts_now(queue: &'a QueueRef) -> Option<Arc<QueueFacts>>;
        fn create(queue: &'a QueueRef, new: NewQueue) -> Created;
        fn delete_queue(queue: &'a Arc<QueueFacts>) -> ();
        fn purge(queue: &'a Arc<QueueFacts>) -> ();
        fn list(account: &'a Arc<str>, prefix: &'a str, after: Option<&'a str>, max: usize) -> Vec<String>;
        fn dead_letter_sources(queue: &'a Arc<QueueFacts>, after: Option<&'a str>, max: usize) -> Vec<String>;
        fn put_attributes(seen: &'a Arc<QueueFacts>, attributes: BTreeMap<String, String>) -> ();
        fn put_tags(seen: &'a Arc<QueueFacts>, tags: BTreeMap<String, String>) -> ();
        fn backlog(queue: &'a Arc<QueueFacts>) -> Backlog;
        fn peek(queue: &'a Arc<QueueFacts>, max: usize) -> Peeked;
        fn send(queue: &'a Arc<QueueFacts>, messages: Vec<NewMessage>) -> Vec<SendOutcome>;
        fn receive(queue: &'a Arc<QueueFacts>, receive: Receive) -> Vec<Received>;
        fn delete(queue: &'a Arc<QueueFacts>, deliveries: Vec<Delivery>) -> Vec<ReceiptOutcome>;
        fn change_visibility(queue: &'a Arc<QueueFacts>, changes: Vec<(Delivery, u64)>) -> Vec<ReceiptOutcome>;
        fn start_move(queue: &'a Arc<QueueFacts>, task: NewMoveTask) -> String;
        fn cancel_move(queue: &'a Arc<QueueFacts>, handle: &'a str) -> u64;
        fn move_tasks(queue: &'a Arc<QueueFacts>, max: usize) -> Vec<MoveTask>;
    }
}

impl Queues for AnyQueues {
    fn capabilities(&self, class: QueueClass) -> Option<Capabilities> {
        self.0.capabilities(class)
    }

    async fn facts(&self, queue: &QueueRef) -> Result<Option<Arc<QueueFacts>>, Fault> {
        self.0.facts(queue).await
    }

    async fn facts_now(&self, queue: &QueueRef) -> Result<Option<Arc<QueueFacts>>, Fault> {
        self.0.facts_now(queue).await
    }

    async fn create(&self, queue: &QueueRef, new: NewQueue) -> Result<Created, Fault> {
        self.0.create(queue, new).await
    }

    async fn delete_queue(&self, queue: &Arc<QueueFacts>) -> Result<(), Fault> {
        self.0.delete_queue(queue).await
    }

    async fn purge(&self, queue: &Arc<QueueFacts>) -> Result<(), Fault> {
        self.0.purge(queue).await
    }

    async fn list(
        &self,
        account: &Arc<str>,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, Fault> {
        self.0.list(account, prefix, after, max).await
    }

    async fn dead_letter_sources(
        &self,
        queue: &Arc<QueueFacts>,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, Fault> {
        self.0.dead_letter_sources(queue, after, max).await
    }

    async fn put_attributes(
        &self,
        seen: &Arc<QueueFacts>,
        attributes: BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        self.0.put_attributes(seen, attributes).await
    }

    async fn put_tags(
        &self,
        seen: &Arc<QueueFacts>,
        tags: BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        self.0.put_tags(seen, tags).await
    }

    async fn backlog(&self, queue: &Arc<QueueFacts>) -> Result<Backlog, Fault> {
        self.0.backlog(queue).await
    }

    async fn peek(&self, queue: &Arc<QueueFacts>, max: usize) -> Result<Peeked, Fault> {
        self.0.peek(queue, max).await
    }

    async fn send(
        &self,
        queue: &Arc<QueueFacts>,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<SendOutcome>, Fault> {
        self.0.send(queue, messages).await
    }

    async fn receive(
        &self,
        queue: &Arc<QueueFacts>,
        receive: Receive,
    ) -> Result<Vec<Received>, Fault> {
        self.0.receive(queue, receive).await
    }

    async fn delete(
        &self,
        queue: &Arc<QueueFacts>,
        deliveries: Vec<Delivery>,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        self.0.delete(queue, deliveries).await
    }

    async fn change_visibility(
        &self,
        queue: &Arc<QueueFacts>,
        changes: Vec<(Delivery, u64)>,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        self.0.change_visibility(queue, changes).await
    }

    async fn start_move(
        &self,
        queue: &Arc<QueueFacts>,
        task: NewMoveTask,
    ) -> Result<String, Fault> {
        self.0.start_move(queue, task).await
    }

    async fn cancel_move(&self, queue: &Arc<QueueFacts>, handle: &str) -> Result<u64, Fault> {
        self.0.cancel_move(queue, handle).await
    }

    async fn move_tasks(
        &self,
        queue: &Arc<QueueFacts>,
        max: usize,
    ) -> Result<Vec<MoveTask>, Fault> {
        self.0.move_tasks(queue, max).await
    }
}

/// Whoever knows users and their keys.
#[derive(Clone)]
pub struct AnyIdentity(Arc<dyn ErasedIdentity>);

erase! {
    Identity as ErasedIdentity in AnyIdentity {
        fn access_key(id: &'a str) -> Option<AccessKey>;
        fn permits(user: &'a User, queue: &'a QueueRef) -> Permits;
        fn visible(user: &'a User, account: &'a Arc<str>, names: Vec<String>) -> Vec<String>;
    }
}

impl Identity for AnyIdentity {
    async fn access_key(&self, id: &str) -> Result<Option<AccessKey>, Fault> {
        self.0.access_key(id).await
    }

    async fn permits(&self, user: &User, queue: &QueueRef) -> Result<Permits, Fault> {
        self.0.permits(user, queue).await
    }

    async fn visible(
        &self,
        user: &User,
        account: &Arc<str>,
        names: Vec<String>,
    ) -> Result<Vec<String>, Fault> {
        self.0.visible(user, account, names).await
    }
}

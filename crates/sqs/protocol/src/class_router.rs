//! Two stores behind one service: each call goes to the store of its queue's class, and a name is one queue in
//! both.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{
    Backlog, Capabilities, Created, Delivery, Fault, MoveTask, NewMessage, NewMoveTask, NewQueue,
    Peeked, QueueClass, QueueFacts, QueueRef, Queues, ReceiptOutcome, Receive, Received,
    SendOutcome,
};

/// Makes a call of the store of that class.
macro_rules! of_class {
    ($self:ident, $class:expr, $store:ident => $call:expr) => {
        match $class {
            QueueClass::Ordered => {
                let $store = &$self.ordered;
                $call
            }
            QueueClass::Replicated => {
                let $store = &$self.replicated;
                $call
            }
        }
    };
}

/// A store of ordered queues and one of replicated queues.
///
/// Names are looked for in the ordered store first, which is on this machine. A queue is only made where the other
/// store has none of its name, and while it is made here its name is held. One that another front-end has made
/// meanwhile was first: that which was made here goes again. What another front-end makes later, of a name that is an
/// ordered queue here, cannot be known there: the ordered one then hides it at its own node, and nowhere else.
#[derive(Clone, Debug)]
pub struct ClassRouter<O, R, L = ()> {
    ordered: O,
    replicated: R,
    names: L,
}

/// Holds a queue's name, so that nobody else on this node makes a queue of it in either store.
pub trait NameLock: Clone + Send + Sync + 'static {
    /// The name is held until this is dropped.
    type Held: Send;

    /// Waits until nobody else holds it.
    fn hold(&self, queue: &QueueRef) -> impl Future<Output = Self::Held> + Send;
}

/// Where nobody else makes queues.
impl NameLock for () {
    type Held = ();

    async fn hold(&self, _queue: &QueueRef) {}
}

impl<O: Queues, R: Queues> ClassRouter<O, R> {
    /// Returns a store that routes between these two.
    #[must_use]
    pub const fn new(ordered: O, replicated: R) -> Self {
        Self { ordered, replicated, names: () }
    }
}

impl<O: Queues, R: Queues, L: NameLock> ClassRouter<O, R, L> {
    /// Returns a store that routes between these two, where others hold names of queues, too, to
    /// make them.
    #[must_use]
    pub const fn holding(ordered: O, replicated: R, names: L) -> Self {
        Self { ordered, replicated, names }
    }

    /// Takes a queue away that was just made.
    async fn undo_create(&self, queue: &QueueRef, class: QueueClass) -> Result<(), Fault> {
        let made = of_class!(self, class, store => store.facts_now(queue).await)?;
        match made.filter(|made| made.key.class() == class) {
            Some(made) => self.delete_queue(&made).await,
            None => Ok(()),
        }
    }

    /// Returns the queue of that name in the store of the other class, if there is one.
    async fn in_other_class(
        &self,
        queue: &QueueRef,
        class: QueueClass,
    ) -> Result<Option<Arc<QueueFacts>>, Fault> {
        match class {
            QueueClass::Ordered => self.replicated.facts_now(queue).await,
            QueueClass::Replicated => self.ordered.facts_now(queue).await,
        }
    }
}

impl<O: Queues, R: Queues, L: NameLock> Queues for ClassRouter<O, R, L> {
    fn capabilities(&self, class: QueueClass) -> Option<Capabilities> {
        of_class!(self, class, store => store.capabilities(class))
    }

    async fn facts(&self, queue: &QueueRef) -> Result<Option<Arc<QueueFacts>>, Fault> {
        match self.ordered.facts(queue).await? {
            Some(facts) => Ok(Some(facts)),
            None => self.replicated.facts(queue).await,
        }
    }

    async fn facts_now(&self, queue: &QueueRef) -> Result<Option<Arc<QueueFacts>>, Fault> {
        match self.ordered.facts_now(queue).await? {
            Some(facts) => Ok(Some(facts)),
            None => self.replicated.facts_now(queue).await,
        }
    }

    async fn create(&self, queue: &QueueRef, new: NewQueue) -> Result<Created, Fault> {
        let _held = self.names.hold(queue).await;
        let class = new.class;
        if let Some(facts) = self.in_other_class(queue, class).await? {
            return Ok(Created::Exists(facts));
        }
        let created = of_class!(self, class, store => store.create(queue, new).await)?;
        if created == Created::New
            && let Some(facts) = self.in_other_class(queue, class).await?
        {
            self.undo_create(queue, class).await?;
            return Ok(Created::Exists(facts));
        }
        Ok(created)
    }

    async fn delete_queue(&self, queue: &Arc<QueueFacts>) -> Result<(), Fault> {
        of_class!(self, queue.key.class(), store => store.delete_queue(queue).await)
    }

    async fn purge(&self, queue: &Arc<QueueFacts>) -> Result<(), Fault> {
        of_class!(self, queue.key.class(), store => store.purge(queue).await)
    }

    async fn list(
        &self,
        account: &Arc<str>,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, Fault> {
        let ordered = self.ordered.list(account, prefix, after, max).await?;
        let replicated = self.replicated.list(account, prefix, after, max).await?;
        let mut names = ordered;
        names.extend(replicated);
        names.sort_unstable();
        names.dedup();
        names.truncate(max);
        Ok(names)
    }

    async fn dead_letter_sources(
        &self,
        queue: &Arc<QueueFacts>,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, Fault> {
        let class = queue.key.class();
        of_class!(self, class, store => store.dead_letter_sources(queue, after, max).await)
    }

    async fn put_attributes(
        &self,
        seen: &Arc<QueueFacts>,
        attributes: BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        of_class!(self, seen.key.class(), store => store.put_attributes(seen, attributes).await)
    }

    async fn put_tags(
        &self,
        seen: &Arc<QueueFacts>,
        tags: BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        of_class!(self, seen.key.class(), store => store.put_tags(seen, tags).await)
    }

    async fn backlog(&self, queue: &Arc<QueueFacts>) -> Result<Backlog, Fault> {
        of_class!(self, queue.key.class(), store => store.backlog(queue).await)
    }

    async fn peek(&self, queue: &Arc<QueueFacts>, max: usize) -> Result<Peeked, Fault> {
        of_class!(self, queue.key.class(), store => store.peek(queue, max).await)
    }

    async fn send(
        &self,
        queue: &Arc<QueueFacts>,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<SendOutcome>, Fault> {
        of_class!(self, queue.key.class(), store => store.send(queue, messages).await)
    }

    async fn receive(
        &self,
        queue: &Arc<QueueFacts>,
        receive: Receive,
    ) -> Result<Vec<Received>, Fault> {
        of_class!(self, queue.key.class(), store => store.receive(queue, receive).await)
    }

    async fn delete(
        &self,
        queue: &Arc<QueueFacts>,
        deliveries: Vec<Delivery>,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        of_class!(self, queue.key.class(), store => store.delete(queue, deliveries).await)
    }

    async fn change_visibility(
        &self,
        queue: &Arc<QueueFacts>,
        changes: Vec<(Delivery, u64)>,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        of_class!(self, queue.key.class(), store => store.change_visibility(queue, changes).await)
    }

    async fn start_move(
        &self,
        queue: &Arc<QueueFacts>,
        task: NewMoveTask,
    ) -> Result<String, Fault> {
        of_class!(self, queue.key.class(), store => store.start_move(queue, task).await)
    }

    async fn cancel_move(&self, queue: &Arc<QueueFacts>, handle: &str) -> Result<u64, Fault> {
        of_class!(self, queue.key.class(), store => store.cancel_move(queue, handle).await)
    }

    async fn move_tasks(
        &self,
        queue: &Arc<QueueFacts>,
        max: usize,
    ) -> Result<Vec<MoveTask>, Fault> {
        of_class!(self, queue.key.class(), store => store.move_tasks(queue, max).await)
    }
}

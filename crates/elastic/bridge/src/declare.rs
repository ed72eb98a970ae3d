//! What the bridge declares by itself: durable queues, and their bindings. Whatever is there already is
//! used as it is.

use quelea_broker::error::ResourceError;
use quelea_broker::{BindingError, ChannelId, DeclareQueue, DeclareQueueError, QueueBinding};
use quelea_node::{Core, CoreHandle, CoreStopped};
use quelea_store::Ticket;

/// A declaration among others that may have to wait for another store.
pub(crate) trait NameChecked {
    /// Returns whether another store is being asked if it has a queue of that name.
    fn is_name_being_checked(&self) -> bool;
}

impl NameChecked for DeclareQueueError {
    fn is_name_being_checked(&self) -> bool {
        matches!(self, Self::NameBeingChecked(_))
    }
}

/// Carries out on the core's thread what declares a queue, again when another store has said whether it has one of that name.
/// It is safe when this returns.
pub(crate) async fn when_checked<T, E, F>(
    core: &CoreHandle,
    mut attempt: impl FnMut() -> F,
) -> Result<Result<T, E>, CoreStopped>
where
    T: Send + 'static,
    E: NameChecked + Send + 'static,
    F: FnOnce(&mut Core) -> Result<(T, Ticket), E> + Send + 'static,
{
    let declare = || {
        let attempt = attempt();
        core.promise(move |core| match attempt(core) {
            Ok((done, ticket)) => (Ok(done), ticket),
            Err(error) => (Err(error), Ticket::NONE),
        })
    };
    let is_being_checked = |declared: &Result<Result<T, E>, CoreStopped>| matches!(declared, Ok(Err(error)) if error.is_name_being_checked());
    core.when_name_checked(declare, is_being_checked).await?
}

/// Makes the durable queue if there is none of that name, here or in another store; what arguments one has is left to who made it.
/// It is safe when the store has reached the ticket.
pub(crate) fn durable_queue(
    core: &mut Core,
    channel: ChannelId,
    queue: &str,
) -> Result<Ticket, DeclareQueueError> {
    let now = core.now();
    let name = queue.to_owned();
    let passive = DeclareQueue { name, passive: true, ..DeclareQueue::default() };
    match core.broker.declare_queue(now, channel, &passive) {
        Err(DeclareQueueError::Resource(ResourceError::NoSuchQueue(_))) => {}
        declared => return declared.map(|declared| declared.ticket),
    }
    let durable = DeclareQueue { passive: false, durable: true, ..passive };
    // A name is one queue: a replicated one is none of the broker's.
    core.broker.check_queue_name(channel, &durable)?;
    core.broker.declare_queue(now, channel, &durable).map(|declared| declared.ticket)
}

/// Binds the queue by all the keys. Bindings that are there stay, those by other keys too.
pub(crate) fn bindings(
    core: &mut Core,
    channel: ChannelId,
    queue: &str,
    exchange: &str,
    keys: impl IntoIterator<Item = impl AsRef<str>>,
) -> Result<Ticket, BindingError> {
    let now = core.now();
    let mut ticket = Ticket::NONE;
    for key in keys {
        let binding = QueueBinding {
            queue: queue.to_owned(),
            exchange: exchange.to_owned(),
            routing_key: key.as_ref().to_owned(),
            ..QueueBinding::default()
        };
        ticket = ticket.join(core.broker.bind_queue(now, channel, &binding)?);
    }
    Ok(ticket)
}

#[cfg(test)]
mod tests {
    use quelea_broker::access::{AccessRecords, Permission, User};
    use quelea_broker::{NameQuestion, NameVerdict};
    use quelea_model::VhostName;
    use quelea_node::{DataDir, InternalClient, Node, NodeConfig, OtherStore};
    use tokio::runtime::Builder;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    fn users() -> AccessRecords {
        let (vhost, all) = (VhostName::parse("/").unwrap(), || ".*".into());
        let user = User { name: "guest".into(), password_hash: "".into(), tags: Vec::new() };
        let permission = Permission {
            user: "guest".into(),
            vhost: vhost.clone(),
            configure: all(),
            write: all(),
            read: all(),
        };
        let (users, permissions) = (vec![user], vec![permission]);
        AccessRecords { vhosts: vec![vhost], users, permissions, keys: Vec::new() }
    }

    /// Declares a queue at a node beside another store, which says this when it is asked.
    async fn declared(
        core: &CoreHandle,
        questions: &mut UnboundedReceiver<NameQuestion>,
        (queue, says): (&'static str, NameVerdict),
    ) -> Result<(), DeclareQueueError> {
        let declare = when_checked(core, || {
            move |core: &mut Core| {
                let (user, vhost) = ("guest", "/");
                let client =
                    InternalClient { user, vhost, local: "", name: "test", protocol: "EQS 1" };
                let (connection, channel) =
                    core.open_internal(client, unbounded_channel().0).unwrap();
                let declared = durable_queue(core, channel, queue);
                core.detach(connection);
                declared.map(|ticket| ((), ticket))
            }
        });
        let answer = async {
            let question = questions.recv().await.unwrap();
            let answer = move |core: &mut Core| {
                core.broker.name_checked(question, says, Box::new(()));
            };
            core.call(answer).await.unwrap();
        };
        tokio::join!(declare, answer).0.unwrap()
    }

    #[test]
    fn a_replicated_queues_name_is_none_for_a_durable_queue() {
        let name = format!("quelea-elastic-bridge-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let config = NodeConfig::of_test(directory.join("data"));
        let data = DataDir::lock(&config.data_dir).unwrap();
        let (name_questions, mut questions) = unbounded_channel();
        let other = OtherStore { adopt: Box::new(|_| Ok(users())), name_questions };
        let node = Node::start_beside(config, data, Some(other)).unwrap();
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let core = node.handle();
        runtime.block_on(async {
            let mut declared = async |queue, says| declared(core, &mut questions, (queue, says)).await;
            assert_eq!(declared("free", NameVerdict::Free).await, Ok(()));
            let refused = declared("taken", NameVerdict::Replicated).await.unwrap_err();
            let said = "queue 'taken' in vhost '/' is of class replicated, which AMQP does not serve: a name is one queue";
            assert_eq!(refused.to_string(), said);
            let unknown = NameVerdict::Unknown("too few replicas".to_owned());
            let refused = declared("unknown", unknown).await.unwrap_err().to_string();
            assert!(refused.ends_with("is of class replicated: too few replicas"), "{refused}");
            let there = core.call(|core| {
                ["free", "taken", "unknown"].map(|name| core.broker.queue("/", name).is_some())
            });
            assert_eq!(there.await.unwrap(), [true, false, false]);
            core.call(|core| core.begin_stop()).await.unwrap();
        });
        let _ = node.join();
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

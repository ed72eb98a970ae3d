//! Building the broker from what the store has recovered.

use quelea_model::{QueueId, Timestamp};
use quelea_store::{QueueIndex, Recovered, Removed};

use crate::Broker;
use crate::binding::Destination;
use crate::declare_queue::NewQueue;
use crate::error::RecoveryError;
use crate::exchange::DeclareExchangeError;
use crate::queue::QueueArguments;
use crate::topology::{Item, StoredBinding, StoredDestination, StoredQueue};
use crate::vhost::VhostId;

impl Broker {
    /// Items come by kind: vhosts, users, permissions, exchanges, queues, bindings.
    pub(crate) fn restore(
        &mut self,
        mut recovered: Recovered,
        now: Timestamp,
    ) -> Result<(), RecoveryError> {
        for (key, value) in &recovered.topology {
            match Item::decode(key, value)? {
                Item::Vhost(vhost) => {
                    self.add_vhost(vhost);
                }
                Item::User(user) => {
                    let put = self.access.put_user(&user.name, &user.password_hash, &user.tags);
                    put.map_err(inconsistent)?;
                }
                Item::Permission(permission) => {
                    self.access.set_permission(permission).map_err(inconsistent)?;
                }
                Item::TopicPermission(permission) => {
                    self.access.set_topic_permission(permission).map_err(inconsistent)?;
                }
                Item::Exchange(vhost, spec) => {
                    let id = self.known_vhost(vhost.as_str())?;
                    if let Some(vhost) = self.vhosts.get_mut(id.0) {
                        match vhost.router.declare(spec) {
                            // Names that were free once may be reserved now.
                            Ok(_) | Err(DeclareExchangeError::ReservedName { .. }) => {}
                            Err(error) => return Err(inconsistent(error)),
                        }
                    }
                }
                Item::Queue(stored) => {
                    let messages = recovered.queues.remove(&stored.id).unwrap_or_default();
                    self.recover_queue(stored, messages, now)?;
                }
                Item::Binding(binding) => self.recover_binding(&binding)?,
            }
        }
        self.release_strangers(recovered);
        Ok(())
    }

    fn recover_queue(
        &mut self,
        stored: StoredQueue,
        messages: QueueIndex,
        now: Timestamp,
    ) -> Result<(), RecoveryError> {
        let vhost = self.known_vhost(stored.vhost.as_str())?;
        let limit = self.config.quorum_delivery_limit;
        let rules =
            QueueArguments::parse(&stored.arguments, true, false, limit).map_err(|bad| {
                let queue = &stored.name;
                inconsistent(format!(
                    "argument {} of queue '{queue}': {}",
                    bad.argument, bad.problem
                ))
            })?;
        self.next_queue = self.next_queue.max(QueueId(stored.id.0 + 1));
        self.add_queue(NewQueue {
            id: stored.id,
            name: stored.name,
            vhost,
            durable: true,
            auto_delete: stored.auto_delete,
            owner: None,
            table: stored.arguments,
            rules,
            created_at: stored.created_at,
            messages,
        });
        if let Some(queue) = self.queues.get_mut(&stored.id) {
            // Its time begins anew: nobody could use it while the broker was away.
            queue.used_at = now;
        }
        self.touch(stored.id);
        self.follow_up(stored.id);
        Ok(())
    }

    fn recover_binding(&mut self, stored: &StoredBinding) -> Result<(), RecoveryError> {
        let id = self.known_vhost(stored.vhost.as_str())?;
        let Some(vhost) = self.vhosts.get_mut(id.0) else {
            return Ok(());
        };
        let destination = match &stored.destination {
            StoredDestination::Exchange(name) => Destination::Exchange(name.clone()),
            StoredDestination::Queue(name) => match vhost.queues.get(name) {
                Some(id) => Destination::Queue(*id, name.clone()),
                None => {
                    let text = format!("a binding leads to queue '{name}', which is not there");
                    return Err(inconsistent(text));
                }
            },
        };
        let source = stored.source.as_str();
        let bound = vhost.router.bind(source, &destination, &stored.key, &stored.arguments);
        bound.map(|_| ()).map_err(inconsistent)
    }

    fn known_vhost(&self, name: &str) -> Result<VhostId, RecoveryError> {
        let id = self.vhost_ids.get(name).copied();
        id.ok_or_else(|| inconsistent(format!("vhost '{name}' is named but not there")))
    }

    /// Messages of queues that are not there any more: a crash came between the queue's end in the
    /// topology and its end in the log.
    fn release_strangers(&mut self, recovered: Recovered) {
        for (id, mut index) in recovered.queues {
            let store = &mut self.store;
            index.drain(&mut |removed| match removed {
                Removed::Entry(message) => store.release(&message.entry),
                Removed::Stretch(stretch) => store.release_stretch(&stretch),
            });
            self.store.append_queue_deleted(id);
            self.next_queue = self.next_queue.max(QueueId(id.0 + 1));
        }
    }
}

fn inconsistent(error: impl std::fmt::Display) -> RecoveryError {
    RecoveryError::Inconsistent(error.to_string())
}

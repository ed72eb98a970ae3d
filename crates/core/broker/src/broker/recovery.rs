//! Building the broker from what the store has recovered.

use std::collections::{BTreeMap, BTreeSet};

use quelea_model::limits::DEDUPLICATION_MS;
use quelea_model::{ExchangeName, QueueId, QueueName, Seq, Timestamp, VhostName};
use quelea_store::{Deduplication, EntryFlags, QueueIndex, Recovered, Visibility};

use super::Broker;
use crate::access::access_key::AccessKey;
use crate::effect::Effect;
use crate::error::{ExchangeError, RecoveryError};
use crate::ids::VhostId;
use crate::messaging::Messaging;
use crate::queues::queue::arguments::QueueArguments;
use crate::queues::queue::invisible::{InvisibleMessage, InvisibleMessages};
use crate::queues::queue::{NewQueue, release};
use crate::routing::binding::Destination;
use crate::routing::exchange::ExchangeSpec;
use crate::topology::{Item, StoredBinding, StoredDestination, StoredQueue};

impl Broker {
    /// Restores what the store has recovered. Items come by kind: vhosts, users, permissions,
    /// exchanges, queues, bindings, access keys, attributes of queues, move tasks.
    ///
    /// Where the operator has accepted damage, an item that needs one which is lost is lost with it: it is
    /// deleted, so that the next start needs no such leave, and said.
    pub(crate) fn restore(
        &mut self,
        mut recovered: Recovered,
        now: Timestamp,
    ) -> Result<(), RecoveryError> {
        let is_damaged = !recovered.damage.is_empty();
        let topology = std::mem::take(&mut recovered.topology);
        if is_damaged {
            self.replace_vhosts(&topology);
        }
        // Exchanges that lost bindings that led nowhere.
        let mut bereft = BTreeSet::new();
        for (key, value) in topology {
            let restored = Item::decode(&key, &value)
                .map_err(RecoveryError::from)
                .and_then(|item| self.restore_item(item, &mut recovered, &mut bereft, now));
            match restored {
                Err(error) if is_damaged => {
                    let Messaging { log, effects, .. } = &mut self.messaging;
                    log.store.delete_topology(&key);
                    effects.push_back(Effect::DefinitionLost { problem: error.to_string() });
                }
                restored => restored?,
            }
        }
        self.move_tasks.name_destinations(&self.messaging.queues);
        for (vhost, exchange) in bereft {
            let id = self.known_vhost(vhost.as_str())?;
            self.routing.remove_unused(&mut self.messaging.log, id, exchange.as_str());
            self.add_leaving_exchanges(id);
        }
        self.release_strangers(recovered);
        Ok(())
    }

    fn restore_item(
        &mut self,
        item: Item,
        recovered: &mut Recovered,
        bereft: &mut BTreeSet<(VhostName, ExchangeName)>,
        now: Timestamp,
    ) -> Result<(), RecoveryError> {
        if item.vhost().is_some_and(|vhost| self.routing.vhost_id(vhost.as_str()).is_none()) {
            // The process ended between the virtual host's end and that of what is in it.
            self.messaging.log.unpersist(&item);
            return Ok(());
        }
        match item {
            Item::Vhost(vhost) => self.add_vhost(vhost),
            Item::User(user) => {
                let accounts = &mut self.access.accounts;
                let put = accounts.put_user(&user.name, &user.password_hash, &user.tags);
                put.map_err(inconsistent)?;
            }
            Item::Permission(permission) => {
                self.access.accounts.set_permission(permission).map_err(inconsistent)?;
            }
            Item::TopicPermission(permission) => {
                let set = self.access.accounts.set_topic_permission(permission);
                set.map_err(inconsistent)?;
            }
            Item::Exchange(vhost, spec) => self.recover_exchange(vhost.as_str(), spec)?,
            Item::Queue(stored) => {
                let id = stored.id;
                let messages = recovered.queues.remove(&id).unwrap_or_default();
                let noted = recovered.visibility.remove(&id).unwrap_or_default();
                let (messages, invisible) = hide(messages, noted, now);
                self.recover_queue(stored, messages, now)?;
                let sent = recovered.deduplications.remove(&id).unwrap_or_default();
                self.recover_invisible(id, invisible, sent, now);
            }
            Item::Binding(binding) => {
                let is_damaged = !recovered.damage.is_empty();
                if !self.recover_binding(&binding, is_damaged)? {
                    bereft.insert((binding.vhost, binding.source));
                }
            }
            Item::AccessKey(key) => self.recover_access_key(key)?,
            Item::Attributes(stored) => {
                let id = self.known_queue(&stored.vhost, &stored.queue, "attributes")?;
                let Messaging { queues, log, .. } = &mut self.messaging;
                queues.apply_attributes(log, id, stored.attributes);
            }
            Item::Move(stored) => {
                let id = self.known_queue(&stored.vhost, &stored.queue, "a move task")?;
                self.move_tasks.restore(id, stored, now);
            }
        }
        Ok(())
    }

    /// A virtual host is little more than its name: where it is lost, what stands in it brings it back.
    fn replace_vhosts(&mut self, topology: &BTreeMap<Vec<u8>, Vec<u8>>) {
        let (mut known, mut named) = (BTreeSet::new(), BTreeSet::new());
        for (key, value) in topology {
            match Item::decode(key, value) {
                Ok(Item::Vhost(vhost)) => known.insert(vhost.name),
                Ok(Item::Exchange(vhost, _) | Item::Queue(StoredQueue { vhost, .. })) => {
                    named.insert(vhost)
                }
                _ => false,
            };
        }
        for name in named.difference(&known) {
            self.make_vhost(name.clone());
            let problem = format!("vhost '{name}' is lost and made anew for what is in it");
            self.messaging.effects.push_back(Effect::DefinitionLost { problem });
        }
    }

    fn recover_exchange(&mut self, vhost: &str, spec: ExchangeSpec) -> Result<(), RecoveryError> {
        let id = self.known_vhost(vhost)?;
        match self.routing.router_mut(id).map(|router| router.declare(spec)) {
            // Names that were free once may be reserved now.
            None | Some(Ok(_) | Err(ExchangeError::ReservedName(_))) => Ok(()),
            Some(Err(error)) => Err(inconsistent(error)),
        }
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
        self.messaging.queues.note_id(stored.id);
        self.add_queue(NewQueue {
            id: stored.id,
            name: stored.name,
            vhost,
            vhost_name: stored.vhost,
            durable: true,
            auto_delete: stored.auto_delete,
            owner: None,
            table: stored.arguments,
            rules,
            created_at: stored.created_at,
            messages,
        });
        if let Some(queue) = self.messaging.queues.get_mut(stored.id) {
            // Its time begins anew: nobody could use it while the broker was away.
            queue.used_at = now;
        }
        self.messaging.queues.wake(stored.id);
        self.messaging.queues.reschedule(stored.id);
        Ok(())
    }

    fn recover_invisible(
        &mut self,
        id: QueueId,
        invisible: InvisibleMessages,
        mut sent: Vec<Deduplication>,
        now: Timestamp,
    ) {
        let Some(queue) = self.messaging.queues.get_mut(id) else {
            return;
        };
        queue.invisible = invisible;
        // What a checkpoint repeats comes after what was sent while it was made.
        sent.sort_by_key(|sent| sent.sent_at);
        for sent in sent {
            let known = queue.deduplications.get_or_insert_default();
            // A checkpoint repeats what was noted before it.
            if sent.sent_at.plus_ms(DEDUPLICATION_MS) > now && !known.is_full() {
                match known.find(sent.key, now) {
                    Some(known) if known.sent_at >= sent.sent_at => {}
                    _ => known.add(sent),
                }
            }
        }
        self.messaging.queues.reschedule(id);
    }

    /// Restores a binding. Returns false if one of its ends is gone: the process ended between the
    /// end of a queue or exchange and that of its last binding (`removals.rs`). Then it goes too.
    /// An exchange may also be lost by damage.
    fn recover_binding(
        &mut self,
        stored: &StoredBinding,
        is_damaged: bool,
    ) -> Result<bool, RecoveryError> {
        let id = self.known_vhost(stored.vhost.as_str())?;
        let Some(router) = self.routing.router_mut(id) else {
            return Ok(true);
        };
        let source = stored.source.as_str();
        let has = |name: &str| is_damaged || router.exchange(name).is_some();
        let destination = match &stored.destination {
            StoredDestination::Exchange(name) => {
                has(name.as_str()).then(|| Destination::Exchange(name.clone()))
            }
            StoredDestination::Queue(name) => {
                let queue = self.messaging.queues.find(id, name.as_str());
                queue.map(|queue| Destination::Queue(queue, name.clone()))
            }
        };
        let Some(destination) = destination.filter(|_| has(source)) else {
            self.messaging.log.unpersist(&Item::Binding(stored.clone()));
            return Ok(false);
        };
        let bound = router.restore_binding(source, &destination, &stored.key, &stored.arguments);
        bound.map(|()| true).map_err(inconsistent)
    }

    fn recover_access_key(&mut self, key: AccessKey) -> Result<(), RecoveryError> {
        self.known_vhost(key.vhost.as_str())?;
        if self.access.accounts.user(&key.user).is_none() {
            let AccessKey { id, user, .. } = &key;
            return Err(inconsistent(format!(
                "access key '{id}' is of user '{user}', who is not there"
            )));
        }
        self.access.keys.restore(key);
        Ok(())
    }

    fn known_queue(
        &self,
        vhost: &VhostName,
        queue: &QueueName,
        what: &str,
    ) -> Result<QueueId, RecoveryError> {
        let id = self.queue_id(vhost.as_str(), queue.as_str());
        id.ok_or_else(|| inconsistent(format!("{what} of queue '{queue}', which is not there")))
    }

    fn known_vhost(&self, name: &str) -> Result<VhostId, RecoveryError> {
        let id = self.routing.vhost_id(name);
        id.ok_or_else(|| inconsistent(format!("vhost '{name}' is named but not there")))
    }

    /// Messages of queues that are not there any more: a crash came between the queue's end in the
    /// topology and its end in the log.
    fn release_strangers(&mut self, recovered: Recovered) {
        let Messaging { queues, log, .. } = &mut self.messaging;
        for (id, mut index) in recovered.queues {
            index.drain(&mut |removed| release(&mut *log.store, &removed));
            log.store.append_queue_deleted(id);
            queues.note_id(id);
        }
    }
}

/// Takes out of the recovered messages those whose time has not come, and sets on the others the counts
/// that were noted.
fn hide(
    mut messages: QueueIndex,
    noted: BTreeMap<Seq, Visibility>,
    now: Timestamp,
) -> (QueueIndex, InvisibleMessages) {
    let mut invisible = InvisibleMessages::default();
    for (seq, noted) in noted {
        let Some(mut message) = messages.remove(seq) else {
            continue;
        };
        let entry = &mut message.entry;
        // A reception that was undone makes it less.
        entry.delivery_count = noted.receive_count;
        if noted.receive_count > 0 {
            entry.flags = entry.flags.with(EntryFlags::REDELIVERED);
        }
        let (visible_at, first_received_at) = (noted.visible_at, noted.first_received_at);
        if visible_at > now {
            // When it was received last is not kept; its receiver is given the benefit of the doubt.
            let received_at = now;
            invisible.insert(InvisibleMessage {
                message,
                visible_at,
                received_at,
                first_received_at,
            });
            continue;
        }
        if noted.receive_count > 0 {
            invisible.remember(seq, first_received_at);
        }
        messages.insert(message.entry, message.expires_at, message.body);
    }
    (messages, invisible)
}

fn inconsistent(error: impl std::fmt::Display) -> RecoveryError {
    RecoveryError::Inconsistent(error.to_string())
}

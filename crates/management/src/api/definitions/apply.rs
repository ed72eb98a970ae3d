//! Makes what a checked document says. What fails in the middle, at a limit or by somebody else's change, takes back what
//! was made before it.

use quelea_broker::access::{ADMINISTRATION, TopicPermission};
use quelea_broker::{
    Broker, ChannelId, ConnectionInfo, DeclareExchange, ExchangeBinding, QueueBinding,
};
use quelea_model::Timestamp;
use quelea_store::Ticket;

use super::document::{
    BindingDefinition, Document, PermissionDefinition, QueueDefinition, TopicPermissionDefinition,
    UserDefinition,
};
use super::standing::Standing;
use crate::error::ApiError;
use crate::identity::users::password_hash;
use crate::operation::{until_free, with_channel};
use crate::state::{ApiState, SharedState as _};

/// # Errors
/// Why something cannot be made. Nothing of it is left then.
pub(super) async fn apply(
    api: &ApiState,
    document: Document,
    standing: &Standing,
) -> Result<(), ApiError> {
    let mut changes = Changes { api, standing, undo: Vec::new(), ticket: Ticket::NONE };
    if let Err(error) = changes.make(document).await {
        changes.take_back().await;
        return Err(error);
    }
    api.core.reached(changes.ticket).await.map_err(|_| ApiError::Stopping)
}

/// A change of the broker, and what takes one back.
type Change = Box<dyn FnOnce(&mut Broker, Timestamp) -> Result<Ticket, ApiError> + Send>;

struct Changes<'a> {
    api: &'a ApiState,
    standing: &'a Standing,
    /// What takes back what was made, in the order in which that was.
    undo: Vec<Change>,
    ticket: Ticket,
}

impl Changes<'_> {
    async fn make(&mut self, document: Document) -> Result<(), ApiError> {
        for (at, vhost) in document.vhosts.into_iter().enumerate() {
            self.vhost(vhost).await.map_err(here("vhosts", at))?;
        }
        for (at, (vhost, exchange)) in document.exchanges.into_iter().enumerate() {
            self.exchange(vhost, exchange).await.map_err(here("exchanges", at))?;
        }
        for (at, queue) in document.queues.into_iter().enumerate() {
            self.queue(queue).await.map_err(here("queues", at))?;
        }
        for (at, binding) in document.bindings.into_iter().enumerate() {
            self.binding(binding).await.map_err(here("bindings", at))?;
        }
        for (at, user) in document.users.into_iter().enumerate() {
            self.user(user).await.map_err(here("users", at))?;
        }
        for (at, permission) in document.permissions.into_iter().enumerate() {
            self.permission(permission).await.map_err(here("permissions", at))?;
        }
        for (at, permission) in document.topic_permissions.into_iter().enumerate() {
            self.topic_permission(permission).await.map_err(here("topic_permissions", at))?;
        }
        Ok(())
    }

    async fn vhost(&mut self, vhost: String) -> Result<(), ApiError> {
        if self.standing.vhosts.contains(&vhost) {
            return Ok(());
        }
        let name = vhost.clone();
        until_free(self.api, move |broker| broker.is_vhost_being_deleted(&name)).await?;
        let name = vhost.clone();
        let make = change(move |b, now| b.put_vhost(now, &name));
        self.done(make, change(move |b, now| b.delete_vhost(now, &vhost))).await
    }

    async fn exchange(&mut self, vhost: String, request: DeclareExchange) -> Result<(), ApiError> {
        let name = request.name.clone();
        if self.standing.exchanges.contains_key(&(vhost.clone(), name.clone())) {
            return Ok(());
        }
        let (within, wanted) = (vhost.clone(), name.clone());
        until_free(self.api, move |b| b.is_exchange_being_deleted_in(&within, &wanted)).await?;
        let make = administered(vhost.clone(), move |b, now, channel| {
            b.declare_exchange(now, channel, &request)
        });
        let undo = administered(vhost, move |b, now, channel| {
            b.delete_exchange(now, channel, &name, false)
        });
        self.done(make, undo).await
    }

    async fn queue(&mut self, definition: QueueDefinition) -> Result<(), ApiError> {
        let QueueDefinition { vhost, declared: request, sqs } = definition;
        let name = request.name.clone();
        if self.standing.queues.contains_key(&(vhost.clone(), name.clone())) {
            return Ok(());
        }
        if name.is_empty() {
            return Err(ApiError::bad("name is empty"));
        }
        let (within, wanted) = (vhost.clone(), name.clone());
        until_free(self.api, move |b| b.is_queue_being_deleted_in(&within, &wanted)).await?;
        let account = self.api.account_of(&vhost).to_owned();
        let (of, queue) = (vhost.clone(), name.clone());
        // Nobody else is asked whether it has the name: beside another store there are no imports.
        let make = administered(vhost.clone(), move |b, now, channel| {
            let kept = sqs.map(|sqs| sqs.to_broker(&account, now)).transpose()?;
            let declared = b.declare_queue(now, channel, &request)?.ticket;
            let Some(kept) = kept else { return Ok::<_, ApiError>(declared) };
            let id = b.queue_id(&of, &queue).ok_or(ApiError::NotFound)?;
            match b.put_queue_attributes(id, kept) {
                Ok(set) => Ok(declared.join(set)),
                Err(error) => {
                    // Nothing is left of what was refused.
                    let _ = b.delete_queue(now, channel, &queue, true, true);
                    Err(ApiError::bad(error.to_string()))
                }
            }
        });
        // A message that somebody has put into it meanwhile is not lost.
        let undo = administered(vhost, move |b, now, channel| {
            b.delete_queue(now, channel, &name, true, true).map(|deleted| deleted.ticket)
        });
        self.done(make, undo).await
    }

    async fn binding(&mut self, binding: BindingDefinition) -> Result<(), ApiError> {
        if self.standing.bindings.contains(&binding.key()) {
            return Ok(());
        }
        self.done(bind(binding.clone(), true), bind(binding, false)).await
    }

    async fn user(&mut self, user: UserDefinition) -> Result<(), ApiError> {
        let hash = password_hash(self.api, &user.body).await?;
        let UserDefinition { name, tags, .. } = user;
        let undo = match self.standing.users.get(&name).cloned() {
            Some(old) => {
                change(move |b, now| b.put_user(now, &old.name, &old.password_hash, &old.tags))
            }
            None => {
                let name = name.clone();
                change(move |b, now| b.delete_user(now, &name))
            }
        };
        self.done(change(move |b, now| b.put_user(now, &name, &hash, &tags)), undo).await
    }

    async fn permission(&mut self, permission: PermissionDefinition) -> Result<(), ApiError> {
        let PermissionDefinition { user, vhost, patterns: [configure, write, read] } = permission;
        let old = self.standing.permissions.get(&(user.clone(), vhost.clone())).cloned();
        let (of, within) = (user.clone(), vhost.clone());
        let undo = change(move |b, now| match old {
            Some(old) => {
                b.set_permissions(now, &of, &within, &old.configure, &old.write, &old.read)
            }
            None => b.clear_permissions(now, &of, &within),
        });
        let make =
            change(move |b, now| b.set_permissions(now, &user, &vhost, &configure, &write, &read));
        self.done(make, undo).await
    }

    async fn topic_permission(
        &mut self,
        permission: TopicPermissionDefinition,
    ) -> Result<(), ApiError> {
        let TopicPermissionDefinition { user, vhost, exchange, patterns: [write, read] } =
            permission;
        let is_it = |p: &&TopicPermission| {
            *p.user == *user && p.vhost.as_str() == vhost && *p.exchange == *exchange
        };
        let old = self.standing.topic_permissions.iter().find(is_it).cloned();
        let (of, within, on) = (user.clone(), vhost.clone(), exchange.clone());
        let undo = change(move |b, now| match old {
            Some(old) => b.set_topic_permissions(now, &of, &within, &on, &old.write, &old.read),
            None => b.clear_topic_permissions(now, &of, &within, Some(&on)),
        });
        let make = change(move |b, now| {
            b.set_topic_permissions(now, &user, &vhost, &exchange, &write, &read)
        });
        self.done(make, undo).await
    }

    /// Makes a change, and remembers what takes it back.
    async fn done(&mut self, make: Change, undo: Change) -> Result<(), ApiError> {
        self.run(make).await?;
        self.undo.push(undo);
        Ok(())
    }

    async fn run(&mut self, change: Change) -> Result<(), ApiError> {
        let changed = self.api.ask(move |core| {
            let now = core.now();
            change(&mut core.broker, now)
        });
        self.ticket = self.ticket.join(changed.await??);
        Ok(())
    }

    /// The last first, so that nothing is taken away under what still stands on it.
    async fn take_back(&mut self) {
        while let Some(undo) = self.undo.pop() {
            if let Err(error) = self.run(undo).await {
                tracing::warn!(?error, "what a refused import had made is left");
            }
        }
    }
}

fn change<E: Into<ApiError>>(
    change: impl FnOnce(&mut Broker, Timestamp) -> Result<Ticket, E> + Send + 'static,
) -> Change {
    Box::new(move |broker, now| change(broker, now).map_err(Into::into))
}

/// A change in a virtual host that nobody's permissions are asked for.
fn administered<E: Into<ApiError>>(
    vhost: String,
    change: impl FnOnce(&mut Broker, Timestamp, ChannelId) -> Result<Ticket, E> + Send + 'static,
) -> Change {
    let (user, loopback) = (ADMINISTRATION.to_owned(), true);
    // The import itself is in the audit trail.
    let is_audited = true;
    let info = ConnectionInfo { user, vhost, loopback, is_audited, ..ConnectionInfo::default() };
    Box::new(move |broker, now| {
        with_channel(broker, now, info, |broker, channel| change(broker, now, channel))
    })
}

/// Makes a binding, or takes it away.
fn bind(binding: BindingDefinition, wanted: bool) -> Change {
    let BindingDefinition { vhost, source, destination, to_queue, routing_key, arguments } =
        binding;
    if to_queue {
        let request = QueueBinding { queue: destination, exchange: source, routing_key, arguments };
        return administered(vhost, move |b, now, channel| match wanted {
            true => b.bind_queue(now, channel, &request),
            false => b.unbind_queue(now, channel, &request),
        });
    }
    let request = ExchangeBinding { destination, source, routing_key, arguments };
    administered(vhost, move |b, now, channel| match wanted {
        true => b.bind_exchange(now, channel, &request),
        false => b.unbind_exchange(now, channel, &request),
    })
}

/// Says where in the document a bad request comes from.
fn here(section: &'static str, at: usize) -> impl FnOnce(ApiError) -> ApiError {
    move |error| match error {
        ApiError::BadRequest(reason) => ApiError::BadRequest(format!("{section}[{at}]: {reason}")),
        other => other,
    }
}

//! Makes what a checked document says. What fails in the middle, at a limit or by somebody else's change, takes back what
//! was made before it.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use quelea_broker::access::{ADMINISTRATION, TopicPermission, check_user_name};
use quelea_broker::{
    Broker, ChannelId, ConnectionInfo, DeclareExchange, DeclareQueue, ExchangeBinding, QueueBinding,
};
use quelea_model::{Timestamp, VhostName};
use quelea_sqs_protocol::{Fault, IdentityDirectory as _, PermissionRecord, UserRecord};
use quelea_store::Ticket;

use super::document::{
    BindingDefinition, Document, PermissionDefinition, QueueDefinition, TopicPermissionDefinition,
    UserDefinition,
};
use super::existing::{ExistingTopology, Place};
use super::sqs::SqsAttributes;
use crate::error::ApiError;
use crate::identity::check_patterns;
use crate::identity::users::password_hash;
use crate::operation::{until_checked, until_free, with_channel};
use crate::state::{ApiState, BrokerState, SharedState as _};

/// Users, and permissions, that are written at once: they share the log's syncs.
const AT_ONCE: usize = 64;

/// # Errors
/// Why something cannot be made. Nothing of it is left then.
pub(super) async fn apply(
    state: &impl BrokerState,
    document: Document,
    existing: &ExistingTopology,
) -> Result<(), ApiError> {
    let api = state.broker();
    let mut changes = Changes {
        state,
        api,
        existing,
        sources: BTreeSet::new(),
        undo: Vec::new(),
        ticket: Ticket::NONE,
    };
    if let Err(error) = changes.make(document).await {
        changes.take_back().await;
        return Err(error);
    }
    api.core.reached(changes.ticket).await.map_err(|_| ApiError::Stopping)
}

/// A change of the broker, and what takes one back.
type Change = Box<dyn FnOnce(&mut Broker, Timestamp) -> Result<Ticket, ApiError> + Send>;

/// What takes back something that was made.
enum Undo {
    Broker(Change),
    /// It was there, and may go with the last of the bindings that are taken back before it.
    AutoDelete(Place),
    /// It was not there.
    Vhost(String),
    /// The user as it was, or the name of one who was not there.
    User(Result<UserRecord, String>),
    /// Permissions as they were, or the user and virtual host where there were none.
    Permission(Result<PermissionRecord, (Arc<str>, Arc<str>)>),
}

struct Changes<'a, S> {
    state: &'a S,
    api: &'a ApiState,
    existing: &'a ExistingTopology,
    /// Exchanges that stood, auto-delete, and have bindings of the document.
    sources: BTreeSet<Place>,
    /// In the order in which it was made.
    undo: Vec<Undo>,
    ticket: Ticket,
}

impl<S: BrokerState> Changes<'_, S> {
    async fn make(&mut self, document: Document) -> Result<(), ApiError> {
        // What is wrong by itself shows before anything is made.
        let users = user_records(self.state, document.users).await?;
        let permissions = permission_records(document.permissions)?;
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
        self.users(users).await?;
        self.permissions(permissions).await?;
        for (at, permission) in document.topic_permissions.into_iter().enumerate() {
            self.topic_permission(permission).await.map_err(here("topic_permissions", at))?;
        }
        Ok(())
    }

    async fn vhost(&mut self, vhost: String) -> Result<(), ApiError> {
        if self.existing.vhosts.contains(&vhost) {
            return Ok(());
        }
        VhostName::parse(&vhost).map_err(ApiError::bad)?;
        let name = vhost.clone();
        until_free(self.api, move |broker| broker.is_vhost_being_deleted(&name)).await?;
        let put = self.state.directory().put_vhost(&vhost, None).await;
        if matches!(put, Ok(true) | Err(Fault::Unavailable(_))) {
            self.undo.push(Undo::Vhost(vhost));
        }
        Ok(put.map(drop)?)
    }

    async fn exchange(&mut self, vhost: String, request: DeclareExchange) -> Result<(), ApiError> {
        let name = request.name.clone();
        if self.existing.exchanges.contains_key(&(vhost.clone(), name.clone())) {
            return Ok(());
        }
        self.declare_exchange(vhost.clone(), request).await?;
        self.undo.push(Undo::Broker(administered(vhost, move |b, now, channel| {
            b.delete_exchange(now, channel, &name, false)
        })));
        Ok(())
    }

    async fn declare_exchange(
        &mut self,
        vhost: String,
        request: DeclareExchange,
    ) -> Result<(), ApiError> {
        let (within, wanted) = (vhost.clone(), request.name.clone());
        until_free(self.api, move |b| b.is_exchange_being_deleted_in(&within, &wanted)).await?;
        let make =
            administered(vhost, move |b, now, channel| b.declare_exchange(now, channel, &request));
        self.ticket = self.ticket.join(run(self.api, make).await?);
        Ok(())
    }

    async fn queue(&mut self, definition: QueueDefinition) -> Result<(), ApiError> {
        let QueueDefinition { vhost, declared: request, sqs } = definition;
        let name = request.name.clone();
        if self.existing.queues.contains_key(&(vhost.clone(), name.clone())) {
            return Ok(());
        }
        if name.is_empty() {
            return Err(ApiError::bad("name is empty"));
        }
        let (within, wanted) = (vhost.clone(), name.clone());
        until_free(self.api, move |b| b.is_queue_being_deleted_in(&within, &wanted)).await?;
        let (api, request) = (self.api, Arc::new(request));
        let ticket = until_checked(api, || {
            run(api, declare_queue(api, vhost.clone(), Arc::clone(&request), sqs.clone()))
        })
        .await?;
        self.ticket = self.ticket.join(ticket);
        // A message that somebody has put into it meanwhile is not lost.
        self.undo.push(Undo::Broker(administered(vhost, move |b, now, channel| {
            b.delete_queue(now, channel, &name, true, true).map(|deleted| deleted.ticket)
        })));
        Ok(())
    }

    async fn binding(&mut self, binding: BindingDefinition) -> Result<(), ApiError> {
        if self.existing.bindings.contains(&binding.key()) {
            return Ok(());
        }
        let source = (binding.vhost.clone(), binding.source.clone());
        let auto_delete = self.existing.exchanges.get(&source).is_some_and(|it| it.auto_delete);
        if auto_delete && self.sources.insert(source.clone()) {
            self.undo.push(Undo::AutoDelete(source));
        }
        self.done(bind(binding.clone(), true), bind(binding, false)).await
    }

    async fn users(&mut self, records: Vec<(usize, UserRecord)>) -> Result<(), ApiError> {
        for some in records.chunks(AT_ONCE) {
            let (state, existing) = (self.state, self.existing);
            let made = some.iter().map(|one| put_user(state, existing, one));
            self.keep(join_all(made).await)?;
        }
        Ok(())
    }

    async fn permissions(
        &mut self,
        records: Vec<(usize, PermissionRecord)>,
    ) -> Result<(), ApiError> {
        for some in records.chunks(AT_ONCE) {
            let (state, existing) = (self.state, self.existing);
            let made = some.iter().map(|one| put_permission(state, existing, one));
            self.keep(join_all(made).await)?;
        }
        Ok(())
    }

    /// Remembers what takes back those that were made, beside which others may have failed.
    fn keep(&mut self, made: Vec<Made>) -> Result<(), ApiError> {
        let mut first = Ok(());
        for Made { undo, outcome } in made {
            self.undo.extend(undo);
            first = first.and(outcome);
        }
        first
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
        let old = self.existing.topic_permissions.iter().find(is_it).cloned();
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
        self.ticket = self.ticket.join(run(self.api, make).await?);
        self.undo.push(Undo::Broker(undo));
        Ok(())
    }

    /// The last first, so that nothing is taken away under what still stands on it.
    async fn take_back(&mut self) {
        while let Some(undo) = self.undo.pop() {
            if let Err(error) = self.take_back_one(undo).await {
                tracing::warn!(?error, "what a refused import had made is left");
            }
        }
    }

    async fn take_back_one(&mut self, undo: Undo) -> Result<(), ApiError> {
        let directory = self.state.directory();
        match undo {
            Undo::Broker(change) => {
                self.ticket = self.ticket.join(run(self.api, change).await?);
            }
            Undo::AutoDelete(place) => self.declare_again(place).await?,
            Undo::Vhost(vhost) => drop(directory.delete_vhost(&vhost).await?),
            Undo::User(Ok(old)) => drop(directory.put_user(old).await?),
            Undo::User(Err(name)) => drop(directory.delete_user(&name).await?),
            Undo::Permission(Ok(old)) => drop(directory.put_permission(old).await?),
            Undo::Permission(Err((user, vhost))) => {
                directory.delete_permission(&user, &vhost).await?;
            }
        }
        Ok(())
    }

    /// Makes an exchange that stood what it was: with its last binding went those to it, and with these the auto-delete
    /// exchanges that had no other. What is still there stays.
    async fn declare_again(&mut self, (vhost, name): Place) -> Result<(), ApiError> {
        let (mut names, mut bindings) = (vec![name], Vec::new());
        let mut at = 0;
        while let Some(name) = names.get(at).cloned() {
            let to_it = |one: &&BindingDefinition| one.vhost == vhost && one.destination == name;
            for binding in self.existing.bindings_to_auto_delete.iter().filter(to_it) {
                let source = (vhost.clone(), binding.source.clone());
                let exchange = self.existing.exchanges.get(&source);
                if exchange.is_some_and(|it| it.auto_delete) && !names.contains(&source.1) {
                    names.push(source.1);
                }
                bindings.push(binding.clone());
            }
            at += 1;
        }
        for name in names {
            let Some(report) = self.existing.exchanges.get(&(vhost.clone(), name.clone())) else {
                continue;
            };
            let request = DeclareExchange {
                name: name.clone(),
                kind: report.kind.to_owned(),
                passive: false,
                durable: report.durable,
                auto_delete: report.auto_delete,
                internal: report.internal,
                arguments: report.arguments.clone(),
            };
            self.declare_exchange(vhost.clone(), request).await?;
        }
        for binding in bindings {
            self.ticket = self.ticket.join(run(self.api, bind(binding, true)).await?);
        }
        Ok(())
    }
}

/// Returns what the document says of users, each with its place.
async fn user_records(
    state: &impl BrokerState,
    users: Vec<UserDefinition>,
) -> Result<Vec<(usize, UserRecord)>, ApiError> {
    let mut records = Vec::new();
    for (at, UserDefinition { name, tags, body }) in users.into_iter().enumerate() {
        check_user_name(&name).map_err(ApiError::bad).map_err(here("users", at))?;
        let hash = password_hash(state, &body).await.map_err(here("users", at))?;
        records.push((at, UserRecord { name: name.into(), password_hash: hash.into(), tags }));
    }
    last_of_each(&mut records, |(_, user)| user.name.clone());
    Ok(records)
}

/// Returns what the document says of permissions, each with its place.
fn permission_records(
    permissions: Vec<PermissionDefinition>,
) -> Result<Vec<(usize, PermissionRecord)>, ApiError> {
    let mut records = Vec::new();
    for (at, definition) in permissions.into_iter().enumerate() {
        let PermissionDefinition { user, vhost, patterns: [configure, write, read] } = definition;
        check_patterns(&configure, &write, &read).map_err(here("permissions", at))?;
        let (user, vhost) = (user.into(), vhost.into());
        records.push((at, PermissionRecord { user, vhost, configure, write, read }));
    }
    last_of_each(&mut records, |(_, one)| (one.user.clone(), one.vhost.clone()));
    Ok(records)
}

/// What became of a part of the document, and what takes it back: also one whose outcome is not known may have been made.
struct Made {
    undo: Option<Undo>,
    outcome: Result<(), ApiError>,
}

/// Puts a user of a place in the document.
async fn put_user(
    state: &impl BrokerState,
    existing: &ExistingTopology,
    (at, user): &(usize, UserRecord),
) -> Made {
    let put = state.directory().put_user(user.clone()).await;
    let old = existing.users.get(&*user.name).cloned();
    let undo = match (&put, old) {
        (Ok(_) | Err(Fault::Unavailable(_)), Some(old)) => Some(Undo::User(Ok(old))),
        (Ok(true) | Err(Fault::Unavailable(_)), None) => {
            Some(Undo::User(Err(user.name.to_string())))
        }
        // Somebody else has made this user meanwhile, or nothing was done.
        _ => None,
    };
    let outcome = put.map(drop).map_err(ApiError::from).map_err(here("users", *at));
    Made { undo, outcome }
}

/// Puts a permission of a place in the document.
async fn put_permission(
    state: &impl BrokerState,
    existing: &ExistingTopology,
    (at, permission): &(usize, PermissionRecord),
) -> Made {
    let put = state.directory().put_permission(permission.clone()).await;
    let PermissionRecord { user, vhost, .. } = permission;
    let undo = matches!(put, Ok(_) | Err(Fault::Unavailable(_))).then(|| {
        let old = existing.permissions.get(&(user.to_string(), vhost.to_string()));
        let none = || (Arc::clone(user), Arc::clone(vhost));
        Undo::Permission(old.cloned().ok_or_else(none))
    });
    let refused = |fault| match fault {
        // A virtual host of the broker alone, which is no account of Cassandra's.
        Fault::NotFound(reason) => ApiError::BadRequest(reason),
        other => other.into(),
    };
    let outcome = put.map(drop).map_err(refused).map_err(here("permissions", *at));
    Made { undo, outcome }
}

/// Keeps the last of those that say the same thing, which counts: they are put at once.
fn last_of_each<T, K: Ord>(all: &mut Vec<T>, key: impl Fn(&T) -> K) {
    let mut seen = BTreeSet::new();
    let mut last: Vec<T> =
        std::mem::take(all).into_iter().rev().filter(|one| seen.insert(key(one))).collect();
    last.reverse();
    *all = last;
}

/// Makes a change, without waiting until it is durable.
async fn run(api: &ApiState, change: Change) -> Result<Ticket, ApiError> {
    let changed = api.on_core(move |core| {
        let now = core.now();
        change(&mut core.broker, now)
    });
    changed.await?
}

/// Declares a queue that no other store has, with what SQS has set of it.
fn declare_queue(
    api: &ApiState,
    vhost: String,
    request: Arc<DeclareQueue>,
    sqs: Option<SqsAttributes>,
) -> Change {
    let (account, of) = (api.account_of(&vhost).to_owned(), vhost.clone());
    administered(vhost, move |b, now, channel| {
        let kept = sqs.map(|sqs| sqs.to_broker(&account, now)).transpose()?;
        b.check_queue_name(channel, &request)?;
        let declared = b.declare_queue(now, channel, &request)?.ticket;
        let Some(kept) = kept else { return Ok::<_, ApiError>(declared) };
        let id = b.queue_id(&of, &request.name).ok_or(ApiError::NotFound)?;
        match b.put_queue_attributes(id, kept) {
            Ok(set) => Ok(declared.join(set)),
            Err(error) => {
                // Nothing is left of what was refused.
                let _ = b.delete_queue(now, channel, &request.name, true, true);
                Err(ApiError::bad(error.to_string()))
            }
        }
    })
}

fn change<E: Into<ApiError>>(
    change: impl FnOnce(&mut Broker, Timestamp) -> Result<Ticket, E> + Send + 'static,
) -> Change {
    Box::new(move |broker, now| change(broker, now).map_err(Into::into))
}

/// Returns a change in a virtual host for which nobody's permissions are checked.
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

//! Makes what a checked document says. What fails in the middle, at a limit or by somebody else's change, takes back what
//! was made before it.

use quelea_broker::{Broker, DeclareQueue, ExchangeBinding, QueueBinding};
use quelea_store::Ticket;

use super::document::{
    BindingDefinition, Document, PermissionDefinition, TopicPermissionDefinition, UserDefinition,
};
use super::standing::Standing;
use crate::api::users::password_hash;
use crate::error::ApiError;
use crate::operation::{begun_as_administration, until_free};
use crate::state::ApiState;

/// # Errors
/// Why something cannot be made. Nothing of it is left then.
pub(super) async fn apply(
    api: &ApiState,
    document: Document,
    standing: &Standing,
) -> Result<(), ApiError> {
    let mut changes = Changes { api, standing, made: Vec::new(), ticket: Ticket::NONE };
    if let Err(error) = changes.make(document).await {
        changes.take_back().await;
        return Err(error);
    }
    api.core.reached(changes.ticket).await.map_err(|_| ApiError::Stopping)
}

/// What an import has made, and how it is taken back.
enum Made {
    Vhost(String),
    Exchange(String, String),
    Queue(String, String),
    Binding(BindingDefinition),
    User(String),
    Permission(String, String),
    TopicPermission(String, String, String),
}

struct Changes<'a> {
    api: &'a ApiState,
    standing: &'a Standing,
    /// In the order in which they were made.
    made: Vec<Made>,
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
        for (at, (vhost, queue)) in document.queues.into_iter().enumerate() {
            self.queue(vhost, queue).await.map_err(here("queues", at))?;
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
        self.change(move |broker, now| broker.put_vhost(now, &name)).await?;
        self.made.push(Made::Vhost(vhost));
        Ok(())
    }

    async fn exchange(
        &mut self,
        vhost: String,
        request: quelea_broker::DeclareExchange,
    ) -> Result<(), ApiError> {
        let name = request.name.clone();
        if self.standing.exchanges.contains_key(&(vhost.clone(), name.clone())) {
            return Ok(());
        }
        let (within, wanted) = (vhost.clone(), name.clone());
        until_free(self.api, move |b| b.is_exchange_being_deleted_in(&within, &wanted)).await?;
        let begun =
            begun_as_administration(self.api, vhost.clone(), move |broker, now, channel| {
                broker.declare_exchange(now, channel, &request)
            });
        let ticket = begun.await?;
        self.reached_later(ticket);
        self.made.push(Made::Exchange(vhost, name));
        Ok(())
    }

    async fn queue(&mut self, vhost: String, request: DeclareQueue) -> Result<(), ApiError> {
        let name = request.name.clone();
        if self.standing.queues.contains_key(&(vhost.clone(), name.clone())) {
            return Ok(());
        }
        if name.is_empty() {
            return Err(ApiError::bad("name is empty"));
        }
        let (within, wanted) = (vhost.clone(), name.clone());
        until_free(self.api, move |b| b.is_queue_being_deleted_in(&within, &wanted)).await?;
        // Nobody else is asked whether it has the name: beside another store there are no imports.
        let begun =
            begun_as_administration(self.api, vhost.clone(), move |broker, now, channel| {
                broker.declare_queue(now, channel, &request).map(|declared| declared.ticket)
            });
        let ticket = begun.await?;
        self.reached_later(ticket);
        self.made.push(Made::Queue(vhost, name));
        Ok(())
    }

    async fn binding(&mut self, binding: BindingDefinition) -> Result<(), ApiError> {
        let key = binding.key();
        if self.standing.bindings.contains(&key) {
            return Ok(());
        }
        let ticket = bind(self.api, binding.clone(), true).await?;
        self.reached_later(ticket);
        self.made.push(Made::Binding(binding));
        Ok(())
    }

    async fn user(&mut self, user: UserDefinition) -> Result<(), ApiError> {
        let hash = password_hash(self.api, &user.body).await?;
        let UserDefinition { name, tags, .. } = user;
        let new = name.clone();
        self.change(move |broker, now| broker.put_user(now, &new, &hash, &tags)).await?;
        self.made.push(Made::User(name));
        Ok(())
    }

    async fn permission(&mut self, permission: PermissionDefinition) -> Result<(), ApiError> {
        let PermissionDefinition { user, vhost, patterns: [configure, write, read] } = permission;
        let made = Made::Permission(user.clone(), vhost.clone());
        self.change(move |broker, now| {
            broker.set_permissions(now, &user, &vhost, &configure, &write, &read)
        })
        .await?;
        self.made.push(made);
        Ok(())
    }

    async fn topic_permission(
        &mut self,
        permission: TopicPermissionDefinition,
    ) -> Result<(), ApiError> {
        let TopicPermissionDefinition { user, vhost, exchange, patterns: [write, read] } =
            permission;
        let made = Made::TopicPermission(user.clone(), vhost.clone(), exchange.clone());
        self.change(move |broker, now| {
            broker.set_topic_permissions(now, &user, &vhost, &exchange, &write, &read)
        })
        .await?;
        self.made.push(made);
        Ok(())
    }

    async fn change<E: Into<ApiError> + Send + 'static>(
        &mut self,
        change: impl FnOnce(&mut Broker, quelea_model::Timestamp) -> Result<Ticket, E> + Send + 'static,
    ) -> Result<(), ApiError> {
        let changed = self.api.ask(move |core| {
            let now = core.now();
            change(&mut core.broker, now)
        });
        let ticket = changed.await?.map_err(Into::into)?;
        self.reached_later(ticket);
        Ok(())
    }

    fn reached_later(&mut self, ticket: Ticket) {
        self.ticket = self.ticket.join(ticket);
    }

    /// The last first, so that nothing is taken away under what still stands on it.
    async fn take_back(&mut self) {
        while let Some(made) = self.made.pop() {
            if let Err(error) = self.take_back_one(made).await {
                tracing::warn!(?error, "what a refused import had made is left");
            }
        }
    }

    async fn take_back_one(&mut self, made: Made) -> Result<(), ApiError> {
        match made {
            Made::Vhost(vhost) => self.change(move |b, now| b.delete_vhost(now, &vhost)).await,
            Made::Exchange(vhost, name) => {
                let undone = begun_as_administration(self.api, vhost, move |b, now, channel| {
                    b.delete_exchange(now, channel, &name, false)
                });
                undone.await.map(|_| ())
            }
            // A message that somebody has put into it meanwhile is not lost.
            Made::Queue(vhost, name) => {
                let undone = begun_as_administration(self.api, vhost, move |b, now, channel| {
                    b.delete_queue(now, channel, &name, true, true).map(|deleted| deleted.ticket)
                });
                undone.await.map(|_| ())
            }
            Made::Binding(binding) => bind(self.api, binding, false).await.map(|_| ()),
            Made::User(name) => match self.standing.users.get(&name).cloned() {
                Some(old) => {
                    let change = move |b: &mut Broker, now| {
                        b.put_user(now, &old.name, &old.password_hash, &old.tags)
                    };
                    self.change(change).await
                }
                None => self.change(move |b, now| b.delete_user(now, &name)).await,
            },
            Made::Permission(user, vhost) => {
                match self.standing.permissions.get(&(user.clone(), vhost.clone())).cloned() {
                    Some(old) => {
                        let change = move |b: &mut Broker, now| {
                            b.set_permissions(
                                now,
                                &user,
                                &vhost,
                                &old.configure,
                                &old.write,
                                &old.read,
                            )
                        };
                        self.change(change).await
                    }
                    None => {
                        self.change(move |b, now| b.clear_permissions(now, &user, &vhost)).await
                    }
                }
            }
            Made::TopicPermission(user, vhost, exchange) => {
                let old = self.standing.topic_permissions.iter().find(|p| {
                    *p.user == *user && p.vhost.as_str() == vhost && *p.exchange == *exchange
                });
                match old.cloned() {
                    Some(old) => {
                        let change = move |b: &mut Broker, now| {
                            b.set_topic_permissions(
                                now, &user, &vhost, &exchange, &old.write, &old.read,
                            )
                        };
                        self.change(change).await
                    }
                    None => {
                        let change = move |b: &mut Broker, now| {
                            b.clear_topic_permissions(now, &user, &vhost, Some(&exchange))
                        };
                        self.change(change).await
                    }
                }
            }
        }
    }
}

/// Makes a binding, or takes it away.
async fn bind(
    api: &ApiState,
    binding: BindingDefinition,
    wanted: bool,
) -> Result<Ticket, ApiError> {
    let BindingDefinition { vhost, source, destination, to_queue, routing_key, arguments } =
        binding;
    if to_queue {
        let request = QueueBinding { queue: destination, exchange: source, routing_key, arguments };
        let begun = begun_as_administration(api, vhost, move |b, now, channel| match wanted {
            true => b.bind_queue(now, channel, &request),
            false => b.unbind_queue(now, channel, &request),
        });
        return begun.await;
    }
    let request = ExchangeBinding { destination, source, routing_key, arguments };
    let begun = begun_as_administration(api, vhost, move |b, now, channel| match wanted {
        true => b.bind_exchange(now, channel, &request),
        false => b.unbind_exchange(now, channel, &request),
    });
    begun.await
}

/// Says where in the document a bad request comes from.
fn here(section: &'static str, at: usize) -> impl FnOnce(ApiError) -> ApiError {
    move |error| match error {
        ApiError::BadRequest(reason) => ApiError::BadRequest(format!("{section}[{at}]: {reason}")),
        other => other,
    }
}

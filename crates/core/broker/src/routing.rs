//! Where messages go: virtual hosts, each with its exchanges and bindings. Queues are known here by
//! their names and numbers alone. What changes is written to the log by the operation that changes
//! it.

pub mod binding;
pub mod exchange;
pub(crate) mod last_route;
pub(crate) mod route_cache;
pub(crate) mod router;
pub(crate) mod vhost;

use std::borrow::Cow;

use quelea_model::{ExchangeName, QueueId, Table, VhostName};
use rustc_hash::FxHashMap;
use slotmap::SlotMap;

use crate::error::{BindingError, ChannelGone, ExchangeError};
use crate::ids::VhostId;
use crate::log::Log;
use crate::topology::{Item, StoredBinding, StoredDestination, StoredVhost};
use binding::{Binding, Destination, Removed};
use exchange::ExchangeSpec;
use exchange::targets::Target;
use router::{LeavingExchange, Router};
use vhost::Vhost;

/// All virtual hosts, with their exchanges and bindings.
#[derive(Debug, Default)]
pub(crate) struct Routing {
    vhosts: SlotMap<VhostId, Vhost>,
    ids: FxHashMap<VhostName, VhostId>,
}

impl Routing {
    pub(crate) fn vhost_id(&self, name: &str) -> Option<VhostId> {
        self.ids.get(name).copied()
    }

    pub(crate) fn vhost(&self, id: VhostId) -> Option<&Vhost> {
        self.vhosts.get(id)
    }

    /// Returns the virtual hosts but those that are being removed.
    pub(crate) fn vhosts(&self) -> impl Iterator<Item = (VhostId, &Vhost)> {
        self.vhosts.iter().filter(|(_, vhost)| self.ids.contains_key(&vhost.name))
    }

    pub(crate) fn vhost_count(&self) -> usize {
        self.ids.len()
    }

    #[inline]
    pub(crate) fn router(&self, id: VhostId) -> Option<&Router> {
        self.vhosts.get(id).map(|vhost| &vhost.router)
    }

    #[inline]
    pub(crate) fn router_mut(&mut self, id: VhostId) -> Option<&mut Router> {
        self.vhosts.get_mut(id).map(|vhost| &mut vhost.router)
    }

    pub(crate) fn add_vhost(&mut self, stored: StoredVhost) -> VhostId {
        let name = stored.name.clone();
        let id = self.vhosts.insert(Vhost::new(stored));
        self.ids.insert(name, id);
        id
    }

    /// Takes a virtual host's name away: nobody finds it by that any more. What is in it is left to
    /// [`Routing::go_on_removing_vhost`]. Returns what the log has of the virtual host itself.
    pub(crate) fn begin_vhost_removal(&mut self, id: VhostId) -> Option<StoredVhost> {
        let vhost = self.vhosts.get(id)?;
        self.ids.remove(&vhost.name);
        Some(vhost.stored())
    }

    /// Takes away `max` bindings and exchanges at most of a virtual host that is being removed and has no
    /// queues. Returns how many, and whether it was all: then it is gone itself.
    pub(crate) fn go_on_removing_vhost(
        &mut self,
        log: &mut Log,
        id: VhostId,
        max: usize,
    ) -> (usize, bool) {
        let Some(vhost) = self.vhosts.get_mut(id) else { return (0, true) };
        let (removed, is_done) = vhost.router.go_on_removing_all(max);
        unpersist_removed(log, &vhost.name, &removed);
        if is_done {
            self.vhosts.remove(id);
        }
        (removed.bindings.len() + removed.exchanges.len(), is_done)
    }

    /// Declares an exchange. Returns whether anything was written to the log.
    ///
    /// # Errors
    /// [`ExchangeError`]; nothing has changed then.
    pub(crate) fn declare_exchange(
        &mut self,
        log: &mut Log,
        vhost: VhostId,
        spec: ExchangeSpec,
    ) -> Result<bool, ExchangeError> {
        let vhost = self.vhosts.get_mut(vhost).ok_or(ChannelGone)?;
        let is_new = vhost.router.declare(spec.clone())?;
        let is_persisted = is_new && spec.durable;
        if is_persisted {
            log.persist(&Item::Exchange(vhost.name.clone(), spec));
        }
        Ok(is_persisted)
    }

    /// Deletes an exchange; its bindings are left to [`Routing::go_on_removing`]. Returns whether anything was
    /// written to the log.
    ///
    /// # Errors
    /// [`ExchangeError`]; nothing has changed then.
    pub(crate) fn delete_exchange(
        &mut self,
        log: &mut Log,
        vhost: VhostId,
        name: &str,
        if_unused: bool,
    ) -> Result<bool, ExchangeError> {
        let vhost = self.vhosts.get_mut(vhost).ok_or(ChannelGone)?;
        let removed = vhost.router.delete(name, if_unused)?;
        Ok(unpersist_removed(log, &vhost.name, &removed))
    }

    /// Deletes an exchange that auto-deletes and has no bindings.
    pub(crate) fn remove_unused(&mut self, log: &mut Log, vhost: VhostId, name: &str) {
        if let Some(vhost) = self.vhosts.get_mut(vhost) {
            let removed = vhost.router.remove_unused(name);
            unpersist_removed(log, &vhost.name, &removed);
        }
    }

    /// Adds a binding. What is bound already stays as it is.
    ///
    /// # Errors
    /// [`BindingError`]; nothing has changed then.
    pub(crate) fn bind(
        &mut self,
        log: &mut Log,
        vhost: VhostId,
        request: &BindRequest<'_>,
    ) -> Result<Changed, BindingError> {
        let BindRequest { source, destination, key, arguments } = request;
        let vhost = self.vhosts.get_mut(vhost).ok_or(ChannelGone)?;
        let Some(binding) = vhost.router.bind(source, destination, key, arguments)? else {
            return Ok(Changed { is_any: false, is_written: false });
        };
        if binding.durable {
            log.persist(&Item::Binding(stored(&vhost.name, &binding)));
        }
        Ok(Changed { is_any: true, is_written: binding.durable })
    }

    /// Removes a binding.
    ///
    /// # Errors
    /// [`BindingError`]; nothing has changed then.
    pub(crate) fn unbind(
        &mut self,
        log: &mut Log,
        vhost: VhostId,
        request: &BindRequest<'_>,
    ) -> Result<Changed, BindingError> {
        let BindRequest { source, destination, key, arguments } = request;
        let vhost = self.vhosts.get_mut(vhost).ok_or(ChannelGone)?;
        let removed = vhost.router.unbind(source, destination, key, arguments)?;
        let is_written = unpersist_removed(log, &vhost.name, &removed);
        Ok(Changed { is_any: !removed.bindings.is_empty(), is_written })
    }

    /// Nothing is routed to the queue any more, and its name is free; its bindings are left to
    /// [`Routing::go_on_removing`].
    pub(crate) fn begin_queue_removal(&mut self, vhost: VhostId, queue: QueueId) {
        if let Some(vhost) = self.vhosts.get_mut(vhost) {
            vhost.router.begin_queue_removal(queue);
        }
    }

    /// Takes away `max` bindings at most of a queue or exchange that is being removed. Returns how many it looked
    /// at, and whether it was all.
    pub(crate) fn go_on_removing(
        &mut self,
        log: &mut Log,
        vhost: VhostId,
        target: Target,
        max: usize,
    ) -> (usize, bool) {
        let Some(vhost) = self.vhosts.get_mut(vhost) else { return (0, true) };
        let (removed, looked_at, is_done) = vhost.router.go_on_removing(target, max);
        unpersist_removed(log, &vhost.name, &removed);
        (looked_at, is_done)
    }

    /// Returns whether a virtual host has bindings of queues or exchanges that are being removed.
    pub(crate) fn is_removing(&self, vhost: VhostId) -> bool {
        self.router(vhost).is_some_and(Router::is_removing)
    }

    /// Takes the exchanges of a virtual host whose removal has begun since the last call, for those
    /// who go on with it.
    pub(crate) fn take_begun(&mut self, vhost: VhostId) -> Vec<LeavingExchange> {
        self.vhosts.get_mut(vhost).map_or_else(Vec::new, |vhost| vhost.router.take_begun())
    }

    /// Takes the exchanges of a virtual host, with its name, that went with their last bindings
    /// since the last call.
    pub(crate) fn take_auto_deleted(&mut self, vhost: VhostId) -> Vec<(VhostName, ExchangeName)> {
        let Some(vhost) = self.vhosts.get_mut(vhost) else { return Vec::new() };
        let names = vhost.router.take_auto_deleted().into_iter();
        names.map(|name| (vhost.name.clone(), name)).collect()
    }
}

/// What to bind or unbind.
pub(crate) struct BindRequest<'a> {
    pub(crate) source: &'a str,
    pub(crate) destination: Destination,
    pub(crate) key: Cow<'a, str>,
    pub(crate) arguments: &'a Table,
}

/// Deletes from the log what the router has removed. Returns whether any of it was there.
fn unpersist_removed(log: &mut Log, vhost: &VhostName, removed: &Removed) -> bool {
    let mut was_durable = false;
    for binding in removed.bindings.iter().filter(|binding| binding.durable) {
        was_durable = true;
        log.unpersist(&Item::Binding(stored(vhost, binding)));
    }
    for exchange in removed.exchanges.iter().filter(|exchange| exchange.durable) {
        was_durable = true;
        log.unpersist(&Item::Exchange(vhost.clone(), exchange.clone()));
    }
    was_durable
}

/// What came of binding or unbinding.
pub(crate) struct Changed {
    /// Whether a binding was made or removed.
    pub(crate) is_any: bool,
    /// Whether the log was written to.
    pub(crate) is_written: bool,
}

/// Returns a binding as the log keeps it.
fn stored(vhost: &VhostName, binding: &Binding) -> StoredBinding {
    StoredBinding {
        vhost: vhost.clone(),
        source: binding.source.clone(),
        destination: match &binding.destination {
            Destination::Queue(_, name) => StoredDestination::Queue(name.clone()),
            Destination::Exchange(name) => StoredDestination::Exchange(name.clone()),
        },
        key: binding.key.clone(),
        arguments: binding.arguments.clone(),
    }
}

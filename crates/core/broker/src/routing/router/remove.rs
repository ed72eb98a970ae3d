//! Taking bindings, queues and exchanges away, and with them the exchanges that auto-delete.

use quelea_model::{ExchangeName, QueueId, Table};
use rustc_hash::FxHashSet;

use super::edges::{self, Edge};
use super::{
    Binding, BindingKey, Destination, ExchangeKey, ExchangeSpec, LeavingExchange, Router, Target,
};
use crate::error::{DefaultExchange, ExchangeError};
use crate::routing::binding::Removed;
use crate::routing::exchange::RESERVED_PREFIX;

impl Router {
    /// Removes a binding. One that is not there, or whose ends are not, is no error.
    ///
    /// # Errors
    /// [`DefaultExchange`].
    pub(crate) fn unbind(
        &mut self,
        source: &str,
        destination: &Destination,
        key: &str,
        arguments: &Table,
    ) -> Result<Removed, DefaultExchange> {
        let target = match destination {
            Destination::Queue(id, _) => Some(Target::Queue(*id)),
            Destination::Exchange(name) if name.as_str().is_empty() => {
                return Err(DefaultExchange);
            }
            Destination::Exchange(name) => {
                self.exchange_names.get(name.as_str()).copied().map(Target::Exchange)
            }
        };
        if source.is_empty() {
            return Err(DefaultExchange);
        }
        let mut removed = Removed::default();
        if let Some(key) = target.and_then(|target| self.find_edge(source, target, key, arguments))
        {
            self.remove_edges(&[key], &mut removed);
        }
        Ok(removed)
    }

    /// Returns whether this binding of a queue is there.
    pub(crate) fn is_bound(
        &self,
        source: &str,
        queue: QueueId,
        key: &str,
        arguments: &Table,
    ) -> bool {
        self.find_edge(source, Target::Queue(queue), key, arguments).is_some()
    }

    fn find_edge(
        &self,
        source: &str,
        target: Target,
        key: &str,
        arguments: &Table,
    ) -> Option<BindingKey> {
        let source = self.exchange_names.get(source).copied()?;
        let arguments = edges::canonical(arguments);
        self.edges.find(&Edge { source, target, key: Box::from(key), arguments })
    }

    /// Deletes an exchange: nothing is routed through it any more, and its name is free. The bindings at its
    /// ends are left to [`Router::go_on_removing`].
    ///
    /// # Errors
    /// [`ExchangeError`].
    pub(crate) fn delete(&mut self, name: &str, if_unused: bool) -> Result<Removed, ExchangeError> {
        if name.is_empty() {
            return Err(DefaultExchange.into());
        }
        if name.starts_with(RESERVED_PREFIX) {
            let (exchange, vhost) = (name.to_owned(), self.vhost.clone());
            return Err(ExchangeError::System { exchange, vhost });
        }
        let Some(key) = self.exchange_names.get(name).copied() else {
            return Err(self.no_such_exchange(name).into());
        };
        if if_unused && self.is_source(key) {
            let (exchange, vhost) = (self.exchanges[key.0 as usize].spec.name.clone(), &self.vhost);
            return Err(ExchangeError::InUse { exchange, vhost: vhost.clone() });
        }
        let mut removed = Removed::default();
        self.begin_exchange_removal(key, &mut removed);
        Ok(removed)
    }

    /// Returns whether an exchange has bindings as a source, but those to what is being removed.
    fn is_source(&mut self, key: ExchangeKey) -> bool {
        let exchange = &self.exchanges[key.0 as usize];
        if self.leaving.is_empty() {
            return !exchange.outgoing.is_empty();
        }
        let stays = |edge: &BindingKey| !self.leaving.contains_key(&self.edges.get(*edge).target);
        let looked_at = exchange.outgoing.iter().take_while(|edge| !stays(edge)).count();
        self.steps += looked_at as u64;
        looked_at < exchange.outgoing.len()
    }

    /// Forgets a queue, but for its bindings: nothing is routed to it any more, and its name is free.
    pub(crate) fn begin_queue_removal(&mut self, id: QueueId) {
        if self.leaving.contains_key(&Target::Queue(id)) {
            return;
        }
        let Some(queue) = self.queues.get_mut(&id) else { return };
        let edges = std::mem::take(&mut queue.incoming);
        self.queue_names.remove(&queue.name);
        self.leaving.insert(Target::Queue(id), edges.into_iter().chain(FxHashSet::default()));
        self.epoch += 1;
    }

    /// The same of an exchange. One without bindings is gone.
    fn begin_exchange_removal(&mut self, key: ExchangeKey, removed: &mut Removed) {
        self.epoch += 1;
        let exchange = &mut self.exchanges[key.0 as usize];
        removed.exchanges.push(exchange.spec.clone());
        self.exchange_names.remove(&exchange.spec.name);
        let outgoing = std::mem::take(&mut exchange.outgoing);
        let incoming = std::mem::take(&mut exchange.incoming);
        if outgoing.is_empty() && incoming.is_empty() {
            self.exchanges.remove(key.0 as usize);
            return;
        }
        self.leaving.insert(Target::Exchange(key), outgoing.into_iter().chain(incoming));
        self.exchanges_leaving += 1;
        let ExchangeSpec { name, durable, .. } = &exchange.spec;
        self.begun.push(LeavingExchange { key, name: name.clone(), durable: *durable });
    }

    /// Returns whether bindings are left of something that is being removed.
    pub(crate) fn is_removing(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Takes the exchanges whose removal has begun since the last call.
    pub(crate) fn take_begun(&mut self) -> Vec<LeavingExchange> {
        std::mem::take(&mut self.begun)
    }

    /// Takes the exchanges that went with their last bindings since the last call.
    pub(crate) fn take_auto_deleted(&mut self) -> Vec<ExchangeName> {
        std::mem::take(&mut self.auto_deleted)
    }

    /// Takes away `max` bindings at most of what is being removed. Returns what went, how many bindings it
    /// looked at, and whether it was all.
    pub(crate) fn go_on_removing(&mut self, target: Target, max: usize) -> (Removed, usize, bool) {
        let mut removed = Removed::default();
        let Some(mut left) = self.leaving.remove(&target) else { return (removed, 0, true) };
        let next: Vec<BindingKey> = left.by_ref().take(max).collect();
        let is_done = left.size_hint().1 == Some(0);
        self.leaving.insert(target, left);
        for key in &next {
            // Some are gone with their other end, and their numbers may be others' by now.
            if self.edges.has_end(*key, target) {
                self.remove_edges(&[*key], &mut removed);
            }
        }
        if is_done {
            self.leaving.remove(&target);
            match target {
                Target::Queue(id) => drop(self.queues.remove(&id)),
                Target::Exchange(key) => {
                    self.exchanges_leaving -= 1;
                    self.exchanges.remove(key.0 as usize);
                }
            }
        }
        (removed, next.len(), is_done)
    }

    #[cfg(test)]
    pub(crate) fn remove_queue(&mut self, id: QueueId) -> Removed {
        self.begin_queue_removal(id);
        let removed = self.go_on_removing(Target::Queue(id), usize::MAX).0;
        self.finish_removing(removed)
    }

    /// Goes on until nothing is being removed.
    #[cfg(test)]
    pub(crate) fn finish_removing(&mut self, mut removed: Removed) -> Removed {
        while let Some(target) = self.leaving.keys().next().copied() {
            let (more, ..) = self.go_on_removing(target, usize::MAX);
            removed.bindings.extend(more.bindings);
            removed.exchanges.extend(more.exchanges);
        }
        removed
    }

    /// Removes an exchange that auto-deletes and has no bindings as a source.
    pub(crate) fn remove_unused(&mut self, name: &str) -> Removed {
        let mut removed = Removed::default();
        let key = self.exchange_names.get(name).copied();
        if let Some(key) = key.filter(|key| self.is_unused(*key)) {
            self.begin_exchange_removal(key, &mut removed);
        }
        removed
    }

    /// Takes away `max` bindings and exchanges at most, whatever they are. Returns what went, and whether it was
    /// all.
    pub(crate) fn go_on_removing_all(&mut self, max: usize) -> (Removed, bool) {
        let mut removed = Removed::default();
        self.epoch += 1;
        for _ in 0..max {
            if let Some(key) = self.edges.any() {
                removed.bindings.push(self.remove_edge(key));
            } else if let Some(spec) = self.pop_exchange() {
                removed.exchanges.push(spec);
            } else {
                return (removed, true);
            }
        }
        (removed, false)
    }

    /// Takes an exchange that has no bindings, the ones with the highest numbers first.
    fn pop_exchange(&mut self) -> Option<ExchangeSpec> {
        if self.exchanges.is_empty() {
            return None;
        }
        while !self.exchanges.contains(self.last_exchange) {
            let highest = self.exchanges.capacity();
            self.last_exchange = self.last_exchange.checked_sub(1).unwrap_or(highest);
        }
        let exchange = self.exchanges.remove(self.last_exchange);
        self.exchange_names.remove(&exchange.spec.name);
        Some(exchange.spec)
    }

    /// Removes bindings, and begins to remove the auto-delete exchanges whose last binding as a source went.
    fn remove_edges(&mut self, edges: &[BindingKey], removed: &mut Removed) {
        self.epoch += 1;
        for key in edges {
            let source = self.edges.get(*key).source;
            removed.bindings.push(self.remove_edge(*key));
            if self.is_unused(source) {
                self.auto_deleted.push(self.exchanges[source.0 as usize].spec.name.clone());
                self.begin_exchange_removal(source, removed);
            }
        }
    }

    fn is_unused(&self, key: ExchangeKey) -> bool {
        let exchange = &self.exchanges[key.0 as usize];
        exchange.spec.auto_delete
            && exchange.outgoing.is_empty()
            && !self.leaving.contains_key(&Target::Exchange(key))
    }

    /// Takes the binding out of both ends, and returns it.
    fn remove_edge(&mut self, key: BindingKey) -> Binding {
        let binding = self.binding(self.edges.get(key));
        let edge = self.edges.remove(key);
        let source = &mut self.exchanges[edge.source.0 as usize];
        source.matcher.remove(key, &edge.key, edge.target);
        source.outgoing.remove(&key);
        match edge.target {
            Target::Queue(id) => {
                if let Some(queue) = self.queues.get_mut(&id) {
                    queue.incoming.remove(&key);
                }
            }
            Target::Exchange(to) => {
                self.exchanges[to.0 as usize].incoming.remove(&key);
            }
        }
        binding
    }
}

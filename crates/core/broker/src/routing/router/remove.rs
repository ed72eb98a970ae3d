//! Taking bindings, queues and exchanges away, and with them the exchanges that auto-delete.

use quelea_model::{QueueId, Table};

use super::edges::{self, Edge};
use super::{Binding, BindingKey, Destination, ExchangeKey, ExchangeSpec, Router, Target};
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
        let source = self.exchange_names.get(source).copied();
        if let (Some(source), Some(target)) = (source, target) {
            let arguments = edges::canonical(arguments);
            let edge = Edge { source, target, key: Box::from(key), arguments };
            if let Some(key) = self.edges.find(&edge) {
                self.remove_edges(&[key], &mut removed);
            }
        }
        Ok(removed)
    }

    /// Deletes an exchange and the bindings at both of its ends.
    ///
    /// # Errors
    /// [`ExchangeError`].
    pub(crate) fn delete(&mut self, name: &str, if_unused: bool) -> Result<Removed, ExchangeError> {
        if name.is_empty() {
            return Err(DefaultExchange.into());
        }
        let vhost = || self.vhost.clone();
        if name.starts_with(RESERVED_PREFIX) {
            return Err(ExchangeError::System { exchange: name.to_owned(), vhost: vhost() });
        }
        let Some(key) = self.exchange_names.get(name).copied() else {
            return Err(self.no_such_exchange(name).into());
        };
        let exchange = &self.exchanges[key.0 as usize];
        if if_unused && !exchange.outgoing.is_empty() {
            let exchange = exchange.spec.name.clone();
            return Err(ExchangeError::InUse { exchange, vhost: vhost() });
        }
        let mut removed = Removed::default();
        self.remove_exchanges(vec![key], &mut removed);
        Ok(removed)
    }

    /// Forgets a queue, but for its bindings: nothing is routed to it any more, and its name is free.
    pub(crate) fn begin_queue_removal(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get_mut(&id) else { return };
        let edges = std::mem::take(&mut queue.incoming).into_iter();
        self.queue_names.remove(&queue.name);
        self.leaving.insert(id, edges);
        self.epoch += 1;
    }

    /// Takes away `max` bindings at most of a queue that is being removed. Returns what went, and whether it
    /// was all.
    pub(crate) fn go_on_removing_queue(&mut self, id: QueueId, max: usize) -> (Removed, bool) {
        let mut removed = Removed::default();
        let Some(mut left) = self.leaving.remove(&id) else { return (removed, true) };
        // Some may be gone with their exchange, and their numbers may be others' by now.
        let is_its = |key: &BindingKey| self.edges.leads_to(*key, Target::Queue(id));
        let edges: Vec<BindingKey> = left.by_ref().take(max).filter(is_its).collect();
        self.remove_edges(&edges, &mut removed);
        let is_done = left.len() == 0;
        if is_done {
            self.queues.remove(&id);
        } else {
            self.leaving.insert(id, left);
        }
        (removed, is_done)
    }

    #[cfg(test)]
    pub(crate) fn remove_queue(&mut self, id: QueueId) -> Removed {
        self.begin_queue_removal(id);
        self.go_on_removing_queue(id, usize::MAX).0
    }

    /// Removes an exchange that auto-deletes and has no bindings as a source.
    pub(crate) fn remove_unused(&mut self, name: &str) -> Removed {
        let mut removed = Removed::default();
        let key = self.exchange_names.get(name).copied();
        if let Some(key) = key.filter(|key| self.is_unused(*key)) {
            self.remove_exchanges(vec![key], &mut removed);
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

    /// Removes bindings, and the auto-delete exchanges whose last binding as a source went.
    fn remove_edges(&mut self, edges: &[BindingKey], removed: &mut Removed) {
        let mut doomed = Vec::new();
        for key in edges {
            let source = self.edges.get(*key).source;
            removed.bindings.push(self.remove_edge(*key));
            if self.is_unused(source) {
                doomed.push(source);
            }
        }
        self.remove_exchanges(doomed, removed);
    }

    /// Removes exchanges with the bindings at both of their ends, then those that auto-delete for
    /// it, and so on. None is doomed twice: only one that still had a binding can become unused.
    fn remove_exchanges(&mut self, mut doomed: Vec<ExchangeKey>, removed: &mut Removed) {
        self.epoch += 1;
        while let Some(key) = doomed.pop() {
            let exchange = &self.exchanges[key.0 as usize];
            let mut edges: Vec<BindingKey> =
                exchange.outgoing.union(&exchange.incoming).copied().collect();
            edges.sort_unstable();
            for edge in edges {
                let source = self.edges.get(edge).source;
                removed.bindings.push(self.remove_edge(edge));
                if source != key && self.is_unused(source) {
                    doomed.push(source);
                }
            }
            let exchange = self.exchanges.remove(key.0 as usize);
            self.exchange_names.remove(&exchange.spec.name);
            removed.exchanges.push(exchange.spec);
        }
    }

    fn is_unused(&self, exchange: ExchangeKey) -> bool {
        let exchange = &self.exchanges[exchange.0 as usize];
        exchange.spec.auto_delete && exchange.outgoing.is_empty()
    }

    /// The binding is taken out of both ends.
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

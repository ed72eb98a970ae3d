//! The router of one vhost: its exchanges and bindings, and the queues that a message goes to.
//!
//! Every change moves the router's epoch, and with it all cached routes are void. A route that
//! depends on more than exchange and routing key (headers, `CC`, `BCC`) is never cached.

mod carbon_copy;
mod edges;
mod matcher;
mod remove;
mod routing;
#[cfg(test)]
mod tests;

use std::collections::hash_set::IntoIter;
use std::ops::Range;
use std::sync::Arc;

use quelea_model::limits::{BINDINGS_PER_VHOST_MAX, EXCHANGES_PER_VHOST_MAX};
use quelea_model::{ExchangeName, QueueId, QueueName, Table, Value, VhostName};
use rustc_hash::{FxHashMap, FxHashSet};
use slab::Slab;

use super::binding::{Binding, Destination};
use super::exchange::headers::{BindingKey, HeadersPattern};
use super::exchange::targets::{ExchangeKey, RouteMatches, Target};
use super::exchange::{ALTERNATE_EXCHANGE, ByText, ExchangeKind, ExchangeSpec, RESERVED_PREFIX};
use super::route_cache::RouteCache;
use crate::error::{
    BindingError, DefaultExchange, ExchangeError, Inequivalent, NoSuchExchange, NoSuchQueue,
    ReservedName, ResourceError, ResourceKind,
};
use crate::report::ExchangeCounters;
use edges::{Edge, Edges};
use matcher::{Matcher, MatcherLimit, Origin};

/// The exchanges that every vhost has (AMQP 0-9-1 §3.1.3, and RabbitMQ's): name, type, internal.
const PREDECLARED: [(&str, ExchangeKind, bool); 7] = [
    ("", ExchangeKind::Direct, false),
    ("amq.direct", ExchangeKind::Direct, false),
    ("amq.fanout", ExchangeKind::Fanout, false),
    ("amq.topic", ExchangeKind::Topic, false),
    ("amq.headers", ExchangeKind::Headers, false),
    ("amq.match", ExchangeKind::Headers, false),
    ("amq.rabbitmq.trace", ExchangeKind::Topic, true),
];

/// Exchanges, bindings and routes of one vhost.
#[derive(Debug)]
pub(crate) struct Router {
    vhost: VhostName,
    exchanges: Slab<Exchange>,
    exchange_names: ByText<ExchangeName, ExchangeKey>,
    /// How many exchanges there have been.
    exchanges_made: u64,
    queues: FxHashMap<QueueId, RoutedQueue>,
    /// A queue's number as the route to it alone, which the default exchange hands out.
    queue_names: ByText<QueueName, Arc<[QueueId]>>,
    /// Queues and exchanges that are gone, with the bindings that are left of them.
    leaving: FxHashMap<Target, LeavingBindings>,
    /// How many of them are exchanges.
    exchanges_leaving: usize,
    /// Exchanges whose removal has begun; see [`Router::take_begun`].
    begun: Vec<LeavingExchange>,
    /// Those of them that nobody deleted; see [`Router::take_auto_deleted`].
    auto_deleted: Vec<ExchangeName>,
    edges: Edges,
    epoch: u64,
    cache: RouteCache,
    /// Number of the last search; see [`Exchange::visited`].
    search: u64,
    /// Steps of searches; see [`Router::take_steps`].
    steps: u64,
    found: RouteMatches,
    nowhere: Arc<[QueueId]>,
    /// Where the next exchange to take is looked for, once all are.
    last_exchange: usize,
}

/// The bindings that lead from something, and those that lead to it. Some may be gone.
type LeavingBindings = std::iter::Chain<IntoIter<BindingKey>, IntoIter<BindingKey>>;

/// An exchange that is gone, but for its bindings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeavingExchange {
    pub(crate) key: ExchangeKey,
    pub(crate) name: ExchangeName,
    pub(crate) durable: bool,
}

#[derive(Debug)]
struct Exchange {
    spec: ExchangeSpec,
    /// Tells it from earlier ones of its name.
    number: u64,
    matcher: Matcher,
    /// Bindings that lead from here.
    outgoing: FxHashSet<BindingKey>,
    /// Bindings that lead here.
    incoming: FxHashSet<BindingKey>,
    /// The last search that came here: cuts cycles.
    visited: u64,
    counters: ExchangeCounters,
}

#[derive(Debug)]
struct RoutedQueue {
    name: QueueName,
    durable: bool,
    incoming: FxHashSet<BindingKey>,
}

impl Router {
    /// Creates a router with the default exchange and the predeclared `amq.*` ones.
    pub(crate) fn new(vhost: VhostName) -> Self {
        let mut router = Self {
            vhost,
            exchanges: Slab::new(),
            exchange_names: ByText::default(),
            exchanges_made: 0,
            queues: FxHashMap::default(),
            queue_names: ByText::default(),
            leaving: FxHashMap::default(),
            exchanges_leaving: 0,
            begun: Vec::new(),
            auto_deleted: Vec::new(),
            edges: Edges::default(),
            epoch: 0,
            cache: RouteCache::default(),
            search: 0,
            steps: 0,
            found: RouteMatches::default(),
            nowhere: Arc::from([]),
            last_exchange: 0,
        };
        for (name, kind, internal) in PREDECLARED {
            router.insert_exchange(ExchangeSpec {
                name: ExchangeName::parse(name).expect("a predeclared name is a name"),
                kind,
                durable: true,
                auto_delete: false,
                internal,
                arguments: Table::new(),
            });
        }
        router
    }

    /// Declares an exchange; `true` if it is new, `false` if an equivalent one existed.
    ///
    /// # Errors
    /// [`ExchangeError`].
    pub(crate) fn declare(&mut self, spec: ExchangeSpec) -> Result<bool, ExchangeError> {
        if spec.name.as_str().is_empty() {
            return Err(DefaultExchange.into());
        }
        spec.check_arguments(&self.vhost)?;
        if let Some(existing) = self.exchange(spec.name.as_str()) {
            self.check_equivalent(existing, &spec)?;
            return Ok(false);
        }
        if spec.name.as_str().starts_with(RESERVED_PREFIX) {
            let (kind, name) = (ResourceKind::Exchange, spec.name.to_string());
            return Err(ReservedName { kind, name }.into());
        }
        if self.exchanges.len() >= EXCHANGES_PER_VHOST_MAX {
            let vhost = self.vhost.clone();
            return Err(ExchangeError::TooMany { exchange: spec.name, vhost });
        }
        self.insert_exchange(spec);
        self.epoch += 1;
        Ok(true)
    }

    /// Returns the exchange of that name.
    pub(crate) fn exchange(&self, name: &str) -> Option<&ExchangeSpec> {
        let key = self.exchange_names.get(name)?;
        Some(&self.exchanges[key.0 as usize].spec)
    }

    /// Returns the exchange of that name, for [`Router::count_publish`] in this epoch.
    pub(crate) fn exchange_key(&self, name: &str) -> Option<ExchangeKey> {
        self.exchange_names.get(name).copied()
    }

    /// Counts a publish to an exchange of this epoch, and the queues that it was routed to.
    #[inline]
    pub(crate) fn count_publish(&mut self, exchange: ExchangeKey, queues: usize) {
        if let Some(exchange) = self.exchanges.get_mut(exchange.0 as usize) {
            exchange.counters.publish_in += 1;
            exchange.counters.publish_out += queues as u64;
        }
    }

    /// Adds a queue, which the default exchange reaches from now on.
    /// `durable`: whether bindings to it can be.
    pub(crate) fn add_queue(&mut self, name: &QueueName, id: QueueId, durable: bool) {
        let queue = RoutedQueue { name: name.clone(), durable, incoming: FxHashSet::default() };
        self.queues.insert(id, queue);
        self.queue_names.insert(name.clone(), Arc::from([id]));
        self.epoch += 1;
    }

    /// Adds a binding. Returns the new binding, for the log and the reports; `None` if it existed.
    ///
    /// # Errors
    /// [`BindingError`].
    pub(crate) fn bind(
        &mut self,
        source: &str,
        destination: &Destination,
        key: &str,
        arguments: &Table,
    ) -> Result<Option<Binding>, BindingError> {
        self.bind_from(Origin::New, source, destination, key, arguments)
    }

    /// Binds what was bound before, whatever a topic exchange takes today.
    ///
    /// # Errors
    /// [`BindingError`].
    pub(crate) fn restore_binding(
        &mut self,
        source: &str,
        destination: &Destination,
        key: &str,
        arguments: &Table,
    ) -> Result<(), BindingError> {
        self.bind_from(Origin::Stored, source, destination, key, arguments).map(|_| ())
    }

    fn bind_from(
        &mut self,
        origin: Origin,
        source: &str,
        destination: &Destination,
        key: &str,
        arguments: &Table,
    ) -> Result<Option<Binding>, BindingError> {
        let source = self.exchange_to_bind(source)?;
        let (target, durable) = match destination {
            Destination::Queue(id, name) => match self.queues.get(id) {
                Some(queue) => (Target::Queue(*id), queue.durable),
                None => {
                    let (queue, vhost) = (name.to_string(), self.vhost.clone());
                    return Err(ResourceError::from(NoSuchQueue { vhost, queue }).into());
                }
            },
            Destination::Exchange(name) => {
                let key = self.exchange_to_bind(name.as_str())?;
                (Target::Exchange(key), self.exchanges[key.0 as usize].spec.durable)
            }
        };
        let is_headers = self.exchanges[source.0 as usize].spec.kind == ExchangeKind::Headers;
        let pattern = if is_headers { Some(HeadersPattern::parse(arguments)?) } else { None };
        let arguments = edges::canonical(arguments);
        let edge = Edge { source, target, key: Box::from(key), arguments };
        if self.edges.find(&edge).is_some() {
            return Ok(None);
        }
        if self.edges.len() >= BINDINGS_PER_VHOST_MAX {
            return Err(BindingError::TooMany { vhost: self.vhost.clone() });
        }
        let binding = self.insert_edge(edge, pattern, origin)?;
        self.epoch += 1;
        debug_assert_eq!(
            binding.durable,
            durable && self.exchanges[source.0 as usize].spec.durable
        );
        Ok(Some(binding))
    }

    /// Returns a number that moves with every change of exchanges, bindings or queues.
    pub(crate) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the exchanges at these places, the predeclared ones included, with a number that
    /// tells each from earlier ones of its name, and what passed through it.
    pub(crate) fn exchanges_at(
        &self,
        places: Range<u32>,
    ) -> impl Iterator<Item = (&ExchangeSpec, u64, ExchangeCounters)> {
        let stays = |key: &u32| !self.leaving.contains_key(&Target::Exchange(ExchangeKey(*key)));
        let exchanges = places.filter(stays).filter_map(|key| self.exchanges.get(key as usize));
        exchanges.map(|exchange| (&exchange.spec, exchange.number, exchange.counters))
    }

    /// Returns the number that the places of all exchanges are below.
    pub(crate) fn exchange_places(&self) -> usize {
        self.exchanges.capacity()
    }

    /// Returns the bindings at these places, but those by which the default exchange reaches each
    /// queue.
    pub(crate) fn bindings_at(&self, places: Range<u32>) -> impl Iterator<Item = Binding> {
        let stays = |edge: &&Edge| {
            !self.leaving.contains_key(&edge.target)
                && !self.leaving.contains_key(&Target::Exchange(edge.source))
        };
        let edges = places.filter_map(|key| self.edges.find_at(key)).filter(stays);
        edges.map(|edge| self.binding(edge))
    }

    /// Returns the number that the places of all bindings are below.
    pub(crate) fn binding_places(&self) -> usize {
        self.edges.places()
    }

    /// Returns how many exchanges there are, the predeclared ones included.
    pub(crate) fn exchange_count(&self) -> usize {
        self.exchanges.len() - self.exchanges_leaving
    }

    /// Returns how many bindings there are, what is left of queues and exchanges that are gone
    /// included.
    pub(crate) fn binding_count(&self) -> usize {
        self.edges.len()
    }

    /// Returns and resets the count of the steps that searches took since the last call, for what
    /// was not found in the cache.
    #[inline]
    pub(crate) const fn take_steps(&mut self) -> u64 {
        std::mem::replace(&mut self.steps, 0)
    }

    fn insert_exchange(&mut self, spec: ExchangeSpec) {
        let name = spec.name.clone();
        let matcher = Matcher::new(&spec);
        self.exchanges_made += 1;
        let key = self.exchanges.insert(Exchange {
            spec,
            number: self.exchanges_made,
            matcher,
            outgoing: FxHashSet::default(),
            incoming: FxHashSet::default(),
            visited: 0,
            counters: ExchangeCounters::default(),
        });
        self.exchange_names.insert(name, ExchangeKey(key as u32));
    }

    /// Compares in RabbitMQ's order; of the arguments only the alternate exchange counts.
    fn check_equivalent(
        &self,
        have: &ExchangeSpec,
        want: &ExchangeSpec,
    ) -> Result<(), Inequivalent> {
        let unequal = |field: &str, received: String, current: String| {
            Err(Inequivalent {
                kind: ResourceKind::Exchange,
                vhost: self.vhost.clone(),
                name: have.name.to_string(),
                field: String::from(field),
                received,
                current,
            })
        };
        if have.kind != want.kind {
            return unequal("type", quoted(want.kind), quoted(have.kind));
        }
        for (field, have, want) in [
            ("durable", have.durable, want.durable),
            ("auto_delete", have.auto_delete, want.auto_delete),
            ("internal", have.internal, want.internal),
        ] {
            if have != want {
                return unequal(field, quoted(want), quoted(have));
            }
        }
        match (have.alternate(), want.alternate()) {
            (have, want) if have == want => Ok(()),
            (Some(have), Some(want)) => unequal(ALTERNATE_EXCHANGE, quoted(want), quoted(have)),
            (have, want) => unequal(ALTERNATE_EXCHANGE, value_or_none(want), value_or_none(have)),
        }
    }

    fn exchange_to_bind(&self, name: &str) -> Result<ExchangeKey, BindingError> {
        if name.is_empty() {
            return Err(DefaultExchange.into());
        }
        let key = self.exchange_names.get(name).copied();
        Ok(key.ok_or_else(|| ResourceError::from(self.no_such_exchange(name)))?)
    }

    fn no_such_exchange(&self, name: &str) -> NoSuchExchange {
        NoSuchExchange { vhost: self.vhost.clone(), exchange: name.to_owned() }
    }

    fn insert_edge(
        &mut self,
        edge: Edge,
        pattern: Option<HeadersPattern>,
        origin: Origin,
    ) -> Result<Binding, BindingError> {
        let binding = self.binding(&edge);
        let (source, target) = (edge.source, edge.target);
        let key = self.edges.insert(edge);
        let exchange = &mut self.exchanges[source.0 as usize];
        if let Err(limit) = exchange.matcher.add(key, &binding.key, target, pattern, origin) {
            self.edges.remove(key);
            let (exchange, vhost) = (binding.source, self.vhost.clone());
            return Err(match limit {
                MatcherLimit::Topic(limit) => {
                    BindingError::Topic { limit, exchange, vhost, pattern: binding.key }
                }
                MatcherLimit::HeadersSteps { needed } => {
                    BindingError::HeadersSteps { needed, exchange, vhost }
                }
            });
        }
        exchange.outgoing.insert(key);
        match target {
            Target::Queue(id) => {
                if let Some(queue) = self.queues.get_mut(&id) {
                    queue.incoming.insert(key);
                }
            }
            Target::Exchange(to) => {
                self.exchanges[to.0 as usize].incoming.insert(key);
            }
        }
        Ok(binding)
    }

    /// Returns a binding as the world outside knows it.
    fn binding(&self, edge: &Edge) -> Binding {
        let source = &self.exchanges[edge.source.0 as usize].spec;
        let (destination, durable) = match edge.target {
            Target::Queue(id) => {
                let queue = &self.queues[&id];
                (Destination::Queue(id, queue.name.clone()), queue.durable)
            }
            Target::Exchange(key) => {
                let exchange = &self.exchanges[key.0 as usize].spec;
                (Destination::Exchange(exchange.name.clone()), exchange.durable)
            }
        };
        Binding {
            source: source.name.clone(),
            destination,
            key: edge.key.clone(),
            arguments: edges::table(&edge.arguments),
            durable: durable && source.durable,
        }
    }
}

fn quoted(value: impl std::fmt::Display) -> String {
    format!("'{value}'")
}

fn value_or_none(text: Option<&str>) -> String {
    let type_name = Value::text("").type_name();
    text.map_or_else(|| "none".to_owned(), |v| format!("the value '{v}' of type '{type_name}'"))
}

//! The router of one vhost: its exchanges and bindings, and the queues that a message goes to.

use std::sync::Arc;

use quelea_model::{PropertyView, QueueId, QueueName, Table, VhostName};

use crate::binding::{BindError, Binding, Destination, Removed, UnbindError};
use crate::exchange::{DeclareExchangeError, DeleteExchangeError, ExchangeSpec, RouteError};

/// Where a message goes.
#[derive(Clone, Debug)]
pub struct Route {
    /// The queues, each once, in ascending order. Shared with the route cache.
    pub queues: Arc<[QueueId]>,
    /// Whether the exchange is internal: a client may not publish to it (403 ACCESS_REFUSED), the
    /// broker itself (dead-lettering) may.
    pub internal: bool,
}

/// Exchanges, bindings and routes of one vhost.
#[derive(Debug)]
pub struct Router {
    vhost: VhostName,
}

#[expect(unused_variables, clippy::needless_pass_by_value, clippy::unused_self, missing_docs, clippy::missing_errors_doc, clippy::unimplemented, reason = "signatures first")]
impl Router {
    /// A router with the default exchange and the predeclared `amq.*` ones.
    #[must_use]
    pub fn new(vhost: VhostName) -> Self {
        Self { vhost }
    }
    /// Declares; `true` if it is new, `false` if an equivalent one existed.
    pub fn declare(&mut self, spec: ExchangeSpec) -> Result<bool, DeclareExchangeError> { unimplemented!() }
    pub fn exchange(&self, name: &str) -> Option<&ExchangeSpec> { unimplemented!() }
    pub fn delete(&mut self, name: &str, if_unused: bool) -> Result<Removed, DeleteExchangeError> { unimplemented!() }
    /// Binds; `Some` with the new binding (for the log), `None` if it existed.
    pub fn bind(&mut self, source: &str, destination: Destination, key: &str, arguments: &Table) -> Result<Option<Binding>, BindError> { unimplemented!() }
    pub fn unbind(&mut self, source: &str, destination: &Destination, key: &str, arguments: &Table) -> Result<Removed, UnbindError> { unimplemented!() }
    pub fn add_queue(&mut self, name: &QueueName, id: QueueId, durable: bool) { unimplemented!() }
    pub fn remove_queue(&mut self, id: QueueId) -> Removed { unimplemented!() }
    pub fn route(&mut self, exchange: &str, routing_key: &str, properties: PropertyView<'_>) -> Result<Route, RouteError> { unimplemented!() }
    pub fn epoch(&self) -> u64 { unimplemented!() }
    pub fn exchanges(&self) -> impl Iterator<Item = &ExchangeSpec> { std::iter::empty() }
    pub fn bindings(&self) -> impl Iterator<Item = Binding> { std::iter::empty() }
    pub fn bindings_of_queue(&self, queue: QueueId) -> impl Iterator<Item = Binding> { std::iter::empty() }
    pub fn bindings_from(&self, exchange: &str) -> impl Iterator<Item = Binding> { std::iter::empty() }
    pub fn bindings_to(&self, exchange: &str) -> impl Iterator<Item = Binding> { std::iter::empty() }
    pub fn binding_count(&self) -> usize { 0 }
    pub fn exchange_count(&self) -> usize { 0 }
    pub fn vhost(&self) -> &VhostName { &self.vhost }
}

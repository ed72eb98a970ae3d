//! What can be listed.

use axum::Json;
use quelea_broker::{Broker, ListKey, Listable};
use quelea_node::Core;
use serde_json::Value;

use crate::state::ApiState;

/// What a list is made of: `S` is what has to be known to show it.
pub(crate) trait Row<S> {
    /// Returns the name, by which lists are searched.
    fn name(&self) -> &str;

    /// Returns a field of [`Row::to_json`], or one in it, that lists are often sorted by, without
    /// all others.
    fn column(&self, state: &S, column: &[String]) -> Option<Value> {
        let _ = (state, column);
        None
    }

    /// Returns the row as RabbitMQ shows it.
    fn to_json(&self, state: &S) -> Value;
}

impl<T: Listed> Row<ApiState> for T {
    fn name(&self) -> &str {
        Listed::name(self)
    }

    fn column(&self, api: &ApiState, column: &[String]) -> Option<Value> {
        Listed::column(self, api, column)
    }

    fn to_json(&self, api: &ApiState) -> Value {
        Listed::to_json(self, api)
    }
}

/// What the broker gives a list of a page at a time.
pub(crate) trait InPages: Sized + Send + 'static {
    /// Returns the keys of what there is of one virtual host, or of all: what [`InPages::page`] has
    /// to look at. What does not belong to virtual hosts is there in any case.
    fn keys(broker: &mut Broker, vhost: Option<&str>) -> Vec<ListKey>;

    /// Returns one turn's share of the objects, and how many of the keys that took.
    fn page(core: &mut Core, keys: &[ListKey]) -> (Vec<Self>, usize);

    /// Brings all pages into their order, and parts of one object together.
    fn sort(all: &mut Vec<Self>) {
        let _ = all;
    }
}

impl<R: Listable + Send + 'static> InPages for R {
    fn keys(broker: &mut Broker, vhost: Option<&str>) -> Vec<ListKey> {
        broker.list_keys::<R>(vhost)
    }

    fn page(core: &mut Core, keys: &[ListKey]) -> (Vec<R>, usize) {
        core.broker.list_page(keys)
    }

    fn sort(all: &mut Vec<R>) {
        Listable::sort(all);
    }
}

/// A kind of object that belongs to a virtual host.
pub(crate) trait Listed {
    /// Whether pages of lists in the order of names are found by the names of queues alone.
    const HAS_NAMES: bool = false;

    /// Returns the virtual host's name.
    fn vhost(&self) -> &str;

    /// Returns the object's own name, by which lists are searched.
    fn name(&self) -> &str;

    /// Returns a field of [`Listed::to_json`], or one in it, that lists are often sorted by,
    /// without all others.
    fn column(&self, api: &ApiState, column: &[String]) -> Option<Value> {
        let _ = (api, column);
        None
    }

    /// Returns the object as RabbitMQ shows it.
    fn to_json(&self, api: &ApiState) -> Value;
}

/// Returns a list as JSON.
pub(crate) fn array(objects: impl Iterator<Item = Value>) -> Json<Value> {
    Json(Value::Array(objects.collect()))
}

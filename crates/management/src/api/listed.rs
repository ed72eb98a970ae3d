//! What can be listed.

use axum::Json;
use quelea_broker::{Broker, ListKey, ListedName};
use quelea_node::Core;
use serde_json::Value;

use crate::state::ApiState;

/// What a list is made of: `S` is what has to be known to show it.
pub(crate) trait Row<S> {
    /// By which lists are searched.
    fn name(&self) -> &str;

    /// A field of [`Row::to_json`], or one in it, that lists are often sorted by, without all others.
    fn column(&self, state: &S, column: &[String]) -> Option<Value> {
        let _ = (state, column);
        None
    }

    /// As RabbitMQ shows it.
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

/// A kind of object that belongs to a virtual host, as a report of the broker.
pub(crate) trait Listed: Sized + Send + 'static {
    /// Those of one virtual host, or all, where they are few. What asks the broker for all of them either way may
    /// return those of others too.
    fn fetch(broker: &Broker, vhost: Option<&str>) -> Vec<Self> {
        let _ = (broker, vhost);
        Vec::new()
    }

    /// The same where they may be many: what [`Listed::page`] has to look at.
    fn keys(broker: &mut Broker, vhost: Option<&str>) -> Vec<ListKey> {
        let _ = (broker, vhost);
        Vec::new()
    }

    /// One turn's share of them, and how many of the keys that took.
    fn page(core: &mut Core, keys: &[ListKey]) -> (Vec<Self>, usize) {
        let _ = core;
        (Vec::new(), keys.len())
    }

    /// Whether pages of lists in the order of names are found by [`Listed::names`] alone.
    const HAS_NAMES: bool = false;

    /// What those are called that some of the keys stand for, in the keys' order, which is that of the names; and how many of
    /// the keys that took.
    fn names(broker: &mut Broker, keys: &[ListKey]) -> (Vec<ListedName>, usize) {
        let _ = broker;
        (Vec::new(), keys.len())
    }

    /// Brings all pages into their order, and parts of one object together.
    fn sort(all: &mut Vec<Self>) {
        let _ = all;
    }

    /// The virtual host's name.
    fn vhost(&self) -> &str;

    /// Its own, by which lists are searched.
    fn name(&self) -> &str;

    /// A field of [`Listed::to_json`], or one in it, that lists are often sorted by, without all others.
    fn column(&self, api: &ApiState, column: &[String]) -> Option<Value> {
        let _ = (api, column);
        None
    }

    /// As RabbitMQ shows it.
    fn to_json(&self, api: &ApiState) -> Value;
}

/// A list as JSON.
pub(crate) fn array(objects: impl Iterator<Item = Value>) -> Json<Value> {
    Json(Value::Array(objects.collect()))
}

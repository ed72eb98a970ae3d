//! The direct exchange: a message goes where the binding's key equals its routing key
//! (AMQP 0-9-1 §3.1.3.1).

use super::ByText;
use super::targets::{RouteMatches, Target, Targets};

/// The bindings of a direct exchange, by key.
#[derive(Debug, Default)]
pub(crate) struct Direct {
    keys: ByText<Box<str>, Targets>,
}

impl Direct {
    pub(crate) fn add(&mut self, key: &str, target: Target) {
        match self.keys.get_mut(key) {
            Some(targets) => targets.add(target),
            None => self.keys.entry(Box::from(key)).or_default().add(target),
        }
    }

    pub(crate) fn remove(&mut self, key: &str, target: Target) {
        let Some(targets) = self.keys.get_mut(key) else { return };
        targets.remove(target);
        if targets.is_empty() {
            self.keys.remove(key);
        }
    }

    pub(crate) fn matches(&self, key: &str, found: &mut RouteMatches) {
        if let Some(targets) = self.keys.get(key) {
            found.add_all(targets);
        }
    }
}

//! The fanout exchange: every message goes to every binding (AMQP 0-9-1 §3.1.3.2).

use super::targets::{RouteMatches, Target, Targets};

/// The bindings of a fanout exchange; their keys mean nothing.
#[derive(Debug, Default)]
pub(crate) struct Fanout {
    targets: Targets,
}

impl Fanout {
    pub(crate) fn add(&mut self, target: Target) {
        self.targets.add(target);
    }

    pub(crate) fn remove(&mut self, target: Target) {
        self.targets.remove(target);
    }

    pub(crate) fn matches(&self, found: &mut RouteMatches) {
        found.add_all(&self.targets);
    }
}

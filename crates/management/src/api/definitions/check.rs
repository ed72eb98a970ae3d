//! Whether a document contradicts itself or what stands, before anything is changed. What only the broker knows, such as
//! whether an argument has a sense, shows when it is applied.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use quelea_broker::{DeclareExchange, DeclareQueue};
use quelea_model::Table;
use serde_json::Value;

use super::document::Document;
use super::existing::{ExistingTopology, Place};
use crate::error::ApiError;
use crate::json::from_table;

/// # Errors
/// [`ApiError::BadRequest`] with the place in the document and what contradicts it.
pub(super) fn check(document: &Document, existing: &ExistingTopology) -> Result<(), ApiError> {
    let vhosts = document.vhosts.iter().map(String::as_str).collect();
    let users = document.users.iter().map(|user| user.name.as_str()).collect();
    let check = Check { document, existing, vhosts, users };
    check.queues()?;
    check.exchanges()?;
    check.bindings()?;
    check.users()?;
    check.permissions()?;
    check.topic_permissions()
}

struct Check<'a> {
    document: &'a Document,
    existing: &'a ExistingTopology,
    /// What the document makes.
    vhosts: HashSet<&'a str>,
    users: HashSet<&'a str>,
}

impl Check<'_> {
    fn queues(&self) -> Result<(), ApiError> {
        let mut seen = HashMap::new();
        for (at, definition) in self.document.queues.iter().enumerate() {
            let (vhost, queue) = (&definition.vhost, &definition.declared);
            let here = Position("queues", at);
            self.vhost(here, vhost)?;
            let place: Place = (vhost.clone(), queue.name.clone());
            let facts = queue_facts(queue);
            if let Some(existing) = self.existing.queues.get(&place) {
                if existing.exclusive {
                    return here
                        .refuse(&queue.name, "a queue of that name belongs to a connection");
                }
                let (durable, auto_delete) = (existing.durable, existing.auto_delete);
                let stands = (durable, auto_delete, comparable(&existing.arguments));
                if stands != facts {
                    return here.refuse(&queue.name, "a queue of that name stands and differs");
                }
                let stands = self.existing.sqs.get(&place).cloned().unwrap_or_default();
                if definition.sqs.as_ref().is_some_and(|sqs| *sqs != stands) {
                    let reason = "what SQS has set of the queue that stands differs";
                    return here.refuse(&queue.name, reason);
                }
            }
            here.alike(&queue.name, &mut seen, place, (facts, &definition.sqs))?;
        }
        Ok(())
    }

    fn exchanges(&self) -> Result<(), ApiError> {
        let mut seen = HashMap::new();
        for (at, (vhost, exchange)) in self.document.exchanges.iter().enumerate() {
            let here = Position("exchanges", at);
            self.vhost(here, vhost)?;
            let place: Place = (vhost.clone(), exchange.name.clone());
            let facts = exchange_facts(exchange);
            if let Some(existing) = self.existing.exchanges.get(&place) {
                let stands = (
                    existing.kind.to_owned(),
                    existing.durable,
                    existing.auto_delete,
                    existing.internal,
                    comparable(&existing.arguments),
                );
                if stands != facts {
                    return here
                        .refuse(&exchange.name, "an exchange of that name stands and differs");
                }
            }
            here.alike(&exchange.name, &mut seen, place, facts)?;
        }
        Ok(())
    }

    fn bindings(&self) -> Result<(), ApiError> {
        let defined = |all: &mut dyn Iterator<Item = (&String, &String)>| {
            all.map(|(vhost, name)| (vhost.clone(), name.clone())).collect::<HashSet<Place>>()
        };
        let queues =
            defined(&mut self.document.queues.iter().map(|q| (&q.vhost, &q.declared.name)));
        let exchanges = defined(&mut self.document.exchanges.iter().map(|(v, e)| (v, &e.name)));
        for (at, binding) in self.document.bindings.iter().enumerate() {
            let here = Position("bindings", at);
            self.vhost(here, &binding.vhost)?;
            let place = |name: &str| (binding.vhost.clone(), name.to_owned());
            let is_exchange = |name: &str| {
                let place = place(name);
                exchanges.contains(&place)
                    || self.existing.exchanges.contains_key(&place)
                    // Every virtual host is made with them.
                    || name.starts_with("amq.")
            };
            if binding.source.is_empty() {
                return here.refuse("", "the default exchange takes no bindings");
            }
            if !is_exchange(&binding.source) {
                return here.refuse(&binding.source, "there is no exchange of that name");
            }
            let to = &binding.destination;
            let is_there = match binding.to_queue {
                true => {
                    queues.contains(&place(to)) || self.existing.queues.contains_key(&place(to))
                }
                false => is_exchange(to),
            };
            if !is_there {
                let kind = if binding.to_queue { "queue" } else { "exchange" };
                return here.refuse(to, format!("there is no {kind} of that name"));
            }
        }
        Ok(())
    }

    fn users(&self) -> Result<(), ApiError> {
        let mut seen = HashMap::new();
        for (at, user) in self.document.users.iter().enumerate() {
            let mut tags: Vec<_> = user.tags.iter().map(String::as_str).collect();
            tags.sort_unstable();
            let facts = (tags, password_facts(&user.body));
            Position("users", at).alike(&user.name, &mut seen, &user.name, facts)?;
        }
        Ok(())
    }

    fn permissions(&self) -> Result<(), ApiError> {
        let mut seen = HashMap::new();
        for (at, permission) in self.document.permissions.iter().enumerate() {
            let (here, user) = (Position("permissions", at), &permission.user);
            self.user_in(here, user, &permission.vhost)?;
            let place = (user, &permission.vhost);
            here.alike(user, &mut seen, place, &permission.patterns)?;
        }
        Ok(())
    }

    fn topic_permissions(&self) -> Result<(), ApiError> {
        let mut seen = HashMap::new();
        for (at, permission) in self.document.topic_permissions.iter().enumerate() {
            let (here, user) = (Position("topic_permissions", at), &permission.user);
            self.user_in(here, user, &permission.vhost)?;
            let place = (user, &permission.vhost, &permission.exchange);
            here.alike(user, &mut seen, place, &permission.patterns)?;
        }
        Ok(())
    }

    fn user_in(&self, here: Position, user: &str, vhost: &str) -> Result<(), ApiError> {
        self.vhost(here, vhost)?;
        match self.existing.users.contains_key(user) || self.users.contains(user) {
            true => Ok(()),
            false => here.refuse(user, "there is no user of that name"),
        }
    }

    fn vhost(&self, here: Position, vhost: &str) -> Result<(), ApiError> {
        match self.existing.vhosts.contains(vhost) || self.vhosts.contains(vhost) {
            true => Ok(()),
            false => here.refuse(vhost, "there is no virtual host of that name"),
        }
    }
}

/// A section of the document and a place in it.
#[derive(Clone, Copy)]
struct Position(&'static str, usize);

impl Position {
    fn refuse(self, name: &str, reason: impl std::fmt::Display) -> Result<(), ApiError> {
        let Self(section, at) = self;
        Err(ApiError::BadRequest(format!("{section}[{at}] {name:?}: {reason}")))
    }

    /// Refuses what stands twice in the section and differs.
    fn alike<K: Eq + Hash, F: PartialEq>(
        self,
        name: &str,
        seen: &mut HashMap<K, F>,
        key: K,
        facts: F,
    ) -> Result<(), ApiError> {
        match seen.entry(key) {
            Entry::Occupied(other) if *other.get() != facts => {
                self.refuse(name, "it stands twice in the definitions and differs")
            }
            Entry::Occupied(_) => Ok(()),
            Entry::Vacant(first) => {
                first.insert(facts);
                Ok(())
            }
        }
    }
}

/// Returns the fields of a user that set the password.
fn password_facts(body: &Value) -> [&Value; 2] {
    match &body["password"] {
        Value::Null => [&body["password_hash"], &body["hashing_algorithm"]],
        password => [password, &Value::Null],
    }
}

/// Returns arguments as they are compared: of whatever width their numbers are, and without what is
/// the default.
fn comparable(arguments: &Table) -> Value {
    let mut arguments = from_table(arguments);
    if arguments["x-queue-type"] == "classic"
        && let Value::Object(arguments) = &mut arguments
    {
        arguments.remove("x-queue-type");
    }
    arguments
}

fn queue_facts(queue: &DeclareQueue) -> (bool, bool, Value) {
    (queue.durable, queue.auto_delete, comparable(&queue.arguments))
}

fn exchange_facts(exchange: &DeclareExchange) -> (String, bool, bool, bool, Value) {
    let DeclareExchange { kind, durable, auto_delete, internal, arguments, .. } = exchange;
    (kind.clone(), *durable, *auto_delete, *internal, comparable(arguments))
}

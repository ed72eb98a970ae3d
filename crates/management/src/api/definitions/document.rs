//! A document of definitions, as types.

use std::collections::HashSet;

use quelea_broker::exchange::ExchangeKind;
use quelea_broker::{DeclareExchange, DeclareQueue};
use quelea_model::{Table, Value as Argument};
use serde_json::Value;

use super::sqs::SqsAttributes;
use crate::audit::Imported;
use crate::error::ApiError;
use crate::fields::{arguments_field, binding_key_field, flag_field, required_field, text_field};
use crate::identity::users::tags;
use crate::identity::vhosts::unsupported_queue_type;
use crate::json::from_table;

/// What is in a document. Where something stands in it is its section and its place from 0, as in `queues[3]`.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) vhosts: Vec<String>,
    pub(super) users: Vec<UserDefinition>,
    pub(super) permissions: Vec<PermissionDefinition>,
    pub(super) topic_permissions: Vec<TopicPermissionDefinition>,
    pub(super) exchanges: Vec<(String, DeclareExchange)>,
    pub(super) queues: Vec<QueueDefinition>,
    pub(super) bindings: Vec<BindingDefinition>,
    /// What it holds that Quelea does not have.
    pub(super) unsupported: Vec<String>,
}

impl Document {
    /// Returns how many objects of each kind it holds.
    pub(super) const fn counts(&self) -> Imported {
        Imported {
            vhosts: self.vhosts.len(),
            users: self.users.len(),
            permissions: self.permissions.len(),
            topic_permissions: self.topic_permissions.len(),
            exchanges: self.exchanges.len(),
            queues: self.queues.len(),
            bindings: self.bindings.len(),
        }
    }
}

#[derive(Debug)]
pub(super) struct QueueDefinition {
    pub(super) vhost: String,
    pub(super) declared: DeclareQueue,
    /// What SQS has set of it.
    pub(super) sqs: Option<SqsAttributes>,
}

#[derive(Debug)]
pub(super) struct UserDefinition {
    pub(super) name: String,
    pub(super) tags: Vec<String>,
    /// With `password`, or `password_hash` and its algorithm.
    pub(super) body: Value,
}

#[derive(Clone, Debug)]
pub(super) struct PermissionDefinition {
    pub(super) user: String,
    pub(super) vhost: String,
    /// Configure, write, read.
    pub(super) patterns: [String; 3],
}

#[derive(Clone, Debug)]
pub(super) struct TopicPermissionDefinition {
    pub(super) user: String,
    pub(super) vhost: String,
    pub(super) exchange: String,
    /// Write, read.
    pub(super) patterns: [String; 2],
}

#[derive(Clone, Debug)]
pub(super) struct BindingDefinition {
    pub(super) vhost: String,
    pub(super) source: String,
    pub(super) destination: String,
    pub(super) to_queue: bool,
    pub(super) routing_key: String,
    pub(super) arguments: Table,
}

impl BindingDefinition {
    /// Returns a key that is equal for bindings that are the same.
    pub(super) fn key(&self) -> BindingKey {
        let Self { vhost, source, destination, to_queue, routing_key, arguments } = self;
        let texts = [vhost, source, destination, routing_key].map(Clone::clone);
        (texts, *to_queue, from_table(arguments).to_string())
    }
}

/// Virtual host, source, destination and routing key of a binding, whether it leads to a queue, and its arguments.
pub(super) type BindingKey = ([String; 4], bool, String);

/// Sections of what comes later.
const LATER: [&str; 3] = ["policies", "parameters", "global_parameters"];

/// Global parameters that every export of RabbitMQ's has, and that say nothing to others.
const OF_THE_CLUSTER: [&str; 2] = ["cluster_name", "internal_cluster_id"];

/// Sections that are read, that say what a document is, or that only RabbitMQ has a use for.
const KNOWN: [&str; 22] = [
    "vhosts",
    "users",
    "permissions",
    "topic_permissions",
    "exchanges",
    "queues",
    "bindings",
    LATER[0],
    LATER[1],
    LATER[2],
    "rabbit_version",
    "rabbitmq_version",
    "rabbitmq_definition_format",
    "product_name",
    "product_version",
    "original_cluster_name",
    "original_vhost_name",
    "explanation",
    "warnings",
    // Of a virtual host's document.
    "default_queue_type",
    "description",
    "metadata",
];

impl Document {
    /// Parses definitions. `vhost` is what is meant where none is named.
    ///
    /// # Errors
    /// [`ApiError::BadRequest`] with the place and the field.
    pub(super) fn parse(body: &Value, vhost: Option<&str>) -> Result<Self, ApiError> {
        if !body.is_object() {
            return Err(ApiError::bad("definitions must be an object"));
        }
        let of = |object: &Value| vhost_field(object, vhost);
        let mut document = Self {
            exchanges: section(body, "exchanges", |o| Ok((of(o)?, exchange(o)?)))?,
            queues: section(body, "queues", |o| queue(o, of(o)?))?,
            bindings: section(body, "bindings", |o| binding(o, of(o)?))?,
            ..Self::default()
        };
        if vhost.is_none() {
            document.vhosts =
                section(body, "vhosts", |o| Ok(required_field(o, "name")?.to_owned()))?;
            document.users = section(body, "users", user)?;
            document.permissions = section(body, "permissions", permission)?;
            document.topic_permissions = section(body, "topic_permissions", topic_permission)?;
        }
        document.note_unsupported(body)?;
        document.leave_out_unknown_exchanges();
        Ok(document)
    }

    /// Exchanges of types that only plugins have, with the bindings from and to them.
    fn leave_out_unknown_exchanges(&mut self) {
        let is_unknown = |(_, exchange): &mut (String, DeclareExchange)| {
            ExchangeKind::parse(&exchange.kind).is_err()
        };
        let unknown: Vec<_> = self.exchanges.extract_if(.., is_unknown).collect();
        self.unsupported.extend(unknown.iter().map(|(_, exchange)| {
            format!("exchange {:?} of type {:?}", exchange.name, exchange.kind)
        }));
        let unknown: HashSet<_> = unknown
            .iter()
            .map(|(vhost, exchange)| (vhost.as_str(), exchange.name.as_str()))
            .collect();
        self.bindings.retain(|binding| {
            let is_unknown = |name: &String| unknown.contains(&(&*binding.vhost, &**name));
            !is_unknown(&binding.source) && (binding.to_queue || !is_unknown(&binding.destination))
        });
    }

    fn note_unsupported(&mut self, body: &Value) -> Result<(), ApiError> {
        for (name, content) in body.as_object().into_iter().flatten() {
            // An empty one asks for nothing.
            if !KNOWN.contains(&name.as_str()) && !is_empty(content) {
                self.unsupported.push(format!("section {name:?}"));
            }
        }
        if let Some(queue_type) = unsupported_queue_type(body)? {
            self.unsupported.push(format!("default_queue_type {queue_type:?}"));
        }
        let vhosts = section(body, "vhosts", |object| {
            let queue_type = unsupported_queue_type(object)?;
            let name = required_field(object, "name")?;
            Ok(queue_type.map(|it| format!("default_queue_type {it:?} of vhosts {name:?}")))
        })?;
        self.unsupported.extend(vhosts.into_iter().flatten());
        for name in LATER {
            let found = section(body, name, |object| {
                Ok(text_field(object, "name")?.unwrap_or_default().to_owned())
            })?;
            let found = found.iter().filter(|one| {
                name != "global_parameters" || !OF_THE_CLUSTER.contains(&one.as_str())
            });
            self.unsupported.extend(found.map(|one| format!("{name} {one:?}")));
        }
        for name in ["users", "vhosts"] {
            let limited = section(body, name, |object| {
                let has_limits = !is_empty(&object["limits"]);
                has_limits.then(|| required_field(object, "name").map(str::to_owned)).transpose()
            })?;
            let limited = limited.iter().flatten();
            self.unsupported.extend(limited.map(|one| format!("limits of {name} {one:?}")));
        }
        Ok(())
    }
}

fn is_empty(content: &Value) -> bool {
    match content {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(all) => all.is_empty(),
        _ => false,
    }
}

/// Returns the objects of a section, which may be missing.
fn section<T>(
    body: &Value,
    name: &str,
    parse: impl Fn(&Value) -> Result<T, ApiError>,
) -> Result<Vec<T>, ApiError> {
    let objects = match &body[name] {
        Value::Null => return Ok(Vec::new()),
        Value::Array(objects) => objects,
        _ => return Err(ApiError::bad(format!("{name} must be a list"))),
    };
    let parsed = objects.iter().enumerate().map(|(at, object)| {
        let here = |reason| format!("{name}[{at}]: {reason}");
        match object.is_object() {
            true => parse(object).map_err(|error| match error {
                ApiError::BadRequest(reason) => ApiError::BadRequest(here(reason)),
                other => other,
            }),
            false => Err(ApiError::BadRequest(here("it is no object".to_owned()))),
        }
    });
    parsed.collect()
}

fn vhost_field(object: &Value, default: Option<&str>) -> Result<String, ApiError> {
    match (text_field(object, "vhost")?, default) {
        (Some(vhost), _) | (None, Some(vhost)) => Ok(vhost.to_owned()),
        (None, None) => Err(ApiError::bad("vhost is missing")),
    }
}

fn exchange(object: &Value) -> Result<DeclareExchange, ApiError> {
    Ok(DeclareExchange {
        name: required_field(object, "name")?.to_owned(),
        kind: required_field(object, "type")?.to_owned(),
        passive: false,
        durable: flag_field(object, "durable", true)?,
        auto_delete: flag_field(object, "auto_delete", false)?,
        internal: flag_field(object, "internal", false)?,
        arguments: arguments_field(object)?,
    })
}

fn queue(object: &Value, vhost: String) -> Result<QueueDefinition, ApiError> {
    let name = required_field(object, "name")?;
    let declared = DeclareQueue {
        name: name.to_owned(),
        durable: flag_field(object, "durable", true)?,
        auto_delete: flag_field(object, "auto_delete", false)?,
        arguments: queue_arguments(object)?,
        is_imported: true,
        ..DeclareQueue::default()
    };
    Ok(QueueDefinition { vhost, sqs: SqsAttributes::parse(object, name)?, declared })
}

/// Returns a queue's arguments with the queue's type, which some tools write beside them.
fn queue_arguments(object: &Value) -> Result<Table, ApiError> {
    let mut arguments = arguments_field(object)?;
    let Some(beside) = text_field(object, "type")? else { return Ok(arguments) };
    match arguments.get(QUEUE_TYPE).map(Argument::as_text) {
        // It is the default.
        None if beside == "classic" => {}
        None => arguments.set(QUEUE_TYPE, Argument::text(beside)),
        Some(Some(argument)) if argument != beside => {
            return Err(ApiError::BadRequest(format!(
                "type is {beside:?}, and the argument {QUEUE_TYPE} is {argument:?}"
            )));
        }
        Some(_) => {}
    }
    Ok(arguments)
}

const QUEUE_TYPE: &str = "x-queue-type";

fn binding(object: &Value, vhost: String) -> Result<BindingDefinition, ApiError> {
    let to_queue = match required_field(object, "destination_type")? {
        "queue" => true,
        "exchange" => false,
        other => {
            let reason = format!("destination_type must be queue or exchange, it is {other:?}");
            return Err(ApiError::BadRequest(reason));
        }
    };
    Ok(BindingDefinition {
        vhost,
        source: required_field(object, "source")?.to_owned(),
        destination: required_field(object, "destination")?.to_owned(),
        to_queue,
        routing_key: binding_key_field(object)?,
        arguments: arguments_field(object)?,
    })
}

fn user(object: &Value) -> Result<UserDefinition, ApiError> {
    let mut body = object.clone();
    // What Quelea itself exported, which RabbitMQ does not read.
    if let Some(own) = text_field(object, OWN_HASH)? {
        body["password_hash"] = own.into();
    }
    Ok(UserDefinition {
        name: required_field(object, "name")?.to_owned(),
        tags: tags(object)?,
        body,
    })
}

/// The field of a user's hash that RabbitMQ cannot read.
pub(super) const OWN_HASH: &str = "quelea_password_hash";

fn permission(object: &Value) -> Result<PermissionDefinition, ApiError> {
    let text = |field| required_field(object, field).map(str::to_owned);
    Ok(PermissionDefinition {
        user: text("user")?,
        vhost: text("vhost")?,
        patterns: [text("configure")?, text("write")?, text("read")?],
    })
}

fn topic_permission(object: &Value) -> Result<TopicPermissionDefinition, ApiError> {
    let text = |field| required_field(object, field).map(str::to_owned);
    Ok(TopicPermissionDefinition {
        user: text("user")?,
        vhost: text("vhost")?,
        exchange: text("exchange")?,
        patterns: [text("write")?, text("read")?],
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(body: Value) -> String {
        match Document::parse(&body, None) {
            Err(ApiError::BadRequest(reason)) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        assert_eq!(refused(json!([])), "definitions must be an object");
        assert_eq!(refused(json!({"queues": {}})), "queues must be a list");
        assert_eq!(refused(json!({"queues": [3]})), "queues[0]: it is no object");
        let queue = json!({"name": "q", "vhost": "/", "durable": "perhaps"});
        assert_eq!(
            refused(json!({"queues": [{"name": "p", "vhost": "/"}, queue]})),
            "queues[1]: durable must be true or false, it is \"perhaps\""
        );
        assert_eq!(refused(json!({"queues": [{"name": "q"}]})), "queues[0]: vhost is missing");
        assert_eq!(
            refused(json!({"bindings": [{"vhost": "/", "destination_type": "topic"}]})),
            "bindings[0]: destination_type must be queue or exchange, it is \"topic\""
        );
        let binding = json!({
            "vhost": "/", "source": "x", "destination": "q", "destination_type": "queue",
            "routing_key": "k".repeat(256),
        });
        assert_eq!(
            refused(json!({ "bindings": [binding] })),
            "bindings[0]: routing_key has 256 bytes, the limit is 255"
        );
    }

    #[test]
    fn what_comes_later_is_noted_by_name() {
        let body = json!({
            "policies": [{"name": "ha", "vhost": "/"}],
            "global_parameters": [{"name": "cluster_name", "value": "c"}, {"name": "mqtt"}],
            "users": [{"name": "u", "tags": "", "limits": {"max-connections": 1}}],
            "vhosts": [{"name": "/", "limits": []}],
        });
        let document = Document::parse(&body, None).unwrap();
        assert_eq!(
            document.unsupported,
            ["policies \"ha\"", "global_parameters \"mqtt\"", "limits of users \"u\""]
        );
    }

    #[test]
    fn unknown_sections_are_noted_unless_they_are_empty() {
        let body = json!({
            "rabbitmq_definition_format": "cluster", "vhost_limits": [], "queuess": [{}],
            "operator_policies": [{"name": "p"}], "explanation": "...", "original_cluster_name": "c",
        });
        let mut noted = Document::parse(&body, None).unwrap().unsupported;
        noted.sort();
        assert_eq!(noted, ["section \"operator_policies\"", "section \"queuess\""]);
    }

    #[test]
    fn virtual_hosts_whose_queues_would_be_streams_are_noted() {
        let stream = json!({"name": "s", "metadata": {"default_queue_type": "stream"}});
        let classic = json!({"name": "q", "default_queue_type": "classic", "description": "d"});
        let undefined = json!({"name": "u", "default_queue_type": "undefined", "tags": ["t"]});
        let body = json!({ "vhosts": [stream, classic, undefined] });
        let noted = Document::parse(&body, None).unwrap().unsupported;
        assert_eq!(noted, ["default_queue_type \"stream\" of vhosts \"s\""]);
        let of_vhost = json!({"metadata": {"default_queue_type": "stream"}, "limits": []});
        let noted = Document::parse(&of_vhost, Some("v")).unwrap().unsupported;
        assert_eq!(noted, ["default_queue_type \"stream\""]);
    }

    #[test]
    fn exchanges_of_unknown_types_go_with_their_bindings() {
        let exchange = |name: &str, kind: &str| json!({"name": name, "vhost": "v", "type": kind});
        let binding = |source: &str, kind: &str, destination: &str| json!({"vhost": "v", "source": source, "destination_type": kind, "destination": destination});
        let body = json!({
            "exchanges": [exchange("late", "x-delayed-message"), exchange("in", "topic")],
            "queues": [{"name": "late", "vhost": "v"}],
            "bindings": [
                binding("late", "queue", "q"),
                binding("in", "exchange", "late"),
                binding("in", "queue", "late"),
            ],
        });
        let document = Document::parse(&body, None).unwrap();
        assert_eq!(document.unsupported, ["exchange \"late\" of type \"x-delayed-message\""]);
        assert_eq!(document.exchanges.len(), 1);
        assert_eq!(document.bindings.len(), 1);
        assert!(document.bindings[0].to_queue);
    }

    #[test]
    fn a_queues_type_beside_its_arguments_is_the_argument() {
        let queue = |queue_type: &str, arguments: Value| json!({"queues": [{"name": "q", "vhost": "/", "type": queue_type, "arguments": arguments}]});
        let quorum = json!({"x-queue-type": "quorum"});
        for (queue_type, given, arguments) in [
            ("quorum", json!({}), quorum.clone()),
            ("quorum", quorum.clone(), quorum.clone()),
            ("classic", json!({}), json!({})),
        ] {
            let document = Document::parse(&queue(queue_type, given), None).unwrap();
            assert_eq!(from_table(&document.queues[0].declared.arguments), arguments);
        }
        assert_eq!(
            refused(queue("stream", quorum)),
            "queues[0]: type is \"stream\", and the argument x-queue-type is \"quorum\""
        );
    }

    #[test]
    fn a_virtual_hosts_document_names_none_and_its_users_are_not_looked_at() {
        let body = json!({ "queues": [{"name": "q"}], "permissions": [{"nonsense": true}] });
        let document = Document::parse(&body, Some("v")).unwrap();
        assert_eq!(document.queues[0].vhost, "v");
        assert!(document.permissions.is_empty());
    }
}

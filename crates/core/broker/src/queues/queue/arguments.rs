//! The arguments of queue.declare: checked once, then plain fields.

use quelea_model::limits::{PRIORITY_MAX, SHORT_STRING_BYTES_MAX, TTL_MS_MAX};
use quelea_model::{ExchangeName, Table, Value};
use quelea_store::Durability;

/// Which of RabbitMQ's queue types the queue was declared as. Both are the same queue here; they
/// differ in defaults and in what may be declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum QueueKind {
    #[default]
    Classic,
    /// Always durable, has a delivery limit, counts deliveries.
    Quorum,
}

impl QueueKind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Quorum => "quorum",
        }
    }
}

/// What happens at the length limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// The oldest messages go, dead-lettered with reason `maxlen`.
    #[default]
    DropHead,
    /// New messages are refused.
    RejectPublish,
    /// New messages are refused, and dead-lettered.
    RejectPublishDlx,
}

/// Where dead messages go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeadLetterTarget {
    pub(crate) exchange: ExchangeName,
    /// In place of the message's own.
    pub(crate) routing_key: Option<Box<str>>,
}

/// All arguments that mean something to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueArguments {
    pub(crate) kind: QueueKind,
    pub(crate) message_ttl_ms: Option<u64>,
    pub(crate) expires_ms: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) max_length_bytes: Option<u64>,
    pub(crate) overflow: Overflow,
    pub(crate) dead_letter: Option<DeadLetterTarget>,
    /// `None`: not a priority queue.
    pub(crate) max_priority: Option<u8>,
    pub(crate) single_active_consumer: bool,
    pub(crate) delivery_limit: Option<u16>,
    pub(crate) durability: Durability,
}

/// An argument that is refused: which, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadArgument {
    pub(crate) argument: &'static str,
    pub(crate) problem: String,
}

/// Arguments that RabbitMQ compares when a queue is declared again, and ours.
const COMPARED: [&str; 14] = [
    "x-expires",
    "x-message-ttl",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-dead-letter-strategy",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-priority",
    "x-overflow",
    "x-queue-mode",
    "x-single-active-consumer",
    "x-queue-type",
    "x-delivery-limit",
    "x-durability",
];

impl QueueArguments {
    /// Reads and checks a declaration's arguments. Unknown ones are accepted, as in RabbitMQ.
    pub(crate) fn parse(
        table: &Table,
        durable: bool,
        exclusive: bool,
        quorum_delivery_limit: u16,
    ) -> Result<Self, BadArgument> {
        let kind = queue_kind(table)?;
        let arguments = Arguments(table);
        let max_priority = arguments
            .integer("x-max-priority", 0, i64::from(PRIORITY_MAX))?
            .map(|priority| priority as u8);
        let parsed = Self {
            kind,
            message_ttl_ms: arguments.unsigned("x-message-ttl", 0, TTL_MS_MAX as i64)?,
            expires_ms: arguments.unsigned("x-expires", 1, TTL_MS_MAX as i64)?,
            max_length: arguments.unsigned("x-max-length", 0, i64::MAX)?,
            max_length_bytes: arguments.unsigned("x-max-length-bytes", 0, i64::MAX)?,
            overflow: overflow(&arguments)?,
            dead_letter: dead_letter(&arguments)?,
            max_priority,
            single_active_consumer: arguments.bool("x-single-active-consumer")?.unwrap_or(false),
            delivery_limit: delivery_limit(&arguments, kind, quorum_delivery_limit)?,
            durability: durability(&arguments)?,
        };
        arguments.one_of("x-dead-letter-strategy", &["at-most-once", "at-least-once"])?;
        arguments.one_of("x-queue-mode", &["default", "lazy"])?;
        parsed.check_quorum(durable, exclusive)?;
        Ok(parsed)
    }

    /// Returns whether deliveries are counted in a header and in the log.
    pub(crate) const fn counts_deliveries(&self) -> bool {
        self.delivery_limit.is_some() || matches!(self.kind, QueueKind::Quorum)
    }

    fn check_quorum(&self, durable: bool, exclusive: bool) -> Result<(), BadArgument> {
        let problem = match self.kind {
            QueueKind::Quorum if !durable => "a queue of type quorum must be durable",
            QueueKind::Quorum if exclusive => "a queue of type quorum cannot be exclusive",
            _ => return Ok(()),
        };
        Err(BadArgument { argument: "x-queue-type", problem: problem.to_owned() })
    }
}

/// Returns the first argument that differs between two declarations: its name, what was received
/// and what stands, both as RabbitMQ words it.
pub(crate) fn difference(
    received: &Table,
    current: &Table,
) -> Option<(&'static str, String, String)> {
    COMPARED.into_iter().find_map(|name| {
        let (new, old) = (received.get(name), current.get(name));
        let same = match (new, old) {
            (None, None) => true,
            (Some(new), Some(old)) => new == old || same_integer(new, old),
            // Leaving the type out means classic.
            (Some(value), None) | (None, Some(value)) => {
                name == "x-queue-type" && value.as_text() == Some("classic")
            }
        };
        (!same).then(|| (name, describe(new), describe(old)))
    })
}

fn same_integer(a: &Value, b: &Value) -> bool {
    a.as_integer().is_some() && a.as_integer() == b.as_integer()
}

fn describe(value: Option<&Value>) -> String {
    let Some(value) = value else {
        return String::from("none");
    };
    format!("the value '{value}' of type '{}'", value.type_name())
}

fn queue_kind(table: &Table) -> Result<QueueKind, BadArgument> {
    let name = "x-queue-type";
    match Arguments(table).text(name)? {
        None | Some("classic") => Ok(QueueKind::Classic),
        Some("quorum") => Ok(QueueKind::Quorum),
        Some("stream") => Err(BadArgument {
            argument: name,
            problem: String::from("queues of type stream are not supported"),
        }),
        Some(other) => Err(BadArgument {
            argument: name,
            problem: format!("unsupported queue type '{other}': classic and quorum are known"),
        }),
    }
}

fn overflow(arguments: &Arguments<'_>) -> Result<Overflow, BadArgument> {
    let known = ["drop-head", "reject-publish", "reject-publish-dlx"];
    Ok(match arguments.one_of("x-overflow", &known)? {
        Some("reject-publish") => Overflow::RejectPublish,
        Some("reject-publish-dlx") => Overflow::RejectPublishDlx,
        _ => Overflow::DropHead,
    })
}

fn dead_letter(arguments: &Arguments<'_>) -> Result<Option<DeadLetterTarget>, BadArgument> {
    let key_name = "x-dead-letter-routing-key";
    let routing_key = arguments.text(key_name)?;
    if let Some(key) = routing_key
        && key.len() > SHORT_STRING_BYTES_MAX
    {
        let problem = format!("{} bytes, the limit is {SHORT_STRING_BYTES_MAX}", key.len());
        return Err(BadArgument { argument: key_name, problem });
    }
    let name = "x-dead-letter-exchange";
    match arguments.text(name)? {
        Some(exchange) => {
            let exchange = ExchangeName::parse(exchange)
                .map_err(|e| BadArgument { argument: name, problem: e.to_string() })?;
            Ok(Some(DeadLetterTarget { exchange, routing_key: routing_key.map(Box::from) }))
        }
        None if routing_key.is_some() => Err(BadArgument {
            argument: key_name,
            problem: String::from("routing_key_but_no_dlx_defined"),
        }),
        None => Ok(None),
    }
}

fn delivery_limit(
    arguments: &Arguments<'_>,
    kind: QueueKind,
    quorum_default: u16,
) -> Result<Option<u16>, BadArgument> {
    // -1 means none in RabbitMQ.
    match arguments.integer("x-delivery-limit", -1, i64::MAX)? {
        Some(-1) => Ok(None),
        // Deliveries are counted as far as that: more than the highest limit there are none.
        Some(limit) => Ok(Some(u16::try_from(limit).unwrap_or(u16::MAX))),
        None => Ok((kind == QueueKind::Quorum).then_some(quorum_default)),
    }
}

fn durability(arguments: &Arguments<'_>) -> Result<Durability, BadArgument> {
    Ok(match arguments.one_of("x-durability", &["fsync", "os"])? {
        Some("os") => Durability::Os,
        _ => Durability::Fsync,
    })
}

/// Typed access to a table, with an error that names the argument.
struct Arguments<'a>(&'a Table);

impl<'a> Arguments<'a> {
    fn text(&self, argument: &'static str) -> Result<Option<&'a str>, BadArgument> {
        match self.0.get(argument) {
            None => Ok(None),
            Some(value) => match value.as_text() {
                Some(text) => Ok(Some(text)),
                None => Err(wrong_type(argument, value, "longstr")),
            },
        }
    }

    fn bool(&self, argument: &'static str) -> Result<Option<bool>, BadArgument> {
        match self.0.get(argument) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(value) => Err(wrong_type(argument, value, "bool")),
        }
    }

    fn integer(
        &self,
        argument: &'static str,
        min: i64,
        max: i64,
    ) -> Result<Option<i64>, BadArgument> {
        let Some(value) = self.0.get(argument) else {
            return Ok(None);
        };
        match value.as_integer() {
            Some(number) if (min..=max).contains(&number) => Ok(Some(number)),
            Some(number) => Err(BadArgument {
                argument,
                problem: format!("{number} is out of range, {min} to {max} are allowed"),
            }),
            None => Err(wrong_type(argument, value, "an integer")),
        }
    }

    fn unsigned(
        &self,
        argument: &'static str,
        min: i64,
        max: i64,
    ) -> Result<Option<u64>, BadArgument> {
        Ok(self.integer(argument, min, max)?.map(i64::unsigned_abs))
    }

    fn one_of(
        &self,
        argument: &'static str,
        known: &[&str],
    ) -> Result<Option<&'a str>, BadArgument> {
        match self.text(argument)? {
            Some(text) if !known.contains(&text) => Err(BadArgument {
                argument,
                problem: format!("'{text}' is not one of {}", known.join(", ")),
            }),
            text => Ok(text),
        }
    }
}

fn wrong_type(argument: &'static str, value: &Value, wanted: &str) -> BadArgument {
    let problem = format!("unacceptable type {}, {wanted} is expected", value.type_name());
    BadArgument { argument, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(entries: &[(&str, Value)]) -> Result<QueueArguments, BadArgument> {
        let table = entries.iter().cloned().collect();
        QueueArguments::parse(&table, true, false, 20)
    }

    #[test]
    fn every_argument_has_its_type_and_its_range() {
        let text = Value::text;
        let cases = [
            ("x-message-ttl", text("1000")),
            ("x-message-ttl", Value::I32(-1)),
            ("x-expires", Value::I32(0)),
            ("x-max-length", Value::I64(-5)),
            ("x-max-priority", Value::I32(256)),
            ("x-overflow", text("drop-tail")),
            ("x-dead-letter-exchange", Value::I32(1)),
            ("x-dead-letter-routing-key", text("alone")),
            ("x-single-active-consumer", text("true")),
            ("x-queue-type", text("stream")),
            ("x-delivery-limit", Value::I32(-2)),
            ("x-durability", text("raid")),
            ("x-queue-mode", text("fast")),
        ];
        for (name, value) in cases {
            let error = parse(&[(name, value.clone())]).unwrap_err();
            assert_eq!(error.argument, name, "{value:?}");
        }
        assert!(parse(&[("x-unknown", Value::Void), ("x-queue-version", Value::I32(2))]).is_ok());
    }

    #[test]
    fn a_quorum_queue_has_a_delivery_limit_and_is_durable_and_shared() {
        let quorum: Table = [("x-queue-type", Value::text("quorum"))].into_iter().collect();
        let parsed = QueueArguments::parse(&quorum, true, false, 20).unwrap();
        assert_eq!(parsed.delivery_limit, Some(20));
        assert!(parsed.counts_deliveries());
        assert!(QueueArguments::parse(&quorum, false, false, 20).is_err());
        assert!(QueueArguments::parse(&quorum, true, true, 20).is_err());
    }

    #[test]
    fn a_difference_is_told_in_rabbitmqs_words() {
        let one: Table = [("x-message-ttl", Value::I32(1000))].into_iter().collect();
        let wide: Table = [("x-message-ttl", Value::I64(1000))].into_iter().collect();
        assert_eq!(difference(&one, &wide), None);
        let (name, received, current) = difference(&Table::new(), &one).unwrap();
        assert_eq!(name, "x-message-ttl");
        assert_eq!(received, "none");
        assert_eq!(current, "the value '1000' of type 'signedint'");
        let classic: Table = [("x-queue-type", Value::text("classic"))].into_iter().collect();
        assert_eq!(difference(&classic, &Table::new()), None);
    }
}

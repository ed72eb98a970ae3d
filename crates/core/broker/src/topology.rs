//! The stored topology: typed items ⇄ key and value bytes, as the log keeps them.
//!
//! A key identifies an item, its value holds the rest. Both are built of few shapes:
//!
//! | shape | bytes |
//! |---|---|
//! | `u8`, `u32`, `u64` | little-endian |
//! | `flags` | `u8`, unknown bits are refused |
//! | `text` | `u32` length, then that many bytes of UTF-8 |
//! | `texts` | `u32` count, then that many `text` |
//! | `pairs` | `u32` count, then that many times two `text` |
//! | `table` | `u32` length, then an AMQP field table's content (big-endian within, as on the wire) |
//!
//! A key is `kind u8`, then the fields of the kind. A value is `version u8` (1), then its fields.
//! docs/formats/topology.md has the same, field by field, with an example.

mod access_key;
mod attributes;
mod codec;
pub(crate) mod error;
mod moves;
pub(crate) mod queue_names;
#[cfg(test)]
mod tests;

use quelea_model::{ExchangeName, QueueId, QueueName, Table, Timestamp, VhostName};

use crate::access::access_key::AccessKey;
use crate::access::permission::{Permission, TopicPermission, User};
use crate::routing::exchange::{ExchangeKind, ExchangeSpec};
pub(crate) use attributes::StoredAttributes;
use codec::{Reader, Writer};
use error::TopologyError;
pub(crate) use moves::StoredMove;

/// The version of every value written today.
const VERSION: u8 = 1;

/// Item kinds by number. Numbers are never used twice; 8 to 10 are kept for policies, parameters
/// and counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Key: name `text`. Value: description `text`, tags `texts`.
    Vhost = 1,
    /// Key: name `text`. Value: password hash `text`, tags `texts`.
    User = 2,
    /// Key: vhost `text`, user `text`. Value: configure, write, read, each `text`.
    Permission = 3,
    /// Key: vhost, user, exchange, each `text`. Value: write, read, each `text`.
    TopicPermission = 4,
    /// Key: vhost, name, each `text`. Value: type `u8` (1 direct, 2 fanout, 3 topic, 4 headers),
    /// `flags` (bit 0 auto-delete, bit 1 internal), arguments `table`.
    Exchange = 5,
    /// Key: vhost, name, each `text`. Value: number `u32`, `flags` (bit 0 auto-delete, bit 1
    /// exclusive), declared at `u64` ms since 1970, arguments `table`.
    Queue = 6,
    /// Key: vhost, source exchange, each `text`, destination `u8` (1 queue, 2 exchange), its name,
    /// routing key, each `text`, arguments `table`. Value: nothing but the version.
    Binding = 7,
    /// Key: id `text`. Value: vhost, user, secret, each `text`, `flags` (bit 0 disabled), created at
    /// `u64` ms since 1970.
    AccessKey = 11,
    /// Key: vhost, queue, each `text`. Value: `flags` (bit 0 FIFO, bit 1 deduplicates by group, bit 2
    /// fair, bit 3 has a retention, bit 4 has a redrive), durability `u8` (0 as declared, 1 `os`,
    /// 2 `fsync`), delay `u64` ms, retention `u64` ms, order hint `u32`, receives before a redrive
    /// `u32`, its target `text`, last change `u64` ms since 1970, attributes `pairs`, tags `pairs`.
    Attributes = 12,
    /// Key: vhost, source queue, each `text`, number of the task `u64`. Value: `flags` (bit 0 has a
    /// destination, bit 1 has a rate), state `u8` (1 running, 2 completed, 3 cancelled, failed: 4 a
    /// message's origin is unknown, 5 no destination, 6 destination full, 7 message gone),
    /// destination's number `u32`, messages a second `u32`, number of the first message that stays
    /// `u64`, messages moved `u64`, messages to move `u64`, start `u64` ms since 1970.
    Move = 13,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Vhost,
        Self::User,
        Self::Permission,
        Self::TopicPermission,
        Self::Exchange,
        Self::Queue,
        Self::Binding,
        Self::AccessKey,
        Self::Attributes,
        Self::Move,
    ];
}

/// One stored item.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    Vhost(StoredVhost),
    User(User),
    Permission(Permission),
    TopicPermission(TopicPermission),
    Exchange(VhostName, ExchangeSpec),
    Queue(StoredQueue),
    Binding(StoredBinding),
    AccessKey(AccessKey),
    Attributes(StoredAttributes),
    Move(StoredMove),
}

/// A virtual host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredVhost {
    pub(crate) name: VhostName,
    /// For people.
    pub(crate) description: Box<str>,
    /// For people and tools.
    pub(crate) tags: Vec<Box<str>>,
}

/// A durable queue.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredQueue {
    pub(crate) vhost: VhostName,
    pub(crate) name: QueueName,
    /// Its number in the log.
    pub(crate) id: QueueId,
    /// Whether it goes with its last consumer.
    pub(crate) auto_delete: bool,
    /// Whether it belonged to one connection, which a restart has ended.
    pub(crate) exclusive: bool,
    /// When it was declared.
    pub(crate) created_at: Timestamp,
    /// As declared.
    pub(crate) arguments: Table,
}

/// A durable binding.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredBinding {
    pub(crate) vhost: VhostName,
    pub(crate) source: ExchangeName,
    pub(crate) destination: StoredDestination,
    /// Routing key or pattern.
    pub(crate) key: Box<str>,
    /// As declared, sorted by name: they are part of the identity.
    pub(crate) arguments: Table,
}

/// Where a stored binding leads; queues by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoredDestination {
    Queue(QueueName),
    Exchange(ExchangeName),
}

const AUTO_DELETE: u8 = 1;
const INTERNAL: u8 = 2;
const EXCLUSIVE: u8 = 2;

/// Exchange types with their numbers on disk.
const EXCHANGE_KINDS: [(u8, ExchangeKind); 4] = [
    (1, ExchangeKind::Direct),
    (2, ExchangeKind::Fanout),
    (3, ExchangeKind::Topic),
    (4, ExchangeKind::Headers),
];

const TO_QUEUE: u8 = 1;
const TO_EXCHANGE: u8 = 2;

impl Item {
    /// Returns which kind it is; keys begin with its number, so items sort by kind.
    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::Vhost(_) => Kind::Vhost,
            Self::User(_) => Kind::User,
            Self::Permission(_) => Kind::Permission,
            Self::TopicPermission(_) => Kind::TopicPermission,
            Self::Exchange(..) => Kind::Exchange,
            Self::Queue(_) => Kind::Queue,
            Self::Binding(_) => Kind::Binding,
            Self::AccessKey(_) => Kind::AccessKey,
            Self::Attributes(_) => Kind::Attributes,
            Self::Move(_) => Kind::Move,
        }
    }

    /// Returns the virtual host that it is in, or is about.
    pub(crate) const fn vhost(&self) -> Option<&VhostName> {
        match self {
            Self::Vhost(_) | Self::User(_) => None,
            Self::Permission(permission) => Some(&permission.vhost),
            Self::TopicPermission(permission) => Some(&permission.vhost),
            Self::Exchange(vhost, _) => Some(vhost),
            Self::Queue(queue) => Some(&queue.vhost),
            Self::Binding(binding) => Some(&binding.vhost),
            Self::AccessKey(key) => Some(&key.vhost),
            Self::Attributes(attributes) => Some(&attributes.vhost),
            Self::Move(task) => Some(&task.vhost),
        }
    }

    /// Returns what identifies it; enough to delete it.
    pub(crate) fn key(&self) -> Vec<u8> {
        let mut out = Writer::new(self.kind() as u8);
        match self {
            Self::Vhost(vhost) => out.text(vhost.name.as_str()),
            Self::User(user) => out.text(&user.name),
            Self::Permission(permission) => {
                out.text(permission.vhost.as_str());
                out.text(&permission.user);
            }
            Self::TopicPermission(permission) => {
                out.text(permission.vhost.as_str());
                out.text(&permission.user);
                out.text(&permission.exchange);
            }
            Self::Exchange(vhost, exchange) => {
                out.text(vhost.as_str());
                out.text(exchange.name.as_str());
            }
            Self::Queue(queue) => {
                out.text(queue.vhost.as_str());
                out.text(queue.name.as_str());
            }
            Self::Binding(binding) => binding.write_key(&mut out),
            Self::AccessKey(access_key) => access_key.write_key(&mut out),
            Self::Attributes(attributes) => attributes.write_key(&mut out),
            Self::Move(task) => task.write_key(&mut out),
        }
        out.into_bytes()
    }

    /// Returns what is not in the key.
    pub(crate) fn value(&self) -> Vec<u8> {
        let mut out = Writer::new(VERSION);
        match self {
            Self::Vhost(vhost) => {
                out.text(&vhost.description);
                out.texts(&vhost.tags);
            }
            Self::User(user) => {
                out.text(&user.password_hash);
                out.texts(&user.tags);
            }
            Self::Permission(permission) => {
                out.text(&permission.configure);
                out.text(&permission.write);
                out.text(&permission.read);
            }
            Self::TopicPermission(permission) => {
                out.text(&permission.write);
                out.text(&permission.read);
            }
            Self::Exchange(_, exchange) => {
                out.one_of(&EXCHANGE_KINDS, &exchange.kind);
                out.flags(&[(AUTO_DELETE, exchange.auto_delete), (INTERNAL, exchange.internal)]);
                out.table(&exchange.arguments);
            }
            Self::Queue(queue) => {
                out.u32(queue.id.0);
                out.flags(&[(AUTO_DELETE, queue.auto_delete), (EXCLUSIVE, queue.exclusive)]);
                out.u64(queue.created_at.as_millis());
                out.table(&queue.arguments);
            }
            Self::Binding(_) => {}
            Self::AccessKey(access_key) => access_key.write_value(&mut out),
            Self::Attributes(attributes) => attributes.write_value(&mut out),
            Self::Move(task) => task.write_value(&mut out),
        }
        out.into_bytes()
    }

    /// Reads an item back. Strict: unknown numbers, names that are none, and bytes that are left
    /// over are errors.
    ///
    /// # Errors
    /// [`TopologyError`] for the first thing that is wrong.
    pub(crate) fn decode(key: &[u8], value: &[u8]) -> Result<Self, TopologyError> {
        let mut key = Reader::new("key", key);
        let mut value = Reader::new("value", value);
        let number = key.u8("kind")?;
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == number);
        let kind = kind.ok_or_else(|| key.error("kind", 0, format!("unknown number {number}")))?;
        let version = value.u8("version")?;
        if version != VERSION {
            let reason = format!("{version}, this program reads {VERSION}");
            return Err(value.error("version", 0, reason));
        }
        let item = Self::decode_kind(kind, &mut key, &mut value)?;
        key.end()?;
        value.end()?;
        Ok(item)
    }

    fn decode_kind(
        kind: Kind,
        key: &mut Reader<'_>,
        value: &mut Reader<'_>,
    ) -> Result<Self, TopologyError> {
        Ok(match kind {
            Kind::Vhost => Self::Vhost(StoredVhost {
                name: key.name("vhost name", VhostName::parse)?,
                description: value.boxed("description")?,
                tags: value.texts("tags")?,
            }),
            Kind::User => Self::User(User {
                name: key.text("user name")?.into(),
                password_hash: value.boxed("password hash")?,
                tags: value.texts("tags")?,
            }),
            Kind::Permission => Self::Permission(Permission {
                vhost: key.name("vhost name", VhostName::parse)?,
                user: key.text("user name")?.into(),
                configure: value.boxed("configure pattern")?,
                write: value.boxed("write pattern")?,
                read: value.boxed("read pattern")?,
            }),
            Kind::TopicPermission => Self::TopicPermission(TopicPermission {
                vhost: key.name("vhost name", VhostName::parse)?,
                user: key.text("user name")?.into(),
                exchange: key.boxed("exchange name")?,
                write: value.boxed("write pattern")?,
                read: value.boxed("read pattern")?,
            }),
            Kind::Exchange => {
                let vhost = key.name("vhost name", VhostName::parse)?;
                Self::Exchange(vhost, decode_exchange(key, value)?)
            }
            Kind::Queue => {
                let vhost = key.name("vhost name", VhostName::parse)?;
                let name = key.name("queue name", QueueName::parse)?;
                let id = QueueId(value.u32("queue number")?);
                let [auto_delete, exclusive] = value.flags("flags", [AUTO_DELETE, EXCLUSIVE])?;
                let created_at = Timestamp::from_millis(value.u64("time of declaration")?);
                let arguments = value.table("arguments")?;
                Self::Queue(StoredQueue {
                    vhost,
                    name,
                    id,
                    auto_delete,
                    exclusive,
                    created_at,
                    arguments,
                })
            }
            Kind::Binding => Self::Binding(StoredBinding::read_key(key)?),
            Kind::AccessKey => Self::AccessKey(AccessKey::read(key, value)?),
            Kind::Attributes => Self::Attributes(StoredAttributes::read(key, value)?),
            Kind::Move => Self::Move(StoredMove::read(key, value)?),
        })
    }
}

impl StoredBinding {
    fn write_key(&self, out: &mut Writer) {
        out.text(self.vhost.as_str());
        out.text(self.source.as_str());
        match &self.destination {
            StoredDestination::Queue(name) => {
                out.u8(TO_QUEUE);
                out.text(name.as_str());
            }
            StoredDestination::Exchange(name) => {
                out.u8(TO_EXCHANGE);
                out.text(name.as_str());
            }
        }
        out.text(&self.key);
        out.table(&self.arguments);
    }

    fn read_key(key: &mut Reader<'_>) -> Result<Self, TopologyError> {
        let vhost = key.name("vhost name", VhostName::parse)?;
        let source = key.name("source exchange", ExchangeName::parse)?;
        let at = key.at();
        let destination = match key.u8("destination")? {
            TO_QUEUE => StoredDestination::Queue(key.name("queue name", QueueName::parse)?),
            TO_EXCHANGE => {
                StoredDestination::Exchange(key.name("exchange name", ExchangeName::parse)?)
            }
            number => {
                return Err(key.error("destination", at, format!("unknown number {number}")));
            }
        };
        let routing_key = key.boxed("routing key")?;
        let arguments = key.table("arguments")?;
        Ok(Self { vhost, source, destination, key: routing_key, arguments })
    }
}

fn decode_exchange(
    key: &mut Reader<'_>,
    value: &mut Reader<'_>,
) -> Result<ExchangeSpec, TopologyError> {
    let name = key.name("exchange name", ExchangeName::parse)?;
    let kind = value.one_of("exchange type", &EXCHANGE_KINDS)?;
    let [auto_delete, internal] = value.flags("flags", [AUTO_DELETE, INTERNAL])?;
    let arguments = value.table("arguments")?;
    // What is stored is durable.
    Ok(ExchangeSpec { name, kind, durable: true, auto_delete, internal, arguments })
}

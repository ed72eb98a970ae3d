//! The stored attributes of a queue.

use quelea_model::{QueueName, Timestamp, VhostName};
use quelea_store::Durability;

use super::codec::{Reader, Writer};
use super::error::TopologyError;
use crate::queues::queue::attributes::{Fifo, QueueAttributes, QueueSettings, Redrive};

const FIFO: u8 = 1;
const BY_GROUP: u8 = 2;
const FAIR: u8 = 4;
const RETENTION: u8 = 8;
const REDRIVE: u8 = 16;

/// Durabilities with their numbers on disk; none is as the queue was declared.
const DURABILITIES: [(u8, Option<Durability>); 3] =
    [(0, None), (1, Some(Durability::Os)), (2, Some(Durability::Fsync))];

/// A queue's attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredAttributes {
    pub(crate) vhost: VhostName,
    pub(crate) queue: QueueName,
    pub(crate) attributes: QueueAttributes,
}

impl StoredAttributes {
    pub(super) fn write_key(&self, out: &mut Writer) {
        out.text(self.vhost.as_str());
        out.text(self.queue.as_str());
    }

    pub(super) fn write_value(&self, out: &mut Writer) {
        let QueueAttributes { settings, attributes, tags, modified_at } = &self.attributes;
        let by_group = settings.fifo.is_some_and(|fifo| fifo.deduplicates_by_group);
        out.flags(&[
            (FIFO, settings.fifo.is_some()),
            (BY_GROUP, by_group),
            (FAIR, settings.fair),
            (RETENTION, settings.retention_ms.is_some()),
            (REDRIVE, settings.redrive.is_some()),
        ]);
        out.one_of(&DURABILITIES, &settings.durability.filter(|d| *d != Durability::None));
        out.u64(settings.delay_ms);
        out.u64(settings.retention_ms.unwrap_or(0));
        out.u32(u32::from(settings.order_hint));
        out.u32(settings.redrive.as_ref().map_or(0, |redrive| u32::from(redrive.receives_max)));
        out.text(settings.redrive.as_ref().map_or("", |redrive| &redrive.target));
        out.u64(modified_at.as_millis());
        out.pairs(attributes);
        out.pairs(tags);
    }

    pub(super) fn read(
        key: &mut Reader<'_>,
        value: &mut Reader<'_>,
    ) -> Result<Self, TopologyError> {
        let vhost = key.name("vhost name", VhostName::parse)?;
        let queue = key.name("queue name", QueueName::parse)?;
        let bits = [FIFO, BY_GROUP, FAIR, RETENTION, REDRIVE];
        let [fifo, deduplicates_by_group, fair, has_retention, has_redrive] =
            value.flags("flags", bits)?;
        let durability = value.one_of("durability", &DURABILITIES)?;
        let delay_ms = value.u64("delay")?;
        let retention_ms = value.u64("retention")?;
        let order_hint = small(value, "order hint")?;
        let receives_max = small(value, "receives")?;
        let target = value.boxed("redrive target")?;
        let settings = QueueSettings {
            delay_ms,
            retention_ms: has_retention.then_some(retention_ms),
            order_hint,
            redrive: has_redrive.then_some(Redrive { receives_max, target }),
            fifo: fifo.then_some(Fifo { deduplicates_by_group }),
            fair,
            durability,
        };
        let modified_at = Timestamp::from_millis(value.u64("time of the last change")?);
        let (attributes, tags) = (value.pairs("attributes")?, value.pairs("tags")?);
        let attributes = QueueAttributes { settings, attributes, tags, modified_at };
        Ok(Self { vhost, queue, attributes })
    }
}

fn small(value: &mut Reader<'_>, what: &'static str) -> Result<u16, TopologyError> {
    let at = value.at();
    let number = value.u32(what)?;
    u16::try_from(number).map_err(|_| value.error(what, at, format!("{number} is above 65535")))
}

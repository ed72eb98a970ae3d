//! Class `basic` (60): messages, consumers, acknowledgements.

use quelea_model::Table;

use super::shape::shapes;
use crate::short_str::ShortStr;

shapes! {
    /// Limits unacknowledged deliveries.
    Qos {
        /// Bytes; RabbitMQ and Quelea take only 0, no limit.
        prefetch_size: u32,
        /// Deliveries; 0 is no limit.
        prefetch_count: u16,
        /// For the whole channel instead of each new consumer.
        global: bool,
    }
    /// The limit holds.
    QosOk {}
    /// Starts a consumer.
    Consume [u16] {
        /// The queue; empty is the channel's last declared one.
        queue: ShortStr,
        /// Its name on this channel; the server makes one up for the empty tag.
        consumer_tag: ShortStr,
        /// Not what this connection published; ignored, as in RabbitMQ.
        no_local: bool,
        /// Deliveries count as acknowledged.
        no_ack: bool,
        /// The queue's only consumer.
        exclusive: bool,
        /// No answer is wanted.
        no_wait: bool,
        /// `x-priority` and others.
        arguments: Table,
    }
    /// The consumer runs.
    ConsumeOk {
        /// Its name.
        consumer_tag: ShortStr,
    }
    /// Ends a consumer; sent by the server when its queue is gone.
    Cancel {
        /// Its name.
        consumer_tag: ShortStr,
        /// No answer is wanted.
        no_wait: bool,
    }
    /// The consumer is gone.
    CancelOk {
        /// Its name.
        consumer_tag: ShortStr,
    }
    /// Publishes the content that follows.
    Publish [u16] {
        /// The exchange; empty is the default exchange.
        exchange: ShortStr,
        /// The routing key.
        routing_key: ShortStr,
        /// Comes back by `return` if no queue takes it.
        mandatory: bool,
        /// Comes back if no consumer takes it at once; not implemented.
        immediate: bool,
    }
    /// Hands back a mandatory message, whose content follows.
    Return {
        /// A [`ReplyCode`](crate::ReplyCode)'s number.
        reply_code: u16,
        /// For people.
        reply_text: ShortStr,
        /// Where it was published.
        exchange: ShortStr,
        /// With which key.
        routing_key: ShortStr,
    }
    /// Hands a message, whose content follows, to a consumer.
    Deliver {
        /// The consumer.
        consumer_tag: ShortStr,
        /// The delivery's number on this channel.
        delivery_tag: u64,
        /// Was delivered before.
        redelivered: bool,
        /// Where it was published.
        exchange: ShortStr,
        /// With which key.
        routing_key: ShortStr,
    }
    /// Asks for one message.
    Get [u16] {
        /// The queue; empty is the channel's last declared one.
        queue: ShortStr,
        /// The delivery counts as acknowledged.
        no_ack: bool,
    }
    /// Answers `get` with a message, whose content follows.
    GetOk {
        /// The delivery's number on this channel.
        delivery_tag: u64,
        /// Was delivered before.
        redelivered: bool,
        /// Where it was published.
        exchange: ShortStr,
        /// With which key.
        routing_key: ShortStr,
        /// Messages that are still ready.
        message_count: u32,
    }
    /// Answers `get`: there is none.
    GetEmpty {} [ShortStr]
    /// Acknowledges deliveries; from the server, confirms publishes.
    Ack {
        /// The delivery, or with `multiple` the last of them; 0 is all.
        delivery_tag: u64,
        /// All up to this one.
        multiple: bool,
    }
    /// Refuses a delivery.
    Reject {
        /// The delivery.
        delivery_tag: u64,
        /// Back to its queue instead of away.
        requeue: bool,
    }
    /// Requeues what is unacknowledged, without an answer; deprecated.
    RecoverAsync {
        /// Back to the queue instead of to the same consumer.
        requeue: bool,
    }
    /// Requeues what is unacknowledged.
    Recover {
        /// Back to the queue instead of to the same consumer.
        requeue: bool,
    }
    /// It is requeued.
    RecoverOk {}
    /// Refuses deliveries (RabbitMQ's extension); from the server, publishes that were not taken.
    Nack {
        /// The delivery, or with `multiple` the last of them; 0 is all.
        delivery_tag: u64,
        /// All up to this one.
        multiple: bool,
        /// Back to the queue instead of away.
        requeue: bool,
    }
}

//! Declares what a load needs, makes its connections, and cleans up behind it.

use quelea_amqp_codec::ShortStr;
use quelea_amqp_codec::method::{Method, basic, confirm, exchange, queue};

use crate::args::DEFAULT_QUEUE;
use crate::client::{Client, short, unexpected};
use crate::error::BenchError;
use crate::peer::{Incoming, Peer};
use crate::plan::Plan;
use crate::publisher::{Pace, Publisher};
use crate::subscriber::{Acknowledge, Subscriber};
use crate::template::{Message, Template};
use crate::uri::BrokerUri;

/// The only channel of a connection under load.
pub(crate) const CHANNEL: u16 = 1;
pub(crate) const NOT_FOUND: u16 = 404;

/// A client for declarations: opens its channel again when the broker closes it.
#[derive(Debug)]
pub(crate) struct Admin {
    pub client: Client,
}

impl Admin {
    pub(crate) fn new(mut client: Client) -> Result<Self, BenchError> {
        client.open_channel(CHANNEL)?;
        Ok(Self { client })
    }

    pub(crate) fn call(&mut self, method: impl Into<Method>) -> Result<Method, BenchError> {
        let result = self.client.call(CHANNEL, &method.into());
        if matches!(result, Err(BenchError::ChannelClosed { .. })) {
            self.client.open_channel(CHANNEL)?;
        }
        result
    }

    /// Returns how many messages of a queue are ready, `None` if it does not exist.
    pub(crate) fn ready_messages(&mut self, name: &str) -> Result<Option<u32>, BenchError> {
        let queue = short(name, "queue")?;
        match self.call(queue::Declare { queue, passive: true, ..Default::default() }) {
            Ok(Method::QueueDeclareOk(found)) => Ok(Some(found.message_count)),
            Ok(_) => Err(unexpected("queue.declare")),
            Err(BenchError::ChannelClosed { code: NOT_FOUND, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes fresh queues and the exchange of `plan`. A queue that is there already is replaced
    /// if it is the benchmark's own, and otherwise an error.
    pub(crate) fn declare(&mut self, plan: &Plan) -> Result<(), BenchError> {
        if let Some((kind, name)) = &plan.exchange {
            let declare = exchange::Declare {
                exchange: short(name, "exchange")?,
                kind: ShortStr::from_static(kind.name()),
                durable: plan.durable,
                ..Default::default()
            };
            self.call(declare)?;
        }
        for name in &plan.queues {
            if self.ready_messages(name)?.is_some() {
                if !Plan::owns(name) {
                    let queue = name.clone();
                    return Err(BenchError::QueueExists { queue, prefix: DEFAULT_QUEUE });
                }
                self.delete_queue(name)?;
            }
            self.call(queue::Declare {
                queue: short(name, "queue")?,
                durable: plan.durable,
                arguments: plan.arguments.clone(),
                ..Default::default()
            })?;
            if let Some((_, exchange)) = &plan.exchange {
                self.bind(name, exchange, name)?;
            }
        }
        Ok(())
    }

    pub(crate) fn bind(
        &mut self,
        queue: &str,
        exchange: &str,
        key: &str,
    ) -> Result<(), BenchError> {
        let bind = queue::Bind {
            queue: short(queue, "queue")?,
            exchange: short(exchange, "exchange")?,
            routing_key: short(key, "routing key")?,
            ..Default::default()
        };
        self.call(bind).map(|_| ())
    }

    fn delete_queue(&mut self, name: &str) -> Result<(), BenchError> {
        let queue = short(name, "queue")?;
        self.call(queue::Delete { queue, ..Default::default() }).map(|_| ())
    }

    pub(crate) fn close(self) -> Result<(), BenchError> {
        self.client.close()
    }

    /// Removes what [`Admin::declare`] made.
    pub(crate) fn delete(&mut self, plan: &Plan) -> Result<(), BenchError> {
        for name in &plan.queues {
            self.delete_queue(name)?;
        }
        if let Some((_, name)) = plan.exchange.as_ref().filter(|(_, name)| Plan::owns(name)) {
            let exchange = short(name, "exchange")?;
            self.call(exchange::Delete { exchange, ..Default::default() })?;
        }
        Ok(())
    }
}

/// Connects the producers of `plan`; they pause until they are given their pace. `messages` is the
/// number that all publish together, `None` for no end.
pub(crate) fn connect_producers(
    uri: &BrokerUri,
    plan: &Plan,
    messages: Option<u64>,
) -> Result<Vec<Peer>, BenchError> {
    let connect = |index: u32| {
        let mut client = Client::connect(uri)?;
        client.open_channel(CHANNEL)?;
        if plan.confirm > 0 {
            select_confirms(&mut client)?;
        }
        let exchange = plan.exchange.as_ref().map_or("", |(_, name)| name.as_str());
        let template = |key: usize| {
            let message = Message {
                channel: CHANNEL,
                exchange,
                routing_key: &plan.keys[key],
                size: plan.size,
                persistent: plan.persistent,
                mandatory: plan.mandatory,
                stamped: true,
            };
            Template::new(&message, client.frame_max())
        };
        let templates = plan.keys_of(index).into_iter().map(template).collect();
        let share = messages.map_or(u64::MAX, |messages| plan.messages_of(index, messages));
        let mut publisher = Publisher::new(templates, Pace::Paused, plan.confirm, share);
        publisher.set_batch(plan.batch);
        Ok(Peer::new(client.into_link()?, Some(publisher), Incoming::Nothing))
    };
    (0..plan.producers).map(connect).collect()
}

/// Connects the consumers of `plan`; messages flow as soon as there are any.
pub(crate) fn connect_consumers(uri: &BrokerUri, plan: &Plan) -> Result<Vec<Peer>, BenchError> {
    let connect = |index: u32| {
        let mut client = Client::connect(uri)?;
        client.open_channel(CHANNEL)?;
        if plan.prefetch > 0 {
            let qos = basic::Qos { prefetch_count: plan.prefetch, ..Default::default() };
            client.call(CHANNEL, &qos.into())?;
        }
        for queue in plan.queues_of(index) {
            consume(&mut client, &plan.queues[queue], plan.acknowledge)?;
        }
        let subscriber = Subscriber::new(CHANNEL, plan.acknowledge);
        Ok(Peer::new(client.into_link()?, None, Incoming::Messages(subscriber)))
    };
    (0..plan.consumers).map(connect).collect()
}

pub(crate) fn select_confirms(client: &mut Client) -> Result<(), BenchError> {
    match client.call(CHANNEL, &confirm::Select::default().into())? {
        Method::ConfirmSelectOk(_) => Ok(()),
        _ => Err(unexpected("confirm.select")),
    }
}

/// Starts a consumer without waiting for the answer: deliveries may overtake the answers to
/// further consumers of the channel, and only the link's parser can take them.
pub(crate) fn consume(
    client: &mut Client,
    queue: &str,
    acknowledge: Acknowledge,
) -> Result<(), BenchError> {
    let consume = basic::Consume {
        queue: short(queue, "queue")?,
        consumer_tag: short(queue, "consumer tag")?,
        no_ack: acknowledge == Acknowledge::Automatic,
        no_wait: true,
        ..Default::default()
    };
    client.send(CHANNEL, &consume.into())
}

//! A broker just large enough for the load generator: queues in memory, direct and fanout
//! exchanges, confirms, no limits. One thread, so that its order of events is the clients'.

use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use bytes::Bytes;
use quelea_amqp_codec::method::{Method, basic, channel, confirm, exchange, queue};
use quelea_amqp_codec::{ConnectionConfig, Event, ReplyCode, ServerConnection, ShortStr};
use quelea_model::{Message, Timestamp};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A running broker; stops with the value.
pub(crate) struct SmallBroker {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What it does to the first message published to the queue `cursed`.
const CURSED: &str = "cursed";

/// What it does to the fifth message of those that it looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fault {
    #[default]
    None,
    /// It is dropped.
    Lose,
    /// It is delivered twice.
    Double,
    /// It is delivered behind the sixth.
    Swap,
    /// Its last byte is another, or it has one.
    Damage,
    /// The channel is closed.
    Refuse,
}

/// Which messages that is counted among.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Among {
    /// Those that come by an exchange and have [`BYTES_MIN`] or more.
    #[default]
    Messages,
    /// Those that go to a queue by its name, are as large, or empty as the last reply of a round is.
    Replies,
}

const BYTES_MIN: usize = 64;

impl Among {
    fn has(self, exchange: &str, body: &Bytes) -> bool {
        match self {
            Self::Messages => !exchange.is_empty() && body.len() >= BYTES_MIN,
            Self::Replies => exchange.is_empty() && (body.is_empty() || body.len() >= BYTES_MIN),
        }
    }
}

impl SmallBroker {
    pub(crate) fn start() -> Self {
        Self::start_with(Fault::None, Among::Messages)
    }

    pub(crate) fn start_with(fault: Fault, among: Among) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let broker = Broker { fault, among, ..Broker::default() };
            serve(&listener, &stopped, broker);
        });
        Self { address, stop, thread: Some(thread) }
    }

    pub(crate) fn uri(&self) -> String {
        format!("amqp://{}", self.address)
    }
}

impl Drop for SmallBroker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

struct Client {
    stream: TcpStream,
    amqp: ServerConnection,
    confirms: bool,
    published: u64,
    delivered: u64,
    gone: bool,
}

#[derive(Default)]
struct Broker {
    fault: Fault,
    among: Among,
    /// Such messages.
    count: u64,
    /// What is delivered behind the next.
    held: Option<(Bytes, Bytes)>,
    queues: HashMap<String, Queue>,
    /// Exchange to (queue, key); key `None` in a fanout.
    bindings: HashMap<String, Vec<(String, Option<String>)>>,
    fanouts: Vec<String>,
}

#[derive(Default)]
struct Queue {
    ready: VecDeque<(Bytes, Bytes)>,
    /// Connection, channel, tag; messages go round.
    consumers: VecDeque<(usize, u16, ShortStr)>,
}

fn serve(listener: &TcpListener, stop: &AtomicBool, mut broker: Broker) {
    let config = Arc::new(ConnectionConfig::default());
    let mut clients: Vec<Client> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        while let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true).unwrap();
            let amqp = ServerConnection::new(Arc::clone(&config), Timestamp::ZERO);
            clients.push(Client {
                stream,
                amqp,
                confirms: false,
                published: 0,
                delivered: 0,
                gone: false,
            });
        }
        for index in 0..clients.len() {
            read(&mut clients[index]);
            while let Some(event) = clients[index].amqp.poll(Timestamp::ZERO) {
                broker.handle(index, event, &mut clients);
            }
        }
        clients.iter_mut().for_each(write);
        wait(listener, &clients);
    }
}

fn wait(listener: &TcpListener, clients: &[Client]) {
    let mut sockets = vec![PollFd::new(listener, PollFlags::IN)];
    let present = clients.iter().filter(|client| !client.gone);
    sockets.extend(present.map(|client| PollFd::new(&client.stream, PollFlags::IN)));
    poll(&mut sockets, Some(&Timespec { tv_sec: 0, tv_nsec: 5_000_000 })).unwrap();
}

fn read(client: &mut Client) {
    let mut chunk = [0; 65_536];
    while !client.gone {
        match client.stream.read(&mut chunk) {
            Ok(0) => client.gone = true,
            Ok(count) => {
                client.amqp.receive(Bytes::copy_from_slice(&chunk[..count]), Timestamp::ZERO);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(_) => client.gone = true,
        }
    }
}

fn write(client: &mut Client) {
    while !client.gone && !client.amqp.output().is_empty() {
        let bytes = client.amqp.output().to_bytes();
        match client.stream.write(&bytes) {
            Ok(count) => client.amqp.output().advance(count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(_) => client.gone = true,
        }
    }
    client.gone |= client.amqp.is_finished();
}

impl Broker {
    fn handle(&mut self, from: usize, event: Event, clients: &mut [Client]) {
        let amqp = &mut clients[from].amqp;
        match event {
            Event::Authenticate { .. } => amqp.authenticated(Ok(())),
            Event::Open { .. } => amqp.opened(Ok(())),
            Event::ChannelClosed(channel) => amqp.channel_close_ok(channel),
            Event::Closed => {
                for queue in self.queues.values_mut() {
                    queue.consumers.retain(|(client, ..)| *client != from);
                }
                amqp.connection_close_ok();
            }
            Event::Method { channel, method } => self.method(from, channel, method, clients),
            Event::Publish { channel, publish, properties, body } => {
                self.publish(from, channel, &publish, &properties, &body, clients);
            }
            Event::ChannelOpen(_) | Event::UpdateSecret { .. } => {}
        }
    }

    fn method(&mut self, from: usize, channel: u16, method: Method, clients: &mut [Client]) {
        let answer: Method = match method {
            Method::QueueDeclare(declare) => {
                let name = declare.queue.to_string();
                if declare.passive && !self.queues.contains_key(&name) {
                    let text = format!("no queue '{name}'");
                    clients[from].amqp.close_channel(channel, ReplyCode::NotFound, &text, 50, 10);
                    return;
                }
                let queue = self.queues.entry(name).or_default();
                let message_count = queue.ready.len() as u32;
                queue::DeclareOk { queue: declare.queue, message_count, consumer_count: 0 }.into()
            }
            Method::QueueDelete(delete) => {
                self.queues.remove(delete.queue.as_str());
                queue::DeleteOk::default().into()
            }
            Method::ExchangeDeclare(declare) => {
                if declare.kind == "fanout" {
                    self.fanouts.push(declare.exchange.to_string());
                }
                exchange::DeclareOk::default().into()
            }
            Method::ExchangeDelete(delete) => {
                self.bindings.remove(delete.exchange.as_str());
                self.fanouts.retain(|name| name != delete.exchange.as_str());
                exchange::DeleteOk::default().into()
            }
            Method::QueueBind(bind) => {
                let exchange = bind.exchange.to_string();
                let is_fanout = self.fanouts.contains(&exchange);
                let key = (!is_fanout).then(|| bind.routing_key.to_string());
                self.bindings.entry(exchange).or_default().push((bind.queue.to_string(), key));
                queue::BindOk::default().into()
            }
            Method::ConfirmSelect(_) => {
                clients[from].confirms = true;
                confirm::SelectOk::default().into()
            }
            Method::BasicQos(_) => basic::QosOk::default().into(),
            Method::BasicConsume(consume) => {
                assert!(consume.no_wait, "the generator does not wait for consume-ok");
                let name = consume.queue.to_string();
                let queue = self.queues.entry(name.clone()).or_default();
                queue.consumers.push_back((from, channel, consume.consumer_tag));
                self.dispatch(&name, clients);
                return;
            }
            Method::BasicAck(_) | Method::ChannelFlow(channel::Flow { .. }) => return,
            other => panic!("the generator should not send {}", other.name()),
        };
        clients[from].amqp.send(channel, &answer);
    }

    fn publish(
        &mut self,
        from: usize,
        channel: u16,
        publish: &basic::Publish,
        properties: &Bytes,
        body: &Bytes,
        clients: &mut [Client],
    ) {
        if publish.routing_key == CURSED {
            let code = ReplyCode::PreconditionFailed;
            clients[from].amqp.close_channel(channel, code, "cursed", 60, 40);
            return;
        }
        let mut messages = vec![(properties.clone(), body.clone())];
        if self.among.has(&publish.exchange, body) && !self.mistreat(&mut messages) {
            let code = ReplyCode::PreconditionFailed;
            clients[from].amqp.close_channel(channel, code, "enough", 60, 40);
            return;
        }
        for name in self.route(&publish.exchange, &publish.routing_key) {
            if let Some(queue) = self.queues.get_mut(&name) {
                queue.ready.extend(messages.iter().cloned());
            }
            self.dispatch(&name, clients);
        }
        let client = &mut clients[from];
        client.published += 1;
        if client.confirms {
            let ack = basic::Ack { delivery_tag: client.published, multiple: false };
            client.amqp.send(channel, &ack.into());
        }
    }

    /// Applies the fault to the fifth message. Returns false if the message is refused.
    fn mistreat(&mut self, messages: &mut Vec<(Bytes, Bytes)>) -> bool {
        self.count += 1;
        if self.count != 5 {
            messages.extend(self.held.take());
            return true;
        }
        match self.fault {
            Fault::None => {}
            Fault::Lose => messages.clear(),
            Fault::Double => messages.push(messages[0].clone()),
            Fault::Swap => self.held = messages.pop(),
            Fault::Damage => {
                let mut body = messages[0].1.to_vec();
                match body.last_mut() {
                    Some(last) => *last ^= 1,
                    None => body.push(1),
                }
                messages[0].1 = body.into();
            }
            Fault::Refuse => return false,
        }
        true
    }

    fn route(&self, exchange: &str, key: &str) -> Vec<String> {
        if exchange.is_empty() {
            return vec![key.to_owned()];
        }
        let bindings = self.bindings.get(exchange).into_iter().flatten();
        let matching = bindings.filter(|(_, bound)| bound.as_ref().is_none_or(|b| b == key));
        matching.map(|(queue, _)| queue.clone()).collect()
    }

    fn dispatch(&mut self, name: &str, clients: &mut [Client]) {
        let Some(queue) = self.queues.get_mut(name) else { return };
        while let (Some((to, channel, tag)), false) =
            (queue.consumers.front().cloned(), queue.ready.is_empty())
        {
            queue.consumers.rotate_left(1);
            let (properties, body) = queue.ready.pop_front().unwrap();
            clients[to].delivered += 1;
            let delivery_tag = clients[to].delivered;
            let message = Message::new("", "", &properties, body);
            clients[to].amqp.deliver(channel, &tag, delivery_tag, false, &message);
        }
    }
}

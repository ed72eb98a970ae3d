//! The client library at real relays, with a directory that only says where to go.

use std::future::Future;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::BytesMut;
use quelea_elastic_client::{Event, GapCause, Listener, MessageSeq, Options, Producer};
use quelea_elastic_proto::frame::{Acknowledge, Frame, RelayAddress, SlowPolicy, Welcome};
use quelea_elastic_proto::limits::VERSION;
use quelea_elastic_proto::{ClientId, Epoch, Fence, RelayId};

use crate::client::Client;
use crate::relay::{QUEUE, TestRelay};

/// What takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

fn run<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let bounded = async { tokio::time::timeout(PATIENCE, test).await.expect("it is quicker") };
    runtime.expect("a runtime").block_on(bounded)
}

/// Tells every listener of all relays, and its producer where to send.
struct Signpost {
    address: String,
    relays: Vec<RelayAddress>,
    producer: Arc<Mutex<Option<(TcpStream, ClientId, Epoch)>>>,
    /// Where it was sent last.
    last: AtomicUsize,
}

impl Signpost {
    fn start(relays: &[&TestRelay]) -> Arc<Self> {
        let directory = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let relays = relays.iter().zip(1..).map(|(relay, number)| RelayAddress {
            relay: RelayId(number),
            address: relay.address.to_string(),
        });
        let signpost = Arc::new(Self {
            address: directory.local_addr().expect("it is bound").to_string(),
            relays: relays.collect(),
            producer: Arc::default(),
            last: AtomicUsize::new(0),
        });
        let serving = Arc::clone(&signpost);
        std::thread::spawn(move || {
            for stream in directory.incoming().map_while(Result::ok) {
                let signpost = Arc::clone(&serving);
                std::thread::spawn(move || signpost.serve(stream));
            }
        });
        signpost
    }

    fn serve(&self, stream: TcpStream) {
        let writer = stream.try_clone().expect("a descriptor");
        let mut client = Client::over(stream);
        while let Some(frame) = client.try_next() {
            match frame {
                Frame::Hello(_) => {
                    client.send(&Frame::Welcome(Welcome { version: VERSION, heartbeat_ms: 5_000 }));
                }
                Frame::Ping(number) => client.send(&Frame::Pong(number)),
                Frame::OpenListener(open) => client.send(&Frame::ListenAt {
                    queue: open.queue,
                    listener: open.listener,
                    fence: Fence(1),
                    generation: 1,
                    relays: self.relays.clone(),
                }),
                Frame::OpenProducer(open) if open.current.is_none() => {
                    let known = writer.try_clone().expect("a descriptor");
                    let mut producer = self.producer.lock().expect("no test panics with it");
                    // Who asks again has lost its relay: it goes to the last one.
                    let again = producer.as_ref().map(|(_, _, epoch)| *epoch);
                    *producer = Some((known, open.producer, again.unwrap_or(Epoch(0))));
                    drop(producer);
                    self.send_producer(again.map_or(0, |_| self.relays.len() - 1));
                }
                // Too many moves at once: again, as a directory would some time later.
                Frame::ProduceFailed { .. } => {
                    self.send_producer(self.last.load(Relaxed));
                }
                _ => {} // What clients report.
            }
        }
    }

    /// Has the producer go to the relay at this place.
    fn send_producer(&self, to: usize) {
        self.last.store(to, Relaxed);
        let mut known = self.producer.lock().expect("no test panics with it");
        let (stream, producer, epoch) = known.as_mut().expect("it has asked");
        epoch.0 += 1;
        let (queue, relay) = (QUEUE.to_owned(), self.relays[to].clone());
        let (producer, epoch) = (*producer, *epoch);
        let mut bytes = BytesMut::new();
        Frame::ProduceAt { queue, producer, fence: Fence(1), epoch, relay }
            .encode(&mut bytes)
            .expect("within limits");
        stream.write_all(&bytes).expect("the producer is connected");
    }

    fn client(&self) -> quelea_elastic_client::Client {
        let options = Options::default();
        quelea_elastic_client::Client::connect([self.address.clone()], options).expect("an address")
    }
}

/// The topic of the last message.
const LAST: &str = "topic, the last";

/// Takes what a listener is given, until the last message. Returns the numbers, and the gaps that
/// were reported to it.
async fn heard(listener: &mut Listener) -> (Vec<u64>, Vec<(u64, u64, GapCause)>) {
    let (mut came, mut gaps) = (Vec::new(), Vec::new());
    loop {
        match listener.next().await.expect("it goes on") {
            Event::Message(message) => {
                assert_eq!(message.body(), message.sequence.0.to_le_bytes());
                came.push(message.sequence.0);
                if message.topic() == LAST.as_bytes() {
                    return (came, gaps);
                }
            }
            Event::Gap(gap) => gaps.push((gap.from.0, gap.to.0, gap.cause)),
            Event::Notice { text, .. } => panic!("{text}"),
        }
    }
}

async fn publish(producer: &Producer, topic: &str) {
    let number = producer.unacknowledged().end;
    assert_eq!(producer.publish(topic, number.0.to_le_bytes()).await, Ok(number));
}

fn moves_are_exact_at(level: Acknowledge) {
    const MOVES: u64 = 50;
    // Moves lose nothing; a busy machine's slow listener would, by any other policy.
    let relay = || {
        TestRelay::with(|config| {
            config.settings.acknowledge = level;
            config.settings.slow = SlowPolicy::HoldProducers;
        })
    };
    let relays = [relay(), relay()];
    let signpost = Signpost::start(&[&relays[0], &relays[1]]);
    run(async {
        let client = signpost.client();
        let mut first = client.listener(QUEUE, [""]).await.expect("it listens");
        let mut second = client.listener(QUEUE, ["top"]).await.expect("it listens");
        let producer = client.producer(QUEUE).await.expect("it produces");
        let publishing = async {
            for round in 0..MOVES {
                signpost.send_producer(((round + 1) % 2) as usize);
                while producer.stats().moves <= round {
                    publish(&producer, "topic").await;
                }
            }
            publish(&producer, LAST).await;
            producer.acknowledged().await.expect("the relays acknowledge");
        };
        let ((), first, second) = tokio::join!(publishing, heard(&mut first), heard(&mut second));
        let published = producer.unacknowledged().end.0;
        for (came, gaps) in [first, second] {
            assert_eq!(gaps, []);
            let odd = came.iter().zip(0..).find(|(came, wanted)| **came != *wanted);
            assert_eq!(odd, None, "each once, and in order");
            assert_eq!(came.len() as u64, published);
        }
        assert_eq!(producer.stats().moves, MOVES);
        producer.close().await.expect("all is acknowledged");
    });
}

#[test]
fn moves_under_load_keep_every_message_once_and_in_order() {
    moves_are_exact_at(Acknowledge::Relayed);
}

#[test]
fn the_same_where_messages_are_acknowledged_when_they_are_delivered() {
    moves_are_exact_at(Acknowledge::Delivered);
}

#[test]
fn a_lost_relay_loses_nothing_at_the_level_delivered() {
    let level = Acknowledge::Delivered;
    let (first, second) = (TestRelay::acknowledging(level), TestRelay::acknowledging(level));
    let signpost = Signpost::start(&[&first, &second]);
    run(async {
        let client = signpost.client();
        let mut listener = client.listener(QUEUE, [""]).await.expect("it listens");
        let producer = client.producer(QUEUE).await.expect("it produces");
        let published = async {
            for _ in 0..5_000 {
                publish(&producer, "topic").await;
            }
            // Twice: it does not wait for its clients.
            first.stop();
            first.stop();
            for _ in 1..5_000 {
                publish(&producer, "topic").await;
            }
            publish(&producer, LAST).await;
            producer.acknowledged().await.expect("the other relay acknowledges");
        };
        let ((), (came, gaps)) = tokio::join!(published, heard(&mut listener));
        assert!(came.into_iter().eq(0..10_000), "each once, and in order");
        assert_eq!(gaps, []);
        assert_eq!(producer.relay(), Some(RelayId(2)));
        assert!(producer.stats().failovers > 0);
        assert_eq!(producer.unacknowledged(), MessageSeq(10_000)..MessageSeq(10_000));
    });
}

#[test]
fn a_message_of_many_reads_comes_whole() {
    let relay = TestRelay::start();
    let signpost = Signpost::start(&[&relay]);
    run(async {
        let client = signpost.client();
        let mut listener = client.listener(QUEUE, [""]).await.expect("it listens");
        let producer = client.producer(QUEUE).await.expect("it produces");
        let body = vec![7; 5 << 20];
        producer.publish("topic", &body).await.expect("it is taken");
        match listener.next().await.expect("it goes on") {
            Event::Message(message) => assert!(message.body() == body),
            other => panic!("{other:?}"),
        }
    });
}

//! `kill -9` at random moments under load: nothing confirmed is lost, and nothing comes back whose
//! acknowledgement was on the disk.
//!
//! `QUELEA_KILL_CYCLES` sets the number of cycles (200 for a soak), `QUELEA_KILL_SEED` replays one.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use quelea_amqp_codec::ShortStr;
use quelea_amqp_codec::method::{Method, exchange, queue};

use crate::broker::{Broker, DataDir, Starting};
use crate::client::{Client, Gone, PATIENCE, PERSISTENT};
use crate::ledger::{Id, Ledger, body, id};

/// Small, so that segments are filled, checkpointed and used again many times in one run.
const SETTINGS: [(&str, &str); 1] = [("log.segment_bytes", "1MiB")];

/// Published to alone; consumed.
const WORK: &str = "work";
/// Fed by one fan-out exchange; the first is consumed, the second keeps everything.
const FAN: [&str; 2] = ["fan-consumed", "fan-kept"];
/// Marks: once one is confirmed, so are all acknowledgements sent before it.
const MARKS: &str = "marks";

const WINDOW: usize = 200;
const CONFIRMS_BEFORE_KILL_MAX: u64 = 3_000;

#[test]
fn nothing_confirmed_is_lost_and_nothing_surely_acknowledged_comes_back() {
    let cycles = from_environment("QUELEA_KILL_CYCLES").unwrap_or(20);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let seed = from_environment("QUELEA_KILL_SEED").unwrap_or(now.as_nanos() as u64 | 1);
    println!("QUELEA_KILL_SEED={seed} QUELEA_KILL_CYCLES={cycles}");
    let mut random = fastrand::Rng::with_seed(seed);
    let dir = DataDir::new();
    let run = Arc::new(Run::default());
    declare(&Broker::start(&dir, &SETTINGS));
    for cycle in 0..cycles {
        // One in eight is killed while it starts.
        let patience =
            if random.u64(..8) == 0 { Duration::from_millis(random.u64(..40)) } else { PATIENCE };
        match Starting::spawn(&dir, &SETTINGS).ready_within(patience) {
            Ok(broker) => one_cycle(broker, &run, &mut random),
            Err(starting) => starting.kill_hard(),
        }
        println!("cycle {cycle}: {} confirmed so far", run.ledger.confirmed_count());
    }
    let broker = Broker::start(&dir, &SETTINGS);
    for queue in [WORK, FAN[0], FAN[1]] {
        run.ledger.settle(queue, &drain(broker.amqp, queue));
    }
    assert!(run.ledger.confirmed_count() > 0, "no cycle got anything confirmed");
}

/// What all clients of a run share.
#[derive(Default)]
struct Run {
    ledger: Ledger,
    next_id: AtomicU64,
    confirms: AtomicU64,
}

/// Load until a random number of confirms, then SIGKILL.
fn one_cycle(broker: Broker, run: &Arc<Run>, random: &mut fastrand::Rng) {
    run.confirms.store(0, Ordering::SeqCst);
    let target = random.u64(..CONFIRMS_BEFORE_KILL_MAX);
    let address = broker.amqp;
    let client = |f: fn(&Run, SocketAddr, u64) -> Result<(), Gone>, seed: u64| {
        let run = Arc::clone(run);
        thread::spawn(move || f(&run, address, seed))
    };
    let clients: Vec<JoinHandle<Result<(), Gone>>> = vec![
        client(|run, at, seed| publish(run, at, seed, &[WORK], ""), random.u64(..)),
        client(|run, at, seed| publish(run, at, seed, &FAN, "fan"), random.u64(..)),
        client(|run, at, _| consume(run, at, WORK), 0),
        client(|run, at, _| consume(run, at, FAN[0]), 0),
    ];
    let deadline = Instant::now() + PATIENCE;
    while run.confirms.load(Ordering::SeqCst) < target {
        assert!(Instant::now() < deadline, "no progress: {:?}", run.confirms);
        assert!(clients.iter().all(|client| !client.is_finished()), "a client ended by itself");
        thread::yield_now();
    }
    broker.kill_hard();
    for client in clients {
        // Every client ends because the broker is gone; a failed assertion is the other way.
        let ended = client.join().unwrap();
        assert!(matches!(ended, Err(Gone::Disconnected)), "{ended:?}");
    }
}

fn declare(broker: &Broker) {
    let mut client = Client::connect(broker.amqp);
    client.send(
        1,
        exchange::Declare {
            exchange: ShortStr::from("fan"),
            kind: ShortStr::from("fanout"),
            durable: true,
            ..exchange::Declare::default()
        },
    );
    client.expect(1, "exchange.declare-ok").unwrap();
    for name in [WORK, FAN[0], FAN[1], MARKS] {
        client.declare(name, true).unwrap();
    }
    for name in FAN {
        let (queue, exchange) = (ShortStr::from(name), ShortStr::from("fan"));
        client.send(1, queue::Bind { queue, exchange, ..queue::Bind::default() });
        client.expect(1, "queue.bind-ok").unwrap();
    }
}

/// Publishes with a window of confirms until the broker is gone.
fn publish(
    run: &Run,
    address: SocketAddr,
    seed: u64,
    queues: &[&'static str],
    exchange: &str,
) -> Result<(), Gone> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut client = Client::try_connect(address)?;
    client.confirm_select()?;
    let mut unconfirmed: VecDeque<Id> = VecDeque::new();
    let mut first_tag = 1;
    loop {
        while unconfirmed.len() < WINDOW {
            let id = run.next_id.fetch_add(1, Ordering::Relaxed);
            run.ledger.published(queues, id);
            unconfirmed.push_back(id);
            let len = if random.u64(..50) == 0 { 50_000 } else { random.u64(..1_000) as usize };
            client.publish_to(exchange, queues[0], PERSISTENT, body(id, len));
        }
        let ack = match client.next()?.method {
            Method::BasicAck(ack) => ack,
            other => panic!("a publisher got {other:?}"),
        };
        let count = if ack.multiple { (ack.delivery_tag - first_tag + 1) as usize } else { 1 };
        assert!(ack.multiple || ack.delivery_tag == first_tag, "confirms come in order");
        first_tag += count as u64;
        let confirmed: Vec<Id> = unconfirmed.drain(..count).collect();
        run.ledger.confirmed(queues, confirmed.iter().copied());
        run.confirms.fetch_add(count as u64, Ordering::SeqCst);
    }
}

/// Consumes and acknowledges until the broker is gone. After some acknowledgements it publishes a
/// mark; once the mark is confirmed, what was acknowledged before it is on the disk too.
fn consume(run: &Run, address: SocketAddr, queue: &'static str) -> Result<(), Gone> {
    const ACKS_PER_MARK: usize = 64;
    let mut client = Client::try_connect(address)?;
    client.confirm_select()?;
    client.qos(100)?;
    client.consume(queue, false)?;
    let mut since_mark = Vec::new();
    let mut marked: VecDeque<Vec<Id>> = VecDeque::new();
    let mut marks_confirmed = 0;
    loop {
        let incoming = client.next()?;
        match incoming.method {
            Method::BasicDeliver(deliver) => {
                let id = id(&incoming.body);
                run.ledger.delivered(queue, id);
                run.ledger.ack_sent(queue, id);
                client.ack(deliver.delivery_tag, false);
                since_mark.push(id);
                if since_mark.len() >= ACKS_PER_MARK {
                    client.publish(MARKS, PERSISTENT, &b"mark"[..]);
                    marked.push_back(std::mem::take(&mut since_mark));
                }
            }
            Method::BasicAck(ack) => {
                let confirmed = (ack.delivery_tag - marks_confirmed) as usize;
                marks_confirmed = ack.delivery_tag;
                for ids in marked.drain(..confirmed) {
                    run.ledger.acks_durable(queue, ids.into_iter());
                }
            }
            other => panic!("a consumer got {other:?}"),
        }
    }
}

/// Takes all that a queue holds.
fn drain(address: SocketAddr, queue: &'static str) -> Vec<Id> {
    let mut client = Client::connect(address);
    let (messages, _) = client.declare(queue, true).unwrap();
    client.consume(queue, true).unwrap();
    (0..messages).map(|_| id(&client.next().unwrap().body)).collect()
}

fn from_environment(name: &str) -> Option<u64> {
    Some(std::env::var(name).ok()?.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

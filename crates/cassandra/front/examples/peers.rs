//! What front-ends that hear each other do better than those that do not, over a Cassandra that runs:
//!
//!     cargo run --profile release-lite -p quelea-cassandra-front --example peers -- 127.0.0.1:9042 3 300 1000 shared
//!
//! with 3 front-ends, 300 messages, and 1,000 ms between two receptions of a receiver, of which each front-end has one; then
//! `classic` as in the paper, `silent` without datagrams, or `auto` without datagrams and with `OrderHint=auto`. First it says
//! how long a long poll takes to be answered at another front-end than the send.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quelea_cassandra_front::{CassandraSettings, Cluster, PeerSettings};
use quelea_cassandra_store::CassandraQueues;
use quelea_sqs_protocol::{
    Fault, NewMessage, NewQueue, QueueClass, QueueFacts, QueueRef, Queues as _, Receive,
};

/// Long polls that are measured.
const POLLS: usize = 100;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [nodes, front_ends, messages, pause_ms, mode] = arguments.as_slice() else {
        return Err(
            "nodes, front-ends, messages, a pause in ms, classic or shared or silent or auto"
                .into(),
        );
    };
    let pause = Duration::from_millis(pause_ms.parse()?);
    let mut clusters = Vec::new();
    for _ in 0..front_ends.parse()? {
        clusters.push(connect(nodes, mode).await?);
    }
    let stores: Vec<CassandraQueues> =
        clusters.iter().map(|cluster| cluster.queues().clone()).collect();
    while stores.iter().any(|one| one.peer_stats().front_ends < stores.len() as u64) {
        for one in &stores {
            one.beat().await?;
        }
    }
    if let [one, other, ..] = stores.as_slice() {
        long_polls(one, other).await?;
    }
    share_out(&stores, messages.parse()?, pause, if mode == "auto" { "auto" } else { "1" }).await?;
    for one in &stores {
        println!("{:?}\n{:?}", one.requests(), one.peer_stats());
    }
    for cluster in clusters {
        cluster.stop().await;
    }
    Ok(())
}

async fn connect(nodes: &str, mode: &str) -> Result<Cluster, Box<dyn std::error::Error>> {
    let nodes: Vec<String> = nodes.split(',').map(str::to_owned).collect();
    let settings = CassandraSettings {
        replication: nodes.len().min(3),
        nodes,
        keyspace: format!("quelea_peers_{}", std::process::id()),
        is_classic: mode == "classic",
        ..CassandraSettings::default()
    };
    let listen = if matches!(mode, "classic" | "shared") { "0.0.0.0:0" } else { "" };
    let peers = PeerSettings { listen: listen.to_owned(), ..PeerSettings::default() };
    Ok(Cluster::connect(settings, peers).await?)
}

async fn queue(
    store: &CassandraQueues,
    name: &str,
    hint: &str,
) -> Result<Arc<QueueFacts>, Box<dyn std::error::Error>> {
    let queue = QueueRef { account: "000000000000".into(), name: name.into() };
    let attributes = BTreeMap::from([("OrderHint".to_owned(), hint.to_owned())]);
    let new = NewQueue { class: QueueClass::Replicated, attributes, tags: BTreeMap::new() };
    store.create(&queue, new).await?;
    store.facts(&queue).await?.ok_or_else(|| "the queue was just made".into())
}

async fn send(store: &CassandraQueues, facts: &Arc<QueueFacts>) -> Result<String, Fault> {
    let message =
        NewMessage { body: "x".into(), sender_id: "peers".into(), ..NewMessage::default() };
    let outcome = store.send(facts, vec![message]).await?.into_iter().next();
    outcome.ok_or(Fault::NoSuchQueue)?.map(|sent| sent.message_id)
}

fn receive(wait_ms: u64) -> Receive {
    Receive { max: 1, visibility_timeout_ms: 600_000, wait_ms, attempt_id: None }
}

async fn long_polls(
    one: &CassandraQueues,
    other: &CassandraQueues,
) -> Result<(), Box<dyn std::error::Error>> {
    let facts = queue(one, "polled", "1").await?;
    let mut took_ms = Vec::new();
    for _ in 0..POLLS {
        let polling = async {
            let received = other.receive(&facts, receive(20_000)).await?;
            Ok::<_, Fault>((received, Instant::now()))
        };
        let sending = async {
            // Long enough for the poll to be at its longest pauses.
            tokio::time::sleep(Duration::from_millis(1_000)).await;
            send(one, &facts).await?;
            Ok::<_, Fault>(Instant::now())
        };
        let (polled, sent) = tokio::join!(polling, sending);
        let ((received, answered_at), sent_at) = (polled?, sent?);
        took_ms.push(answered_at.saturating_duration_since(sent_at).as_secs_f64() * 1e3);
        other.delete(&facts, received.into_iter().map(|one| one.delivery).collect()).await?;
    }
    took_ms.sort_by(f64::total_cmp);
    println!(
        "a long poll is answered after the confirmation of a send at another front-end: p50 {:.1} ms, p99 {:.1} ms, at most {:.1} ms",
        took_ms[POLLS / 2],
        took_ms[POLLS * 99 / 100 - 1],
        took_ms[POLLS - 1],
    );
    Ok(())
}

/// All is sent, then a receiver at each front-end takes one message after the other.
async fn share_out(
    stores: &[CassandraQueues],
    messages: usize,
    pause: Duration,
    hint: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    let facts = queue(&stores[0], "shared", hint).await?;
    let mut number_of = HashMap::new();
    for number in 0..messages {
        number_of.insert(send(&stores[0], &facts).await?, number);
    }
    let receivers = stores.iter().map(|store| async {
        let mut received = Vec::new();
        // Not all at once.
        tokio::time::sleep(pause.mul_f64(fastrand::f64())).await;
        loop {
            let one = store.receive(&facts, receive(2_000)).await?;
            let at = Instant::now();
            let Some(one) = one.into_iter().next() else { return Ok::<_, Fault>(received) };
            received.push((at, one.message_id));
            store.delete(&facts, vec![one.delivery]).await?;
            tokio::time::sleep(pause).await;
        }
    });
    let mut received = Vec::new();
    for of_one in futures_util::future::join_all(receivers).await {
        received.extend(of_one?);
    }
    received.sort_unstable();
    let all = received.len();
    let mut seen = std::collections::HashSet::new();
    let numbers: Vec<usize> = received
        .into_iter()
        .filter(|(_, id)| seen.insert(id.clone()))
        .map(|(_, id)| number_of[&id])
        .collect();
    println!(
        "{} of {messages} received, {:.2} % duplicates, {:.2} % out of order over all receivers",
        numbers.len(),
        100.0 * (all - numbers.len()) as f64 / messages as f64,
        100.0 * (numbers.len() - longest_increasing(&numbers)) as f64 / messages as f64,
    );
    Ok(())
}

fn longest_increasing(sequence: &[usize]) -> usize {
    let mut ends: Vec<usize> = Vec::new();
    for one in sequence {
        let place = ends.partition_point(|end| end < one);
        if place == ends.len() {
            ends.push(*one);
        } else {
            ends[place] = *one;
        }
    }
    ends.len()
}

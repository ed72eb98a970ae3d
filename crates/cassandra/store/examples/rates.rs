//! How many messages a second one front-end sends, receives and deletes:
//!
//!     cargo run --profile release-lite -p quelea-cassandra-store --example rates -- 127.0.0.1:9042 64 1 1 20
//!
//! with 64 clients, 1 queue, 1 message a call, 20 calls of each kind by each client. With as many queues as clients nothing
//! is shared: the difference to one queue is what gathering brings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use quelea_cassandra_store::{CassandraQueues, CassandraSettings};
use quelea_sqs_protocol::{
    Fault, NewMessage, NewQueue, QueueClass, QueueFacts, QueueRef, Queues, Receive,
};

const BODY: [u8; 2_048] = [b'x'; 2_048];

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [nodes, clients, queues, batch, calls] = arguments.as_slice() else {
        return Err("nodes, clients, queues, messages a call, calls a client".into());
    };
    let (clients, queues) = (clients.parse::<usize>()?, queues.parse::<usize>()?.max(1));
    let (batch, calls): (usize, usize) = (batch.parse()?, calls.parse()?);
    let nodes: Vec<String> = nodes.split(',').map(str::to_owned).collect();
    let settings = CassandraSettings {
        replication: nodes.len().min(3),
        nodes,
        keyspace: "quelea_rates".to_owned(),
        request_timeout_ms: 20_000,
        ..CassandraSettings::default()
    };
    let store = CassandraQueues::connect(&settings).await?;
    let mut facts = Vec::with_capacity(queues);
    for number in 0..queues {
        facts.push(queue(&store, number).await?);
    }
    // Prepared connections, compiled code: the first calls are not measured.
    join_all((0..clients).map(|client| live(&store, &facts[client % queues], 1, batch))).await;
    let (before, began) = (store.requests().messages, Instant::now());
    let sent =
        join_all((0..clients).map(|client| send(&store, &facts[client % queues], calls, batch)))
            .await;
    let sending_s = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let taken =
        join_all((0..clients).map(|client| take(&store, &facts[client % queues], calls, batch)))
            .await;
    let taking_s = began.elapsed().as_secs_f64();
    let total =
        |counts: Vec<Result<usize, Fault>>| counts.into_iter().sum::<Result<usize, Fault>>();
    let (sent, taken) = (total(sent)?, total(taken)?);
    let requests = (store.requests().messages - before) as f64 / sent as f64;
    println!(
        "{clients} clients, {queues} queues, {batch} a call: {:.0} sent/s, {:.0} received and deleted/s, \
         {requests:.2} requests a message, {taken} of {sent} taken",
        sent as f64 / sending_s,
        taken as f64 / taking_s,
    );
    Ok(())
}

async fn queue(
    store: &CassandraQueues,
    number: usize,
) -> Result<Arc<QueueFacts>, Box<dyn std::error::Error>> {
    let name = format!("rates-{}-{number}", std::process::id());
    let queue = QueueRef { account: "000000000000".into(), name: name.into() };
    let new = NewQueue {
        class: QueueClass::Replicated,
        attributes: BTreeMap::new(),
        tags: BTreeMap::new(),
    };
    store.create(&queue, new).await?;
    store.facts(&queue).await?.ok_or_else(|| "the queue was just made".into())
}

async fn live(
    store: &CassandraQueues,
    facts: &Arc<QueueFacts>,
    calls: usize,
    batch: usize,
) -> Result<usize, Fault> {
    send(store, facts, calls, batch).await?;
    take(store, facts, calls, batch).await
}

async fn send(
    store: &CassandraQueues,
    facts: &Arc<QueueFacts>,
    calls: usize,
    batch: usize,
) -> Result<usize, Fault> {
    let message = || NewMessage {
        body: BODY.to_vec().into(),
        sender_id: "rates".into(),
        ..NewMessage::default()
    };
    for _ in 0..calls {
        for outcome in store.send(facts, (0..batch).map(|_| message()).collect()).await? {
            outcome?;
        }
    }
    Ok(calls * batch)
}

async fn take(
    store: &CassandraQueues,
    facts: &Arc<QueueFacts>,
    calls: usize,
    batch: usize,
) -> Result<usize, Fault> {
    let mut taken = 0;
    while taken < calls * batch {
        let receive = Receive {
            max: batch,
            visibility_timeout_ms: 600_000,
            wait_ms: 1_000,
            attempt_id: None,
        };
        let received = store.receive(facts, receive).await?;
        if received.is_empty() {
            break;
        }
        taken += received.len();
        store.delete(facts, received.into_iter().map(|one| one.delivery).collect()).await?;
    }
    Ok(taken)
}

//! Calls from other threads.

use crate::client::{Client, PERSISTENT};
use crate::server::{Server, TestDir, block_on};

#[test]
fn a_call_runs_on_the_core_and_sees_what_clients_did() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let mut client = Client::connect(server.address);
    client.declare("orders", true).unwrap();
    client.confirm_select().unwrap();
    client.publish("orders", PERSISTENT, &b"x"[..]);
    client.until_confirmed(1).unwrap();
    let queue = server.call(|core| core.broker.queue("/", "orders")).unwrap();
    assert_eq!(queue.messages_ready, 1);
    let connections = server.call(|core| core.broker.connections());
    assert_eq!(connections.len(), 1);
    assert_eq!(connections[0].user, "guest");
    let counters = server.call(|core| core.counters());
    assert_eq!((counters.connections, counters.accepted), (1, 1));
    assert!(counters.bytes_received > 0 && counters.bytes_sent > 0);
}

#[test]
fn each_connection_counts_what_goes_through_its_own_socket() {
    const BODY_BYTES: usize = 100_000;
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let _idle = Client::connect(server.address);
    let mut busy = Client::connect(server.address);
    busy.declare("orders", true).unwrap();
    busy.confirm_select().unwrap();
    busy.publish("orders", PERSISTENT, vec![0; BODY_BYTES]);
    busy.until_confirmed(1).unwrap();
    let (mut seen, counters) = server.call(|core| {
        let connections = core.broker.connections();
        let seen: Vec<_> = connections.iter().map(|one| core.traffic(one.id)).collect();
        (seen, core.counters())
    });
    seen.sort_by_key(|traffic| traffic.bytes_received);
    let [idle, busy] = seen[..] else { panic!("{seen:?}") };
    assert!(busy.bytes_received > BODY_BYTES as u64 && busy.bytes_sent < BODY_BYTES as u64);
    assert!(idle.bytes_received < BODY_BYTES as u64 && idle.reads > 0 && idle.writes > 0);
    assert_eq!(idle.bytes_received + busy.bytes_received, counters.bytes_received);
    assert_eq!(idle.bytes_sent + busy.bytes_sent, counters.bytes_sent);
}

#[test]
fn many_threads_may_call_at_once() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let handle = server.handle().clone();
            std::thread::spawn(move || {
                for _ in 0..500 {
                    block_on(handle.call(|core| core.now())).unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

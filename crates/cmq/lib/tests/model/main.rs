//! Whoever waits reads the socket, sends, and hands both over: here are the library's own files on
//! shuttle's threads and locks, which run in the orders that a seeded generator chooses, over a network
//! and a clock in memory. A lost wake-up shows as a deadlock. What is replaced are [`sync`], [`clock`]
//! and [`net`]; the kernel's own side of an interrupt is not modelled.

#![allow(
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "a test; and the library's files as they are, whose offer is not all used here"
)]

#[path = "../../src/background.rs"]
mod background;
#[path = "../../src/call_frame.rs"]
mod call_frame;
mod clock;
#[path = "../../src/dest.rs"]
mod dest;
#[path = "../../src/driver.rs"]
mod driver;
#[path = "../../src/endpoint.rs"]
mod endpoint;
mod handover;
#[path = "../../src/leadership.rs"]
mod leadership;
#[path = "../../src/message.rs"]
mod message;
#[path = "../../src/multicast.rs"]
mod multicast;
mod net;
#[path = "../../src/outcome.rs"]
mod outcome;
#[path = "../../src/peer.rs"]
mod peer;
#[path = "../../src/push.rs"]
mod push;
#[path = "../../src/queue.rs"]
mod queue;
#[path = "../../src/replies.rs"]
mod replies;
#[path = "../../src/ring.rs"]
mod ring;
#[path = "../../src/state.rs"]
mod state;
#[path = "../../src/stats.rs"]
mod stats;
mod sync;
#[path = "../../src/until.rs"]
mod until;
#[path = "../../src/wait.rs"]
mod wait;
#[path = "../../src/wait_future.rs"]
mod wait_future;
#[path = "../../src/waiter.rs"]
mod waiter;

use dest::Dest;
use endpoint::Endpoint;
use queue::Queue;

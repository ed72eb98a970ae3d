//! Request and response (paper, "Request - Response"): several requests are outstanding at once, each
//! gets its own answer; every fifth datagram is lost on the way, and what is not answered in time is
//! resent. The server remembers what it answered, and does nothing twice.
//!
//! `cargo run -p quelea-cmq --example request_response`

mod link;

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use link::Link;
use quelea_cmq::responder::ResponderOptions;
use quelea_cmq::{
    Caller, Config, DestinationOptions, Endpoint, Key, MailboxOptions, OnLoss, Responder,
};

const ORDERS: u32 = 50;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let server = Endpoint::bind("127.0.0.1:0", Config::default())?;
    let link = Link::to(server.local_addr(), |number| number % 5 == 4)?;
    let orders = server.queue(0, MailboxOptions::default())?;
    let responder = Arc::new(Responder::new(orders, ResponderOptions::default()));
    let booked = Arc::new(AtomicU32::new(0));
    let serving = {
        let (responder, booked) = (Arc::clone(&responder), Arc::clone(&booked));
        thread::spawn(move || {
            responder.serve(|order| {
                booked.fetch_add(1, SeqCst);
                [b"booked: ", &order.bytes[..]].concat()
            });
        })
    };

    let client = Endpoint::bind("127.0.0.1:0", Config::default())?;
    let caller = Caller::new(&client, Key::new(link.address(), 0), DestinationOptions::default())?;
    let mut outstanding = HashMap::new();
    for number in 0..ORDERS {
        let order = format!("order {number}");
        let again = OnLoss::Resend { times: 1_000 };
        let answer = caller.request(order.as_bytes(), Duration::from_millis(10), again)?;
        outstanding.insert(order, answer);
        // One datagram each, so that there is something to lose.
        caller.dest().flush();
    }
    println!("{} orders outstanding", caller.outstanding());
    for (order, answer) in outstanding {
        let answer = answer.wait()?;
        if answer[..] != *format!("booked: {order}").as_bytes() {
            return Err(format!("{order} got the answer of another").into());
        }
    }
    println!(
        "all answered, {} outstanding; {} datagrams were lost, {} requests came again, {} were booked",
        caller.outstanding(),
        link.lost(),
        responder.repeated(),
        booked.load(SeqCst)
    );
    responder.queue().close();
    serving.join().map_err(|_| "the server panicked")?;
    if booked.load(SeqCst) == ORDERS { Ok(()) } else { Err("an order was booked twice".into()) }
}

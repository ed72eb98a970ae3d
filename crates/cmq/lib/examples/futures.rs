//! Futures (paper, "Future type message passing"): a future is a queue that gets one message. If it is
//! empty when its value is needed, the message is taken for lost, and the policy says what is done:
//! send it again, replace it, or fail.
//!
//! `cargo run -p quelea-cmq --example futures`

mod link;

use std::error::Error;
use std::thread;
use std::time::Duration;

use link::Link;
use quelea_cmq::responder::ResponderOptions;
use quelea_cmq::{
    Caller, Config, DestinationOptions, Endpoint, Key, MailboxOptions, OnLoss, Responder,
};

/// Longer than a thread that works for others may be held up.
const AT_ONCE: Duration = Duration::from_millis(200);

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let server = Endpoint::bind("127.0.0.1:0", Config::default())?;
    let squares = server.queue(0, MailboxOptions::default())?;
    let serving = thread::spawn(move || {
        let responder = Responder::new(squares, ResponderOptions::default());
        responder.serve(|request| {
            let number = request.bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
            number.wrapping_mul(number).to_le_bytes().to_vec()
        });
    });
    let client = Endpoint::bind("127.0.0.1:0", Config::default())?;

    // Resend: half of what is sent gets lost.
    let link = Link::to(server.local_addr(), |number| number % 2 == 0)?;
    let caller = Caller::new(&client, Key::new(link.address(), 0), DestinationOptions::default())?;
    let square = caller.request(
        &12_u32.to_le_bytes(),
        Duration::from_millis(10),
        OnLoss::Resend { times: 1_000 },
    )?;
    println!("the future is empty at first: {:?}", square.try_take());
    let twelve = square.wait()?;
    println!("12² = {:?}, though {} datagrams were lost", u32_of(&twelve), link.lost());

    // Replace: what was asked for is not needed any more, something else is.
    let square = caller.request(
        &1_u32.to_le_bytes(),
        Duration::from_millis(10),
        OnLoss::Replace(Box::new(|lost| Some((lost + 100).to_le_bytes().to_vec()))),
    )?;
    let replaced = square.wait()?;
    println!("a square, of whichever number got through: {:?}", u32_of(&replaced));

    // Fail: nobody is there.
    let nobody = Endpoint::bind("127.0.0.1:0", Config::default())?;
    let caller =
        Caller::new(&client, Key::new(nobody.local_addr(), 0), DestinationOptions::default())?;
    let lost = caller.request(b"hello?", AT_ONCE, OnLoss::Fail)?.wait();
    println!("and of nobody: {lost:?}");

    drop(server);
    let closed = Endpoint::close(nobody, AT_ONCE);
    println!("closed: {closed:?}");
    drop(serving);
    let root = u32_of(&replaced).map_or(0, u32::isqrt);
    let as_hoped = u32_of(&twelve) == Some(144)
        && lost.is_err()
        && (root == 1 || root > 100)
        && u32_of(&replaced) == Some(root * root);
    if as_hoped { Ok(()) } else { Err("not the squares".into()) }
}

fn u32_of(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

//! What a hop costs: `cargo run --release -p quelea-cmq --example hop_cost`.
//!
//! Prints the round trip of a small message between two threads that sleep, beside that of a bare UDP
//! socket in the same run, and the time that pushing and popping one by one take.

use std::io;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use quelea_cmq::{Config, Dest, DestinationOptions, Endpoint, Key, MailboxOptions, Queue};

const ROUND_TRIPS: usize = 20_000;
const ROUNDS: usize = 5;
const MESSAGES: usize = 2_000_000;
const MESSAGE: [u8; 64] = [7; 64];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for round in 1..=ROUNDS {
        let bare = bare_round_trip()?;
        let cmq = round_trip()?;
        println!("{round}: round trip, p50: UDP {bare:.1?}, CMQ {cmq:.1?}");
    }
    for round in 1..=ROUNDS {
        println!("{round}: one by one: {:.1} ns to pop", one_by_one()?);
    }
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn bare_round_trip() -> io::Result<Duration> {
    let (here, there) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    here.connect(there.local_addr()?)?;
    there.connect(here.local_addr()?)?;
    let echo = thread::spawn(move || -> io::Result<()> {
        let mut buffer = [0; 2_048];
        for _ in 0..ROUND_TRIPS {
            let length = there.recv(&mut buffer)?;
            there.send(&buffer[..length])?;
        }
        Ok(())
    });
    let mut buffer = [0; 2_048];
    let mut times = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        let started = Instant::now();
        here.send(&MESSAGE)?;
        here.recv(&mut buffer)?;
        times.push(started.elapsed());
    }
    echo.join().expect("the echo does not panic")?;
    Ok(median(times))
}

/// Returns two sides, each a queue of an endpoint of its own and a handle to the queue of the other
/// one.
fn pair() -> Result<[(Queue, Dest); 2], Box<dyn std::error::Error>> {
    let (here, there) = (bind()?, bind()?);
    let sides = [(&here, &there), (&there, &here)].map(|(from, to)| {
        let queue = from.queue(1, MailboxOptions::default())?;
        let dest = from.dest(Key::new(to.local_addr(), 1), DestinationOptions::default())?;
        Ok::<_, Box<dyn std::error::Error>>((queue, dest))
    });
    let [here, there] = sides;
    Ok([here?, there?])
}

fn bind() -> io::Result<Endpoint> {
    Endpoint::bind("127.0.0.1:0", Config::default())
}

fn round_trip() -> Result<Duration, Box<dyn std::error::Error>> {
    let [(queue, dest), (there, back)] = pair()?;
    let echo = thread::spawn(move || {
        for _ in 0..ROUND_TRIPS {
            let Some(message) = there.pop() else { break };
            back.push(&message.bytes)?;
        }
        back.flush();
        Ok::<_, quelea_cmq::PushError>(())
    });
    let mut times = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        let started = Instant::now();
        dest.push(&MESSAGE)?;
        queue.pop().ok_or("the queue was closed")?;
        times.push(started.elapsed());
    }
    echo.join().expect("the echo does not panic")?;
    Ok(median(times))
}

/// Returns the nanoseconds per pop of messages that are here: what the kernel and the state machine
/// take to bring a train is a small part of it.
fn one_by_one() -> Result<f64, Box<dyn std::error::Error>> {
    let [(_, dest), (there, _)] = pair()?;
    let (mut popped, mut spent) = (0, Duration::ZERO);
    while popped < MESSAGES {
        for _ in 0..1_024 {
            dest.push(&MESSAGE)?;
        }
        dest.flush();
        let mut here = there.pop();
        let started = Instant::now();
        let before = popped;
        while here.is_some() {
            popped += 1;
            here = if popped - before < 1_024 { there.try_pop() } else { None };
        }
        spent += started.elapsed();
    }
    Ok(spent.as_nanos() as f64 / popped as f64)
}

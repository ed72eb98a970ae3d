//! A role's end of its conversation with the coordinator.

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt;

use super::error::SuiteError;
use super::protocol::{Order, Word, read_line, write_line};
use crate::clock::{now_ns, seconds_to_ns};
use crate::error::BenchError;

/// Orders that were not carried out yet: the coordinator waits for an answer before the next but one.
const ORDERS_MAX: usize = 16;
/// How often a coordinator is looked for that is not there yet.
const RETRY: Duration = Duration::from_millis(50);
/// Silence after which the other host is asked whether it is there, how often, and how many times in vain.
const KEEP_ALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_ALIVE_PROBES: u32 = 6;

pub(crate) struct Conversation {
    orders: Receiver<Order>,
    out: Box<dyn Write>,
}

impl Conversation {
    /// Opens a conversation over a connection to the coordinator's address, which may take so long
    /// to be there, or over standard input and output.
    pub(crate) fn open(coordinator: Option<&str>, timeout_s: f64) -> io::Result<Self> {
        match coordinator {
            Some(address) => {
                let stream = connect(address, timeout_s)?;
                stream.set_nodelay(true)?;
                keep_alive(&stream)?;
                Self::new(stream.try_clone()?, Box::new(stream))
            }
            None => Self::new(io::stdin(), Box::new(io::stdout())),
        }
    }

    fn new(input: impl Read + Send + 'static, out: Box<dyn Write>) -> io::Result<Self> {
        let (sender, orders) = sync_channel(ORDERS_MAX);
        let read = move || {
            let mut input = BufReader::new(input);
            // What is no order ends it as the coordinator's end does.
            while let Ok(Some(order)) = read_line(&mut input) {
                if sender.send(order).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("suite-orders".to_owned()).spawn(read)?;
        Ok(Self { orders, out })
    }

    pub(crate) fn say(&mut self, word: &Word) -> Result<(), BenchError> {
        write_line(&mut self.out, word).map_err(BenchError::Socket)
    }

    /// Waits for the next order, and returns it.
    ///
    /// # Errors
    /// [`SuiteError::TurnedAway`] if the coordinator does not take this role, [`SuiteError::CoordinatorEnded`] if it is gone.
    pub(crate) fn next(&self) -> Result<Order, SuiteError> {
        self.orders.recv().map_err(|_| SuiteError::CoordinatorEnded).and_then(unless_turned_away)
    }

    /// Waits for the next order, and returns it if it comes in time.
    ///
    /// # Errors
    /// As [`Conversation::next`].
    pub(crate) fn next_within(&self, time: Duration) -> Result<Option<Order>, SuiteError> {
        match self.orders.recv_timeout(time) {
            Ok(order) => unless_turned_away(order).map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(SuiteError::CoordinatorEnded),
        }
    }
}

fn unless_turned_away(order: Order) -> Result<Order, SuiteError> {
    match order {
        Order::TurnAway { why } => Err(SuiteError::TurnedAway { why }),
        order => Ok(order),
    }
}

/// Lets the system notice a host that is gone without a word, within some two minutes.
pub(super) fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEP_ALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEP_ALIVE_INTERVAL)?;
    Ok(sockopt::set_tcp_keepcnt(stream, KEEP_ALIVE_PROBES)?)
}

fn connect(address: &str, timeout_s: f64) -> io::Result<TcpStream> {
    let deadline = now_ns() + seconds_to_ns(timeout_s);
    loop {
        match TcpStream::connect(address) {
            Err(_) if now_ns() < deadline => thread::sleep(RETRY),
            connected => return connected,
        }
    }
}

//! The market-data feed: each new quote also leaves by ways that cost less than a queue for each who looks at it. The paper's
//! conclusion asks for a cheaper transport; here they stand side by side.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use quelea_cmq::multicast::Interface;
use quelea_cmq::{Config, Dest, DestinationOptions, Endpoint, Key, Mode};
use quelea_elastic_client::{Client, Options, Producer};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};

use crate::error::Error;
use crate::messages::Message;

/// The mailbox of CMQ that quotes go to.
pub const MAILBOX: u64 = 0;

/// The topic of an elastic queue that quotes have.
pub const TOPIC: &str = "quotes";

/// The end of the feed is said so often where a datagram may be lost.
const CLOSINGS: u32 = 5;

/// How long what was published may take to leave.
const CLOSE: Duration = Duration::from_secs(10);

/// How quotes reach those who look at them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Way {
    /// By a queue of the broker, as answers do.
    Amqp,
    /// By a relay of an elastic queue, which is called as --prefix says.
    Elastic,
    /// By datagrams of CMQ to a multicast group: no broker at all.
    Cmq,
}

impl Way {
    /// Returns its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Amqp => "amqp",
            Self::Elastic => "elastic",
            Self::Cmq => "cmq",
        }
    }
}

/// What came of the feed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ticks {
    /// By which way.
    pub way: String,
    /// Quotes that came, each once.
    pub received: u32,
    /// Quotes that did not.
    pub missed: u32,
    /// From the engine's making it to its coming here, in microseconds: p50, p99, the largest.
    pub latency_us: [f64; 3],
}

/// Where the ways lead.
#[derive(Clone, Debug, clap::Args)]
pub struct FeedArgs {
    /// The elastic queues' directory
    #[arg(long, requires = "feeds", default_value = "127.0.0.1:5670", value_name = "HOST:PORT")]
    pub directory: String,
    /// The multicast group of CMQ
    #[arg(long, requires = "feeds", default_value = "239.255.71.17:4717", value_name = "GROUP:PORT", value_parser = group)]
    pub group: SocketAddrV4,
    /// The address of the interface by which the group is reached
    #[arg(long, requires = "feeds", default_value_t = Ipv4Addr::LOCALHOST, value_name = "ADDRESS")]
    pub multicast_interface: Ipv4Addr,
}

fn group(text: &str) -> Result<SocketAddrV4, String> {
    let group: SocketAddrV4 = text.parse().map_err(|_| "expected GROUP:PORT".to_owned())?;
    match group.ip().is_multicast() {
        true => Ok(group),
        false => {
            Err(format!("{} is no multicast group (224.0.0.0 to 239.255.255.255)", group.ip()))
        }
    }
}

/// Checks which ways are asked for.
///
/// # Errors
/// If one is there twice: two who take from one queue would each miss half.
pub fn check_ways(ways: &[Way]) -> Result<(), Error> {
    let twice = (1..ways.len()).find(|at| ways[..*at].contains(&ways[*at]));
    match twice {
        Some(at) => Err(Error::Arguments(format!("--feed {} is there twice", ways[at].name()))),
        None => Ok(()),
    }
}

impl FeedArgs {
    /// Returns these arguments as options of a program.
    #[must_use]
    pub fn to_words(&self) -> Vec<String> {
        let Self { directory, group, multicast_interface } = self;
        let words = [
            ("--directory", directory.clone()),
            ("--group", group.to_string()),
            ("--multicast-interface", multicast_interface.to_string()),
        ];
        words.into_iter().flat_map(|(option, value)| [option.to_owned(), value]).collect()
    }

    /// Builds a runtime for the elastic queue's client.
    ///
    /// # Errors
    /// The system's reason.
    pub fn runtime() -> Result<Runtime, Error> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        runtime.map_err(|source| Error::System { what: "start a thread".to_owned(), source })
    }

    /// Returns a client of the directory.
    ///
    /// # Errors
    /// If the address is none.
    pub fn client(&self) -> Result<Client, Error> {
        let options = Options { name: "stock-exchange".to_owned(), ..Options::default() };
        Ok(Client::connect([self.directory.clone()], options)?)
    }

    /// Opens a socket that takes what the group is sent.
    ///
    /// # Errors
    /// The system's reason.
    pub fn joined(&self) -> Result<Endpoint, Error> {
        let system = |source| Error::System { what: format!("join {}", self.group), source };
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, self.group.port()));
        let endpoint = Endpoint::bind(any, Config::default()).map_err(system)?;
        let (group, interface) = (IpAddr::V4(*self.group.ip()), self.multicast_interface);
        endpoint.join_multicast(group, Interface::Address(interface)).map_err(system)?;
        Ok(endpoint)
    }
}

/// Returns the nanoseconds of a clock that all programs of a machine share.
#[must_use]
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let of = |part: i64| u64::try_from(part).unwrap_or_default();
    of(time.tv_sec) * 1_000_000_000 + of(time.tv_nsec)
}

/// The engine's end of the feed.
pub struct Feed {
    /// Whether the broker takes it, too: the engine publishes there itself.
    pub by_broker: bool,
    elastic: Option<Elastic>,
    cmq: Option<Multicast>,
    ticks: u32,
}

struct Elastic {
    producer: Producer,
    runtime: Runtime,
}

struct Multicast {
    dest: Dest,
    endpoint: Endpoint,
}

impl Feed {
    /// Opens what is asked for.
    ///
    /// # Errors
    /// Which way cannot be opened.
    pub fn open(ways: &[Way], args: &FeedArgs, queue: &str) -> Result<Self, Error> {
        let elastic = ways.contains(&Way::Elastic).then(|| -> Result<_, Error> {
            let (runtime, client) = (FeedArgs::runtime()?, args.client()?);
            let producer = runtime.block_on(client.producer(queue))?;
            Ok(Elastic { producer, runtime })
        });
        let cmq = ways.contains(&Way::Cmq).then(|| Multicast::open(args));
        let by_broker = ways.contains(&Way::Amqp);
        Ok(Self { by_broker, elastic: elastic.transpose()?, cmq: cmq.transpose()?, ticks: 0 })
    }

    /// Makes the next quote a message of the feed, with the next number, and returns it.
    pub fn tick(&mut self, bid: u16, ask: u16) -> Message {
        let number = self.ticks;
        self.ticks += 1;
        Message::Tick { number, at_ns: now_ns(), bid, ask }
    }

    /// Sends a quote by the ways that are not the broker's.
    ///
    /// # Errors
    /// If a way is broken. Who is slow, or not there, is no error.
    pub fn send(&self, message: &Message) -> Result<(), Error> {
        let mut bytes = Vec::with_capacity(crate::messages::MESSAGE_BYTES_MAX);
        message.encode(&mut bytes);
        if let Some(Elastic { producer, runtime }) = &self.elastic {
            let parts = [TOPIC.as_bytes(), &bytes];
            if producer.try_publish(&parts).is_err() {
                // There is no room: it waits until there is.
                runtime.block_on(producer.publish_parts(&parts))?;
            }
        }
        if let Some(cmq) = &self.cmq {
            cmq.dest.push(&bytes)?;
            cmq.dest.flush();
        }
        Ok(())
    }

    /// Says that the feed ends, and waits until everything has left.
    ///
    /// # Errors
    /// As [`Feed::send`].
    pub fn close(&self) -> Result<(), Error> {
        let closing = self.closing();
        self.send(&closing)?;
        if let Some(Elastic { producer, runtime }) = &self.elastic {
            let left = runtime
                .block_on(async { tokio::time::timeout(CLOSE, producer.acknowledged()).await });
            left.unwrap_or(Ok(()))?;
        }
        if let Some(cmq) = &self.cmq {
            let mut bytes = Vec::new();
            closing.encode(&mut bytes);
            for _ in 1..CLOSINGS {
                cmq.dest.push(&bytes)?;
                cmq.dest.flush();
            }
            // Lossy datagrams have left when this returns.
            let _ = cmq.endpoint.clone().close(CLOSE);
        }
        Ok(())
    }

    /// Returns the last message of the feed.
    #[must_use]
    pub const fn closing(&self) -> Message {
        Message::Closing { count: self.ticks, digest: 0 }
    }
}

impl Multicast {
    fn open(args: &FeedArgs) -> Result<Self, Error> {
        let system = |source| Error::System { what: format!("send to {}", args.group), source };
        let endpoint = Endpoint::bind("0.0.0.0:0", Config::default()).map_err(system)?;
        let interface = Interface::Address(args.multicast_interface);
        endpoint.set_multicast_interface(interface).map_err(system)?;
        let options = DestinationOptions { mode: Mode::Lossy, ..DestinationOptions::default() };
        let dest = endpoint.dest(Key::new(SocketAddr::V4(args.group), MAILBOX), options)?;
        Ok(Self { dest, endpoint })
    }
}

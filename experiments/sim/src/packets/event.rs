//! What happens in a run, and what machines are told.

use bytes::Bytes;
use quelea_elastic_core::directory::{Input, RelayHandle, RelaySpec};
use quelea_elastic_core::ownership::meta::Change;
use quelea_elastic_core::ownership::{Answer, Call, Request};

use crate::packets::network::{ConnId, Side};
use crate::packets::party::Party;

/// A machine's place in the run. Never used twice.
pub(super) type NodeId = usize;

/// A machine from its boot to its death.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Life {
    pub(super) node: NodeId,
    pub(super) life: u32,
}

/// Something that happens.
#[derive(Debug)]
pub(super) enum Event {
    /// A machine begins a life, if it has none.
    Boot(NodeId),
    /// What was sent arrives at one side of a connection.
    Arrive(ConnId, Side),
    /// For a machine alone.
    Signal(Life, Signal),
    /// The deadline that a machine had asked for; void if it has asked for another one since.
    Timer(Life, u64),
    /// A directory asks the store.
    Store(Life, Call, Request),
    /// A service answers a directory.
    Answer(Party, Life, Signal),
    /// The store ends what has run out.
    StoreTick,
    /// A directory asks the provider.
    Provider(Life, u64, ProviderCall),
    /// The provider tells directories what it sees.
    ProviderTick,
    /// The provider sees that a process is gone.
    Seen(NodeId),
    /// A process is to be ended by force.
    Kill(Life),
    /// A fault of the plan begins.
    Fault(usize),
    /// And ends.
    FaultEnds(usize),
    /// An operator's wish of the plan.
    Wish(usize),
}

/// What a machine is told.
#[derive(Debug)]
pub(super) enum Signal {
    /// Its life begins.
    Boot,
    /// Its deadline has come.
    Timer,
    /// A connection that it opened is there.
    Connected(ConnId),
    /// Somebody has connected.
    Accepted(ConnId),
    /// Bytes came.
    Bytes(ConnId, Bytes),
    /// The connection is over, or could not be made.
    Closed(ConnId),
    /// The connection takes more again.
    Writable(ConnId),
    /// The store answers.
    Store(Call, Answer),
    /// The store tells of changes.
    Changes(Vec<Change>),
    /// The provider answers.
    Provider(u64, ProviderAnswer),
    /// The provider says that a relay has ended.
    Ended(RelayHandle, String),
    /// SIGTERM.
    Term,
    /// For a directory's state machine.
    Input(Box<Input>),
    /// A producer's program is to publish so many messages now.
    Publish(u32),
}

/// What a directory asks of the provider.
#[derive(Clone, Debug)]
pub(super) enum ProviderCall {
    Start(RelaySpec),
    Stop(RelayHandle),
    List,
}

/// What it answers.
#[derive(Clone, Debug)]
pub(super) enum ProviderAnswer {
    Started(RelayHandle),
    /// To a start, and to a stop.
    Failed(String),
    /// It was asked to end, or was gone: whether it is.
    Stopping {
        gone: bool,
    },
    Running(Vec<RelayHandle>),
}

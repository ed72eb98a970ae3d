//! What happens in a run, and what machines get.

use quelea_elastic_core::directory::{Input, RelayHandle, RelaySpec};
use quelea_elastic_core::ownership::meta::Change;
use quelea_elastic_core::ownership::{Answer, Call, Request};
use quelea_testkit::stream_network::{ConnId, Incarnation, NodeId, Side, SocketEvent, StreamEvent};

use crate::packets::participant::Participant;

/// Something that happens.
#[derive(Debug)]
pub(super) enum Event {
    /// A machine begins a incarnation, if it has none.
    Boot(NodeId),
    /// What was sent arrives at one side of a connection.
    Arrive(ConnId, Side),
    /// For a machine alone.
    Signal(Incarnation, Signal),
    /// The deadline that a machine had asked for; void if it has asked for another one since.
    Timer(Incarnation, u64),
    /// A directory asks the store.
    Store(Incarnation, Call, Request),
    /// A service answers a directory.
    Answer(Participant, Incarnation, Signal),
    /// The store ends what has run out.
    StoreTick,
    /// A directory asks the provider.
    Provider(Incarnation, u64, ProviderCall),
    /// The provider reports to directories what it sees.
    ProviderTick,
    /// The provider sees that a process is gone.
    Seen(NodeId),
    /// A process is to be ended by force.
    Kill(Incarnation),
    /// A fault of the plan begins.
    Fault(usize),
    /// And ends.
    FaultEnds(usize),
    /// An operator's command of the plan.
    Command(usize),
}

impl From<StreamEvent> for Event {
    fn from(event: StreamEvent) -> Self {
        match event {
            StreamEvent::Arrive(conn, side) => Self::Arrive(conn, side),
            StreamEvent::Socket(to, event) => Self::Signal(to, Signal::Socket(event)),
        }
    }
}

/// What a machine gets.
#[derive(Debug)]
pub(super) enum Signal {
    /// Its incarnation begins.
    Boot,
    /// Its deadline has come.
    Timer,
    /// Something of a connection.
    Socket(SocketEvent),
    /// The store answers.
    Store(Call, Answer),
    /// The store notifies of changes.
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

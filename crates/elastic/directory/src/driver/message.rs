//! What reaches the driver's thread, and what it sends frames by.

use quelea_elastic_core::directory::{Address, Input, Peer};
use quelea_elastic_core::ownership::keys::Shard;
use quelea_elastic_proto::Frame;
use quelea_elastic_proto::frame::Role;
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

use super::Driver;
use crate::provider::ProviderEvent;

/// What the driver holds of a connection; the connection ends when it is dropped.
pub(crate) type FrameSender = Sender<Frame>;

/// What happened, or is wanted of the driver.
pub(crate) enum Message {
    /// Someone has greeted.
    Connected { peer: Peer, role: Role, address: Address, sender: FrameSender },
    /// A frame came.
    Received { peer: Peer, frame: Frame },
    /// The connection has ended.
    Gone { peer: Peer },
    /// From the metadata store, a provider, the API.
    Input(Input),
    /// A shard is not this directory's any more.
    ShardLost { shard: Shard, owner: Option<String> },
    /// Something happened at the provider.
    Provider(ProviderEvent),
    /// Runs between two turns: how the API asks.
    Call(Box<dyn FnOnce(&mut Driver) + Send>),
    /// Stop; answered when relays may be stopped.
    Stop(oneshot::Sender<()>),
}

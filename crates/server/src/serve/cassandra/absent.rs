//! A build without Cassandra.

use quelea_node::{CoreHandle, OtherStore};
use quelea_sqs_protocol::Fault;

use super::super::connection_limits::ConnectionLimits;
use crate::config::Config;

/// A Cassandra that is connected: there is none.
#[derive(Debug)]
pub(crate) enum Cluster {}

/// What a node beside it needs.
pub(crate) enum NodeChannels {}

/// Names of queues that are being made.
pub(crate) enum HeldNames {}

/// Its users.
pub(crate) enum MirroredIdentity {}

/// Why not.
#[derive(Debug, thiserror::Error)]
#[error("cassandra.nodes names nodes, but this build has no Cassandra (the feature `cassandra`)")]
pub(crate) struct FrontError;

impl Cluster {
    pub(crate) const fn connect(_limits: ConnectionLimits) -> Result<Self, FrontError> {
        Err(FrontError)
    }

    pub(crate) const fn node_parts(&self, _config: &Config) -> (OtherStore, NodeChannels) {
        match *self {}
    }

    pub(crate) async fn serve_beside_node(
        &self,
        _core: &CoreHandle,
        _channels: NodeChannels,
    ) -> Result<(MirroredIdentity, HeldNames), Fault> {
        match *self {}
    }

    pub(crate) async fn stop(self) {
        match self {}
    }
}

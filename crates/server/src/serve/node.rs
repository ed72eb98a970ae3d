//! From the configuration to the node's settings.

use std::sync::Arc;

use quelea_amqp_codec::ConnectionConfig;
use quelea_amqp_session::SessionConfig;
use quelea_broker::BrokerConfig;
use quelea_node::NodeConfig;

use crate::config::Config;

/// Returns the node's settings.
pub(crate) fn settings(config: &Config, connections_max: usize) -> NodeConfig {
    let connection = ConnectionConfig {
        frame_max: config.amqp.frame_max,
        channel_max: config.amqp.channel_max,
        heartbeat_s: config.amqp.heartbeat_s,
        message_bytes_max: config.limits.message_bytes_max,
        server_properties: quelea_amqp_codec::server_properties(env!("CARGO_PKG_VERSION")),
        handshake_timeout_ms: config.amqp.handshake_timeout_ms,
    };
    let broker = BrokerConfig {
        resident_bytes_max: config.limits.resident_bytes_max,
        index_bytes_max: config.limits.index_bytes_max,
        connections_max,
        // Sessions and the management API check `access.loopback_users` themselves.
        loopback_user: String::new(),
        ..BrokerConfig::default()
    };
    NodeConfig {
        data_dir: config.data_dir.clone(),
        amqp_listen: config.amqp.listen.clone(),
        connections_max,
        tcp_nodelay: config.amqp.tcp_nodelay,
        stop_timeout_ms: config.stop_timeout_ms,
        session: SessionConfig {
            connection: Arc::new(connection),
            loopback_users: config.access.loopback_users.clone(),
        },
        broker,
        segment_bytes: config.log.segment_bytes,
        accept_damage: config.log.accept_damage,
        bootstrap_user: config.access.bootstrap_user.clone(),
        bootstrap_password: config.access.bootstrap_password.clone(),
    }
}

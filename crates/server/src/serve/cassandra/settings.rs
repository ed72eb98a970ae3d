//! The settings of `[cassandra]`, and whether they go with the others.

#[cfg(feature = "cassandra")]
use quelea_cassandra_front::{CassandraSettings, PeerSettings};
#[cfg(feature = "cassandra")]
use quelea_model::limits::IN_FLIGHT_MAX;
use quelea_sqs_protocol::QueueClass;

use super::error::CassandraError;
use crate::config::{Config, Store};

/// Checks that what is to be served can be.
pub(super) fn check(config: &Config) -> Result<(), CassandraError> {
    let is_alone = config.store == Store::Cassandra;
    let needs_nodes = is_alone || config.sqs.default_class == QueueClass::Replicated;
    if needs_nodes && config.cassandra.nodes.is_empty() {
        return Err(CassandraError::NoNodes);
    }
    #[cfg(not(feature = "cassandra"))]
    if !config.cassandra.nodes.is_empty() {
        return Err(super::FrontError.into());
    }
    if !is_alone {
        return Ok(());
    }
    // What is on by default is not served, and what was set must not seem to be.
    let (Config { cmq, elastic, bridge, .. }, default) = (config, Config::default());
    let is_set = |given: &String, default: &String| !given.is_empty() && given != default;
    let set = [
        ("cmq.listen", is_set(&cmq.listen, &default.cmq.listen)),
        ("cmq.forward", !cmq.forward.is_empty()),
        ("elastic.listen", is_set(&elastic.listen, &default.elastic.listen)),
        ("elastic.entry", !elastic.entry.is_empty()),
        ("bridge.keep_listen", is_set(&bridge.keep_listen, &default.bridge.keep_listen)),
        ("bridge.feed", !bridge.feed.is_empty()),
        ("bridge.delivery", !bridge.delivery.is_empty()),
    ];
    match set.iter().find(|(_, is_set)| *is_set) {
        Some((key, _)) => Err(CassandraError::NotServed(key)),
        None if !config.sqs.enabled => Err(CassandraError::NothingServed),
        None => Ok(()),
    }
}

/// Returns the settings that the store takes.
#[cfg(feature = "cassandra")]
pub(super) fn of(config: &Config) -> CassandraSettings {
    let cassandra = &config.cassandra;
    let given = |text: &String| (!text.is_empty()).then(|| text.clone());
    CassandraSettings {
        nodes: cassandra.nodes.clone(),
        keyspace: cassandra.keyspace.clone(),
        datacenter: given(&cassandra.datacenter),
        replication: cassandra.replication,
        user: given(&cassandra.user),
        password_file: given(&cassandra.password_file).map(Into::into),
        ca_file: given(&cassandra.ca_file).map(Into::into),
        consistency: cassandra.consistency,
        cooldown_ms: config.sqs.cooldown_ms,
        request_timeout_ms: cassandra.request_timeout_ms,
        internal_listen: given(&cassandra.internal_listen),
        internal_address: given(&cassandra.internal_address),
        is_classic: config.bdqs.classic,
        duplicates_ppm_max: config.bdqs.duplicates_ppm_max,
        sweep_rows_per_s: config.bdqs.sweep_rows_per_s,
        fifo_bytes_max: config.bdqs.fifo_bytes_max,
        in_flight_max: IN_FLIGHT_MAX,
        ..CassandraSettings::default()
    }
}

/// Returns how this front-end speaks with the others.
#[cfg(feature = "cassandra")]
pub(super) fn peers(config: &Config) -> PeerSettings {
    PeerSettings { listen: config.bdqs.listen.clone(), advertise: config.bdqs.advertise.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: impl FnOnce(&mut Config)) -> Result<(), String> {
        let mut config = Config::default();
        set(&mut config);
        check(&config).map_err(|error| {
            assert!(error.is_of_settings());
            error.to_string()
        })
    }

    #[test]
    fn what_is_to_be_served_without_a_cassandra_is_refused() {
        assert_eq!(with(|_| ()), Ok(()));
        for refused in [
            with(|config| config.store = Store::Cassandra),
            with(|config| config.sqs.default_class = QueueClass::Replicated),
        ] {
            assert!(refused.unwrap_err().starts_with("cassandra.nodes is empty"));
        }
        let nodes = || vec!["127.0.0.1:9042".to_owned()];
        assert_eq!(with(|config| config.cassandra.nodes = nodes()), Ok(()));
        let alone = |config: &mut Config| {
            config.store = Store::Cassandra;
            config.cassandra.nodes = nodes();
        };
        assert_eq!(with(alone), Ok(()));
        let without_elastic = |config: &mut Config| {
            alone(config);
            config.elastic.listen.clear();
        };
        assert_eq!(with(without_elastic), Ok(()));
        let refused = with(|config| {
            alone(config);
            config.elastic.listen = "127.0.0.1:0".to_owned();
        });
        assert!(refused.unwrap_err().starts_with("elastic.listen is set"));
        let refused = with(|config| {
            alone(config);
            config.sqs.enabled = false;
        });
        assert!(refused.unwrap_err().starts_with("sqs.enabled is false"));
    }
}

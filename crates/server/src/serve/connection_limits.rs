//! How many connections each front may have: what is configured, as far as there are files for all of them.

use quelea_elastic_proto::limits::RELAYS_MAX;

use crate::config::{Config, Store};

/// Sockets that a connection at an entry takes: a PUB's, and its own two to a directory and a relay.
const FILES_PER_ENTRY_CONNECTION: usize = 3;

/// Connections of other front-ends of the same Cassandra (`cassandra.internal_listen`).
const FRONT_ENDS_MAX: usize = 4_096;

/// Most connections of each front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    pub(crate) amqp: usize,
    pub(crate) sqs: usize,
    pub(crate) http: usize,
    pub(crate) elastic: usize,
    /// Relays that bring what is kept.
    pub(crate) keeper: usize,
    /// Other front-ends.
    pub(crate) front_ends: usize,
    /// All entries of elastic queues: the files that they may have, and those that they want.
    entries: (usize, usize),
}

impl ConnectionLimits {
    /// Shares out the `files` that are left for connections. A front that is not served takes none.
    pub(crate) fn of(config: &Config, files: u64) -> Self {
        let Config { amqp, sqs, http, elastic, .. } = config;
        let has_broker = config.store == Store::Embedded;
        let of_entries = elastic.entry.iter().map(|entry| entry.connections_max);
        let entry_files = of_entries.fold(0_usize, |files, connections| {
            files.saturating_add(connections.saturating_mul(FILES_PER_ENTRY_CONNECTION))
        });
        let if_served = |is_served: bool, wanted| if is_served { wanted } else { 0 };
        let [amqp, sqs, http, elastic, keeper, front_ends, entries] = quelea_node::share_files(
            files,
            [
                if_served(has_broker, amqp.connections_max),
                if_served(sqs.enabled, sqs.connections_max),
                if_served(http.enabled, http.connections_max),
                if_served(has_broker && !elastic.listen.is_empty(), elastic.connections_max),
                if_served(has_broker && config.has_own_keeper(), RELAYS_MAX),
                if_served(!config.cassandra.nodes.is_empty(), FRONT_ENDS_MAX),
                if_served(has_broker, entry_files),
            ],
        );
        let entries = (entries, entry_files);
        Self { amqp, sqs, http, elastic, keeper, front_ends, entries }
    }

    /// Returns the limit of an entry that is to have so many: its part of what all entries may
    /// have.
    pub(crate) fn of_entry(&self, configured: usize) -> usize {
        let (files, wanted) = self.entries;
        let share = configured as u128 * files as u128 / wanted.max(1) as u128;
        usize::try_from(share).unwrap_or(configured).clamp(1, configured.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ElasticEntry;

    fn entry(connections_max: usize) -> ElasticEntry {
        let text =
            format!("queue = 'q'\nzmtp_in = '127.0.0.1:0'\nconnections_max = {connections_max}");
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn few_files_are_shared_and_a_front_that_is_off_has_none() {
        let mut config = Config::default();
        let limits = ConnectionLimits::of(&config, 1_744);
        let ConnectionLimits { amqp, sqs, http, elastic, keeper, front_ends, .. } = limits;
        assert!(amqp + sqs + http + elastic + keeper <= 1_744, "{limits:?}");
        let shares = [amqp, sqs, http, elastic, keeper];
        assert!(shares.iter().all(|share| *share >= 174), "{limits:?}");
        assert_eq!(front_ends, 0);
        config.http.enabled = false;
        config.bridge.keep_listen.clear();
        let limits = ConnectionLimits::of(&config, 1_744);
        assert_eq!((limits.http, limits.keeper), (0, 0));
        config.cassandra.nodes.push("127.0.0.1:9042".to_owned());
        assert!(ConnectionLimits::of(&config, 1_744).front_ends >= 218);
    }

    #[test]
    fn entries_share_what_they_have_by_what_they_want() {
        let mut config = Config::default();
        config.elastic.entry.extend([entry(100), entry(300)]);
        let enough = ConnectionLimits::of(&config, 1_000_000);
        assert_eq!([100, 300].map(|configured| enough.of_entry(configured)), [100, 300]);
        config.elastic.entry.extend([entry(60_000)]);
        let few = ConnectionLimits::of(&config, 768);
        let ConnectionLimits { amqp, sqs, http, elastic, keeper, .. } = few;
        let entries: usize = [100, 300, 60_000].iter().map(|wanted| few.of_entry(*wanted)).sum();
        assert!(entries > 0, "{few:?}");
        assert!(
            amqp + sqs + http + elastic + keeper + FILES_PER_ENTRY_CONNECTION * entries <= 768,
            "{few:?}"
        );
    }
}

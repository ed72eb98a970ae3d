//! How many connections each front may have: what is configured, as far as there are files for all of them.

use crate::config::{Config, Store};

/// Most connections of each front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    pub(crate) amqp: usize,
    pub(crate) sqs: usize,
    pub(crate) http: usize,
    pub(crate) elastic: usize,
}

impl ConnectionLimits {
    /// Of `files` that are left for connections. A front that is not served takes none.
    pub(crate) fn of(config: &Config, files: u64) -> Self {
        let Config { amqp, sqs, http, elastic, .. } = config;
        let has_broker = config.store == Store::Embedded;
        let [amqp, sqs, http, elastic] = quelea_node::share_files(
            files,
            [
                if has_broker { amqp.connections_max } else { 0 },
                if sqs.enabled { sqs.connections_max } else { 0 },
                if http.enabled { http.connections_max } else { 0 },
                if elastic.listen.is_empty() { 0 } else { elastic.connections_max },
            ],
        );
        Self { amqp, sqs, http, elastic }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_files_are_shared_and_a_front_that_is_off_has_none() {
        let mut config = Config::default();
        let limits = ConnectionLimits::of(&config, 1_744);
        let ConnectionLimits { amqp, sqs, http, elastic } = limits;
        assert!(amqp + sqs + http + elastic <= 1_744, "{limits:?}");
        assert!([amqp, sqs, http, elastic].iter().all(|share| *share >= 218), "{limits:?}");
        config.http.enabled = false;
        assert_eq!(ConnectionLimits::of(&config, 1_744).http, 0);
    }
}

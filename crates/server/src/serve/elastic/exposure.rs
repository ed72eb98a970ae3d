//! Whether elastic queues can be reached from other machines by anybody: without a key they are for this machine only.

use std::net::ToSocketAddrs as _;

use quelea_elastic_relay::ZmtpMechanism;

use crate::config::{Config, Provider};

/// An address beyond loopback at which nothing is asked for.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ExposureError {
    #[error(
        "{setting} = {address:?} is reached from other machines, and elastic.key_file is empty: give it the file \
         of a key, or set elastic.open_beyond_loopback if everybody who reaches it may do everything"
    )]
    NoKey { setting: &'static str, address: String },
    #[error(
        "elastic.entry.{setting} = {address:?} of {queue:?} is reached from other machines, and its zmtp_security is \
         \"null\": set it to \"plain\" or \"curve\", or set elastic.open_beyond_loopback if everybody who reaches \
         it may publish and listen"
    )]
    OpenEntry { setting: &'static str, address: String, queue: String },
}

/// Refuses what is open to everybody and not meant to be.
pub(crate) fn check(config: &Config) -> Result<(), ExposureError> {
    let elastic = &config.elastic;
    if elastic.open_beyond_loopback {
        return Ok(());
    }
    let relays = match elastic.provider {
        Provider::Process => ("elastic.relay_listen", &elastic.relay_listen),
        Provider::Kubernetes => {
            ("elastic.kubernetes_relay_listen", &elastic.kubernetes_relay_listen)
        }
    };
    let has_directory = !elastic.listen.is_empty();
    let listeners = [
        (has_directory, ("elastic.listen", &elastic.listen)),
        (has_directory, relays),
        (true, ("bridge.keep_listen", &config.bridge.keep_listen)),
    ];
    let mut open = listeners.iter().filter(|(is_on, (_, address))| *is_on && is_exposed(address));
    if elastic.key_file.is_empty()
        && let Some((_, (setting, address))) = open.next()
    {
        return Err(ExposureError::NoKey { setting, address: (*address).clone() });
    }
    // The key is Quelea's own: ZeroMQ's sockets cannot show it.
    let is_open = |security| security == ZmtpMechanism::Null;
    for entry in elastic.entry.iter().filter(|entry| is_open(entry.zmtp_security)) {
        for (setting, address) in [("zmtp_in", &entry.zmtp_in), ("zmtp_out", &entry.zmtp_out)] {
            if is_exposed(address) {
                let (address, queue) = (address.clone(), entry.queue.clone());
                return Err(ExposureError::OpenEntry { setting, address, queue });
            }
        }
    }
    Ok(())
}

/// Returns whether other machines reach what listens there.
pub(crate) fn is_exposed(address: &str) -> bool {
    if address.is_empty() {
        return false;
    }
    match address.to_socket_addrs() {
        Ok(mut addresses) => addresses.any(|address| !address.ip().to_canonical().is_loopback()),
        // A name that is not known here, such as `$(POD_IP)`, is no name of this machine's alone.
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ElasticEntry;

    fn refusal(change: impl FnOnce(&mut Config)) -> String {
        let mut config = Config::default();
        change(&mut config);
        check(&config).err().map_or_else(String::new, |error| error.to_string())
    }

    fn entry(zmtp_out: &str, security: &str) -> ElasticEntry {
        let text = format!("queue = \"q\"\nzmtp_out = {zmtp_out:?}\nzmtp_security = {security:?}");
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn without_a_key_elastic_queues_are_for_this_machine_only() {
        assert_eq!(refusal(|_| {}), "");
        for (refusal, expected) in [
            (refusal(|c| c.elastic.listen = "0.0.0.0:5670".to_owned()), "elastic.listen = "),
            (refusal(|c| c.elastic.listen = "[::]:5670".to_owned()), "elastic.listen = "),
            (
                refusal(|c| c.elastic.relay_listen = "10.1.2.3:0".to_owned()),
                "elastic.relay_listen = ",
            ),
            (
                refusal(|c| c.bridge.keep_listen = "0.0.0.0:5669".to_owned()),
                "bridge.keep_listen = ",
            ),
            (
                refusal(|c| c.elastic.entry.push(entry("0.0.0.0:1", "null"))),
                "elastic.entry.zmtp_out = ",
            ),
            (
                refusal(|c| c.elastic.provider = Provider::Kubernetes),
                "elastic.kubernetes_relay_listen = ",
            ),
        ] {
            assert!(refusal.starts_with(expected), "{refusal:?} does not begin with {expected:?}");
        }
    }

    #[test]
    fn a_key_or_the_operators_word_opens_them() {
        let everywhere = |c: &mut Config| {
            c.elastic.listen = "0.0.0.0:5670".to_owned();
            c.elastic.relay_listen = "0.0.0.0:0".to_owned();
            c.bridge.keep_listen = "0.0.0.0:5669".to_owned();
        };
        let keyed = |c: &mut Config| {
            everywhere(c);
            c.elastic.key_file = "/etc/key".to_owned();
        };
        assert_eq!(refusal(keyed), "");
        // ZeroMQ's sockets cannot show the key.
        let with_entry = |c: &mut Config| {
            keyed(c);
            c.elastic.entry.push(entry("0.0.0.0:1", "null"));
        };
        assert!(refusal(with_entry).contains("zmtp_security"));
        assert_eq!(refusal(|c| c.elastic.entry.push(entry("0.0.0.0:1", "curve"))), "");
        let open = |c: &mut Config| {
            with_entry(c);
            c.elastic.key_file = String::new();
            c.elastic.open_beyond_loopback = true;
        };
        assert_eq!(refusal(open), "");
    }
}

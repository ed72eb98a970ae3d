//! The options of a relay's edge for ZeroMQ's sockets.

use std::path::PathBuf;

use clap::Args;
use quelea_elastic_proto::Named as _;
use quelea_elastic_relay::{
    RunError, ZMTP_HEARTBEAT_MS, ZmtpAddresses, ZmtpConfig, ZmtpMechanism, ZmtpSecurity,
    zmtp_heartbeat,
};

use super::named;

#[derive(Debug, Args)]
pub(crate) struct ZmtpArgs {
    /// Where ZeroMQ's PUB and XPUB sockets connect; port 0 takes a free one. Off if it is not given.
    #[arg(long, value_name = "HOST:PORT")]
    zmtp_in: Option<String>,
    /// Where ZeroMQ's SUB and XSUB sockets connect; port 0 takes a free one. Off if it is not given.
    #[arg(long, value_name = "HOST:PORT")]
    zmtp_out: Option<String>,
    /// The mechanism of both sides.
    #[arg(
        long,
        value_name = "MECHANISM",
        default_value = ZmtpMechanism::default().as_str(),
        value_parser = named(|_: ZmtpMechanism| true)
    )]
    zmtp_security: ZmtpMechanism,
    /// PLAIN's users, a line NAME:PASSWORD each.
    #[arg(long, value_name = "FILE")]
    zmtp_users_file: Option<PathBuf>,
    /// CURVE's secret key of this relay, in Z85.
    #[arg(long, value_name = "FILE")]
    zmtp_secret_key_file: Option<PathBuf>,
    /// CURVE's public keys of the clients that may connect, in Z85, one a line; without it, all may that
    /// know the relay's.
    #[arg(long, value_name = "FILE")]
    zmtp_clients_file: Option<PathBuf>,
    /// Time between two PINGs; a peer that is not heard for three is given up. 0: none.
    #[arg(long, value_name = "MS", default_value_t = ZMTP_HEARTBEAT_MS)]
    zmtp_heartbeat_ms: u64,
}

impl ZmtpArgs {
    /// Returns the addresses where anybody is let in, each with its option.
    pub(crate) fn open_addresses(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let sides = [("--zmtp-in", &self.zmtp_in), ("--zmtp-out", &self.zmtp_out)];
        let is_open = self.zmtp_security == ZmtpMechanism::Null;
        sides
            .into_iter()
            .filter(move |_| is_open)
            .filter_map(|(option, address)| Some((option, address.as_deref()?)))
    }

    /// Returns the edge's settings, if a side of it is on.
    pub(crate) fn config(&self) -> Result<Option<ZmtpConfig>, RunError> {
        let security = ZmtpSecurity::read(
            self.zmtp_security,
            self.zmtp_users_file.as_deref(),
            self.zmtp_secret_key_file.as_deref(),
            self.zmtp_clients_file.as_deref(),
        )?;
        let (producers, listeners) = (self.zmtp_in.as_deref(), self.zmtp_out.as_deref());
        if producers.is_none() && listeners.is_none() {
            return Ok(None);
        }
        Ok(Some(ZmtpConfig {
            security,
            heartbeat: zmtp_heartbeat(self.zmtp_heartbeat_ms),
            ..ZmtpConfig::open(producers.unwrap_or_default(), listeners.unwrap_or_default())
        }))
    }
}

/// Returns what the ready line says of the edge.
pub(crate) fn ready(addresses: &ZmtpAddresses) -> String {
    let side = |name, address: Option<_>| {
        address.map_or_else(String::new, |address| format!(" {name}={address}"))
    };
    side("zmtp_in", addresses.producers) + &side("zmtp_out", addresses.listeners)
}

//! What `quelea push` and `quelea pop` have in common: peers' names, messages in a stream.
//! Start reading at `push.rs` and `pop.rs`.

mod framing;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use quelea_cmq::proto::limits;
use quelea_cmq::{Config, Endpoint, PreSharedKey};

pub(crate) use framing::{FrameDecoder, Framing, FramingError};

use crate::config::byte_size;
use crate::key_file::{self, KeyFileError};

/// What both ends have to agree on, and what is reported about it.
#[derive(Debug, Args)]
pub(crate) struct PipeArgs {
    /// Messages with their length before them (32 bits, big-endian) instead of lines.
    #[arg(long)]
    records: bool,
    /// File with the secret that both ends share, 32 bytes or 64 hexadecimal digits: messages are then
    /// encrypted, and nobody else's are taken.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Largest message; both ends have to allow it.
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = message_bytes_max)]
    message_bytes_max: usize,
    /// Report on standard error at the end what was counted.
    #[arg(long)]
    pub(crate) stats: bool,
}

impl PipeArgs {
    pub(crate) const fn framing(&self) -> Framing {
        if self.records { Framing::Records } else { Framing::Lines }
    }

    /// Returns whether all is encrypted.
    pub(crate) const fn has_key(&self) -> bool {
        self.key_file.is_some()
    }

    /// Cuts the input into messages.
    pub(crate) const fn decoder(&self) -> FrameDecoder {
        FrameDecoder::new(self.framing(), self.message_bytes_max)
    }

    /// Returns the endpoint's settings.
    pub(crate) fn config(&self) -> Result<Config, KeyFileError> {
        let key = self.key_file.as_deref().map(key_file::read).transpose()?;
        Ok(Config {
            message_bytes_max: self.message_bytes_max,
            pre_shared_key: key.map(PreSharedKey),
            ..Config::default()
        })
    }
}

fn message_bytes_max(text: &str) -> Result<usize, String> {
    byte_size::parse_within(text, 1..=limits::MESSAGE_BYTES_MAX)
}

/// The longest time that one may ask for, a year: a clock overflows when much more is added to it.
const SECONDS_MAX: f64 = 365.0 * 86_400.0;

/// Parses a time in seconds, as in `2.5`.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if seconds > SECONDS_MAX {
        return Err(format!("more than {SECONDS_MAX}, a year"));
    }
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// What the library counted, but for what never happened.
pub(crate) fn print_counters(endpoint: &Endpoint) {
    for (name, value) in endpoint.stats().counters().filter(|(_, value)| *value > 0) {
        eprintln!("{name} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_checked_with_its_limits() {
        assert_eq!(message_bytes_max("4MiB"), Ok(4 << 20));
        assert_eq!(message_bytes_max("64MiB"), Ok(64 << 20));
        assert_eq!(message_bytes_max("65MiB").unwrap_err(), "not within 1 to 64MiB");
        assert_eq!(message_bytes_max("0").unwrap_err(), "not within 1 to 64MiB");
        assert!(message_bytes_max("much").unwrap_err().contains("such as"));
    }

    #[test]
    fn seconds_may_have_a_fraction_but_no_sign() {
        assert_eq!(seconds("2.5"), Ok(Duration::from_millis(2_500)));
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        assert_eq!(seconds("31536000"), Ok(Duration::from_secs(31_536_000)));
        for wrong in ["-1", "nan", "inf", "", "1s", "1e19", "31536000.1"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}

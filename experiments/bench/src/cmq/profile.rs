//! What the options mean to the library.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::Duration;

use clap::ValueEnum;
use quelea_cmq::{Config, DestinationOptions, Endpoint, Mode, PreSharedKey};

use crate::cmq::args::{CmqMode, WireArgs};
use crate::cmq::error::CmqError;

/// The secret of `--sealed`: it only has to be the same at both ends.
const BENCH_KEY: [u8; 32] = *b"quelea bench: not a secret key!!";

/// The mailbox of every measurement; the original library's datagrams have none.
pub(crate) const MAILBOX: u64 = 0;

impl WireArgs {
    pub(crate) fn config(&self) -> Config {
        let mut config = if self.classic { Config::classic() } else { Config::default() };
        if let Some(bytes) = self.qthresh {
            config.qthresh = bytes;
        }
        if let Some(us) = self.timeout_us {
            config.timeout = Duration::from_micros(us);
        }
        if let Some(bytes) = self.segment {
            config.segment_bytes_max = bytes;
        }
        if self.sealed {
            config.pre_shared_key = Some(PreSharedKey(BENCH_KEY));
        }
        config
    }

    pub(crate) fn destination(&self) -> DestinationOptions {
        let mode = match self.mode {
            CmqMode::Lossy => Mode::Lossy,
            CmqMode::LatestOnly => Mode::LatestOnly,
            CmqMode::ReliableUnordered => Mode::ReliableUnordered,
            CmqMode::ReliableOrdered => Mode::ReliableOrdered,
        };
        // The original's receivers give no credit.
        let credit = mode.is_reliable() || !(self.no_credit || self.classic);
        DestinationOptions { mode, credit, ..DestinationOptions::default() }
    }

    pub(crate) fn bind(&self, address: SocketAddr) -> Result<Endpoint, CmqError> {
        Endpoint::bind(address, self.config()).map_err(|source| CmqError::Bind { address, source })
    }

    /// Returns the command line that says the same.
    pub(crate) fn words(&self) -> Vec<OsString> {
        let mode = self.mode.to_possible_value();
        let mut words: Vec<String> = vec!["--batch".to_owned(), self.batch.to_string()];
        words.extend(mode.into_iter().flat_map(|mode| ["--mode".into(), mode.get_name().into()]));
        for (flag, is_set) in [
            ("--no-credit", self.no_credit),
            ("--classic", self.classic),
            ("--sealed", self.sealed),
        ] {
            words.extend(is_set.then(|| flag.to_owned()));
        }
        for (option, value) in [
            ("--qthresh", self.qthresh.map(|bytes| bytes.to_string())),
            ("--timeout-us", self.timeout_us.map(|us| us.to_string())),
            ("--segment", self.segment.map(|bytes| bytes.to_string())),
        ] {
            words.extend(value.into_iter().flat_map(|value| [option.to_owned(), value]));
        }
        words.into_iter().map(OsString::from).collect()
    }

    /// Returns the options in words, for the report.
    pub(crate) fn describe(&self) -> String {
        let mode = self.mode.to_possible_value();
        let mut words = vec![mode.map_or_else(String::new, |mode| mode.get_name().to_owned())];
        if self.classic {
            words.push("the original's datagrams".to_owned());
        }
        if self.sealed {
            words.push("encrypted".to_owned());
        }
        let options = self.destination();
        if !options.credit {
            words.push("no credit".to_owned());
        }
        let config = self.config();
        words.push(format!("qthresh {} B", config.qthresh));
        words.push(format!("timeout {:.1} ms", config.timeout.as_secs_f64() * 1e3));
        words.join(", ")
    }
}

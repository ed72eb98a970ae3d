//! The configuration of the edge, and the files that its keys come from.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use quelea_elastic_proto::Named;
use quelea_elastic_zmtp::{AllowedKeys, Entropy, Heartbeat, PublicKey, SecretKey, Security, Users};

use crate::config_error::ConfigError;

/// Time between two PINGs where nobody says anything else. A peer is given up after three.
pub const ZMTP_HEARTBEAT_MS: u64 = 5_000;

/// The configuration of the edge.
#[derive(Clone, Debug)]
pub struct ZmtpConfig {
    /// `HOST:PORT` that PUB and XPUB sockets connect to; empty: off.
    pub producers: String,
    /// `HOST:PORT` that SUB and XSUB sockets connect to; empty: off.
    pub listeners: String,
    /// Who may connect, and how.
    pub security: ZmtpSecurity,
    /// When peers are asked whether they are there.
    pub heartbeat: Heartbeat,
}

impl ZmtpConfig {
    /// Returns a configuration that is open to all who reach the addresses.
    #[must_use]
    pub fn open(producers: &str, listeners: &str) -> Self {
        Self {
            producers: producers.to_owned(),
            listeners: listeners.to_owned(),
            security: ZmtpSecurity::Null,
            heartbeat: zmtp_heartbeat(ZMTP_HEARTBEAT_MS),
        }
    }
}

/// Returns a heartbeat with PINGs this often; three missed end the connection, at either end. 0:
/// none.
#[must_use]
pub const fn zmtp_heartbeat(interval_ms: u64) -> Heartbeat {
    Heartbeat { interval_ms, timeout_ms: 3 * interval_ms, ttl_ms: 3 * interval_ms }
}

/// Which mechanism all peers of an edge have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZmtpMechanism {
    /// Everybody, readable.
    #[default]
    Null,
    /// Users with passwords, readable.
    Plain,
    /// Known by keys, encrypted.
    Curve,
}

impl Named for ZmtpMechanism {
    const FIELD: &'static str = "zmtp_security";
    const NAMES: &'static [(&'static str, Self)] =
        &[("null", Self::Null), ("plain", Self::Plain), ("curve", Self::Curve)];
}

/// That mechanism with what it needs to know.
#[derive(Clone, Debug)]
pub enum ZmtpSecurity {
    /// Everybody, readable.
    Null,
    /// Users with passwords, readable.
    Plain(Arc<Users>),
    /// Known by keys, encrypted.
    Curve {
        /// The relay's key.
        secret: SecretKey,
        /// Who may connect.
        clients: Arc<AllowedKeys>,
    },
}

impl ZmtpSecurity {
    /// Reads what `mechanism` needs from its files. `users`: lines
    /// `NAME:PASSWORD`. `secret_key`: one key in Z85. `clients`: public keys in Z85, one a line; without
    /// it, whoever has the relay's public key. Empty lines and those that begin with `#` are skipped,
    /// but a Z85 key may have a `#` anywhere else.
    ///
    /// # Errors
    /// Names the field, the file and the line that is wrong.
    pub fn read(
        mechanism: ZmtpMechanism,
        users: Option<&Path>,
        secret_key: Option<&Path>,
        clients: Option<&Path>,
    ) -> Result<Self, ConfigError> {
        let name = mechanism.as_str();
        let unused = |field, file: Option<&Path>| match file {
            Some(file) => {
                wrong(field, format!("{} is given, but the mechanism is {name}", file.display()))
            }
            None => Ok(()),
        };
        match mechanism {
            ZmtpMechanism::Null => {
                unused("zmtp_users_file", users)?;
                unused("zmtp_secret_key_file", secret_key)?;
                unused("zmtp_clients_file", clients)?;
                Ok(Self::Null)
            }
            ZmtpMechanism::Plain => {
                unused("zmtp_secret_key_file", secret_key)?;
                unused("zmtp_clients_file", clients)?;
                read_users(needed("zmtp_users_file", users)?).map(Self::Plain)
            }
            ZmtpMechanism::Curve => {
                unused("zmtp_users_file", users)?;
                let secret = read_secret(needed("zmtp_secret_key_file", secret_key)?)?;
                let clients = clients.map_or(Ok(AllowedKeys::All), read_clients)?;
                Ok(Self::Curve { secret, clients: Arc::new(clients) })
            }
        }
    }

    /// Returns the public key that clients need, if they need one.
    #[must_use]
    pub fn public_key(&self) -> Option<PublicKey> {
        match self {
            Self::Curve { secret, .. } => Some(secret.public()),
            Self::Null | Self::Plain(_) => None,
        }
    }

    /// Returns the security of one connection.
    pub(crate) fn for_connection(&self) -> Security {
        match self {
            Self::Null => Security::Null,
            Self::Plain(users) => Security::PlainServer(Arc::clone(users)),
            Self::Curve { secret, clients } => {
                let mut bytes = [0; Entropy::BYTES];
                fill(&mut bytes);
                Security::CurveServer {
                    secret: secret.clone(),
                    clients: Arc::clone(clients),
                    entropy: Entropy::from_bytes(&bytes),
                }
            }
        }
    }
}

/// Random bytes, as good as keys.
pub(crate) fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the kernel's generator does not fail once it has begun");
}

fn wrong<T>(field: &'static str, fault: String) -> Result<T, ConfigError> {
    Err(ConfigError { field, fault })
}

fn needed<'a>(field: &'static str, file: Option<&'a Path>) -> Result<&'a Path, ConfigError> {
    file.map_or_else(|| wrong(field, "it is needed by the mechanism, and not given".to_owned()), Ok)
}

/// Reads a file's lines with their numbers, without empty ones and comments.
fn lines(field: &'static str, file: &Path) -> Result<Vec<(usize, String)>, ConfigError> {
    let text = std::fs::read_to_string(file)
        .or_else(|error| wrong(field, format!("cannot read {}: {error}", file.display())))?;
    let numbered = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim_end().to_owned()));
    Ok(numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).collect())
}

fn read_users(file: &Path) -> Result<Arc<Users>, ConfigError> {
    let field = "zmtp_users_file";
    let mut users = Users::default();
    for (number, line) in lines(field, file)? {
        let place = format!("{} line {number}", file.display());
        let Some((user, password)) = line.split_once(':') else {
            return wrong(field, format!("{place}: not NAME:PASSWORD"));
        };
        if !users.insert(user, password) {
            return wrong(field, format!("{place}: a name or a password has more than 255 bytes"));
        }
    }
    Ok(Arc::new(users))
}

fn read_secret(file: &Path) -> Result<SecretKey, ConfigError> {
    let field = "zmtp_secret_key_file";
    let lines = lines(field, file)?;
    let [(number, line)] = &lines[..] else {
        return wrong(field, format!("{} has {} lines, not one key", file.display(), lines.len()));
    };
    line.parse().or_else(|error| wrong(field, format!("{} line {number}: {error}", file.display())))
}

fn read_clients(file: &Path) -> Result<AllowedKeys, ConfigError> {
    let field = "zmtp_clients_file";
    let mut keys = BTreeSet::new();
    for (number, line) in lines(field, file)? {
        let key = line.parse();
        keys.insert(
            key.or_else(|error| {
                wrong(field, format!("{} line {number}: {error}", file.display()))
            })?,
        );
    }
    Ok(AllowedKeys::Only(keys))
}

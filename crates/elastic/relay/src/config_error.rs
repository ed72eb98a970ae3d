//! A configuration that cannot be used.

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {fault}")]
pub struct ConfigError {
    /// The field.
    pub field: &'static str,
    /// The limit and the value.
    pub fault: String,
}

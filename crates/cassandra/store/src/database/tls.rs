//! Encrypted connections to Cassandra: the feature `tls`, since the driver's is built with C code that costs more than
//! the rest of the class.

use scylla::client::session_builder::SessionBuilder;

use crate::database::connect_error::ConnectError;
use crate::database::settings::CassandraSettings;

/// Returns a builder whose connections are encrypted, if the settings want that.
#[cfg(feature = "tls")]
pub(crate) fn secured(
    builder: SessionBuilder,
    settings: &CassandraSettings,
) -> Result<SessionBuilder, ConnectError> {
    Ok(builder.tls_context(certificates::config(settings)?))
}

/// Refuses settings that want encrypted connections.
#[cfg(not(feature = "tls"))]
pub(crate) fn secured(
    builder: SessionBuilder,
    settings: &CassandraSettings,
) -> Result<SessionBuilder, ConnectError> {
    match &settings.ca_file {
        Some(path) => Err(ConnectError::NoTls { path: path.display().to_string() }),
        None => Ok(builder),
    }
}

#[cfg(feature = "tls")]
mod certificates {
    use std::sync::Arc;

    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    use crate::database::connect_error::ConnectError;
    use crate::database::settings::CassandraSettings;

    pub(super) fn config(
        settings: &CassandraSettings,
    ) -> Result<Option<Arc<rustls::ClientConfig>>, ConnectError> {
        let Some(path) = &settings.ca_file else { return Ok(None) };
        let wrong = |reason: String| ConnectError::Certificates {
            path: path.display().to_string(),
            reason,
        };
        let mut roots = rustls::RootCertStore::empty();
        for certificate in
            CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?
        {
            let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
            roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(wrong("it has none".to_owned()));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Some(Arc::new(config)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_certificates_is_refused() {
        let settings = CassandraSettings {
            ca_file: Some("Cargo.toml".into()),
            ..CassandraSettings::default()
        };
        let error = secured(SessionBuilder::new(), &settings).err().map(|error| error.to_string());
        let expected = if cfg!(feature = "tls") {
            "the certificates in Cargo.toml: it has none"
        } else {
            "cassandra.ca_file = Cargo.toml: this build has no TLS for Cassandra, which the feature `cassandra-tls` brings"
        };
        assert_eq!(error.as_deref(), Some(expected));
    }
}

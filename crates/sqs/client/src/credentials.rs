//! Who we are: the access key that requests are signed with.

use std::fmt;

/// An access key.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Its id.
    pub access_key_id: String,
    /// What signatures are made with.
    pub secret_access_key: String,
    /// Goes with temporary keys.
    pub session_token: Option<String>,
    /// The region that the signature is for.
    pub region: String,
}

/// What is wrong with the environment's credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    /// One half of a key.
    #[error("{given} is set, but {missing} is not")]
    Half {
        /// The variable that is set.
        given: &'static str,
        /// The one that is not.
        missing: &'static str,
    },
}

/// Region where nothing says another.
const DEFAULT_REGION: &str = "us-east-1";

impl Credentials {
    /// Returns a key for the default region.
    #[must_use]
    pub fn new(access_key_id: impl Into<String>, secret_access_key: impl Into<String>) -> Self {
        Self {
            access_key_id: access_key_id.into(),
            secret_access_key: secret_access_key.into(),
            session_token: None,
            region: DEFAULT_REGION.to_owned(),
        }
    }

    /// Reads a key from the variables that all AWS tools read: `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION` or `AWS_DEFAULT_REGION`. `None`
    /// if there is no key.
    ///
    /// # Errors
    /// [`CredentialsError`] if only one half of a key is set.
    pub fn from_environment() -> Result<Option<Self>, CredentialsError> {
        Self::from_variables(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn from_variables(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, CredentialsError> {
        const ID: &str = "AWS_ACCESS_KEY_ID";
        const SECRET: &str = "AWS_SECRET_ACCESS_KEY";
        let region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
        match (variable(ID), variable(SECRET)) {
            (None, None) => Ok(None),
            (Some(_), None) => Err(CredentialsError::Half { given: ID, missing: SECRET }),
            (None, Some(_)) => Err(CredentialsError::Half { given: SECRET, missing: ID }),
            (Some(id), Some(secret)) => Ok(Some(Self {
                session_token: variable("AWS_SESSION_TOKEN"),
                region: region.unwrap_or_else(|| DEFAULT_REGION.to_owned()),
                ..Self::new(id, secret)
            })),
        }
    }
}

impl fmt::Debug for Credentials {
    /// Writes the key without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("access_key_id", &self.access_key_id)
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Credentials>, CredentialsError> {
        Credentials::from_variables(|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_key_is_read_whole_or_not_at_all() {
        assert_eq!(read(&[("AWS_REGION", "eu-west-1")]), Ok(None));
        let key = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "s")];
        assert_eq!(read(&key), Ok(Some(Credentials::new("id", "s"))));
        let region = [key[0], key[1], ("AWS_DEFAULT_REGION", "eu-west-1")];
        assert_eq!(read(&region).unwrap().unwrap().region, "eu-west-1");
        let error = read(&key[..1]).unwrap_err().to_string();
        assert_eq!(error, "AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not");
        assert!(read(&key[1..]).is_err());
    }

    #[test]
    fn the_secret_is_not_shown() {
        assert!(!format!("{:?}", Credentials::new("id", "hidden")).contains("hidden"));
    }
}

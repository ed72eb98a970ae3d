//! Settings of the embedded queues.

use std::sync::Arc;

/// The virtual host that the default account is.
const DEFAULT_VHOST: &str = "/";

/// Settings of the embedded queues.
#[derive(Clone, Debug)]
pub struct EmbeddedSettings {
    /// The account that virtual host `/` is.
    pub account_id: Arc<str>,
    /// How long a queue may not be purged again, and none of its name be made after it was deleted,
    /// in ms.
    pub cooldown_ms: u64,
}

impl EmbeddedSettings {
    /// Returns the virtual host that an account is. `/` is no account: each virtual host has one
    /// name here, else a queue could be reached under a name that its policy does not speak of.
    pub(crate) fn vhost(&self, account: &str) -> Option<Arc<str>> {
        if *account == *self.account_id {
            return Some(DEFAULT_VHOST.into());
        }
        (account != DEFAULT_VHOST).then(|| account.into())
    }

    /// Returns the account that a virtual host is.
    pub(crate) fn account(&self, vhost: &str) -> Arc<str> {
        if vhost == DEFAULT_VHOST { Arc::clone(&self.account_id) } else { vhost.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_virtual_host_has_one_account() {
        let settings = EmbeddedSettings { account_id: "000000000000".into(), cooldown_ms: 0 };
        for (account, vhost) in [("000000000000", "/"), ("111", "111"), ("a/b", "a/b")] {
            assert_eq!(settings.vhost(account).as_deref(), Some(vhost));
            assert_eq!(&*settings.account(vhost), account);
        }
        // A policy on `arn:aws:sqs:…:000000000000:q` does not fit `arn:aws:sqs:…:/:q`.
        assert_eq!(settings.vhost("/"), None);
        let moved = EmbeddedSettings { account_id: "123".into(), ..settings };
        assert_eq!(moved.vhost("/"), None);
        assert_eq!(moved.vhost("123").as_deref(), Some("/"));
    }
}

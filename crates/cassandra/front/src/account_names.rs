//! Accounts and virtual hosts are the same by two names: `/` is the default account.

use std::sync::Arc;

const DEFAULT_VHOST: &str = "/";

/// Which account the virtual host `/` is.
#[derive(Clone, Debug)]
pub(crate) struct AccountNames(Arc<str>);

impl AccountNames {
    pub(crate) fn new(default_account: &str) -> Self {
        Self(default_account.into())
    }

    /// The account that a virtual host is.
    pub(crate) fn account_of<'a>(&'a self, vhost: &'a str) -> &'a str {
        if vhost == DEFAULT_VHOST { &self.0 } else { vhost }
    }

    /// The virtual host that an account is; an account `/` is none.
    pub(crate) fn vhost_of<'a>(&self, account: &'a str) -> Option<&'a str> {
        if *account == *self.0 {
            return Some(DEFAULT_VHOST);
        }
        (account != DEFAULT_VHOST).then_some(account)
    }
}

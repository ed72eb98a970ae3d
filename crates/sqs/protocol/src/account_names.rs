//! Accounts and virtual hosts are the same by two names: `/` is the default account.

use std::sync::Arc;

const DEFAULT_VHOST: &str = "/";

/// Which account the virtual host `/` is.
#[derive(Clone, Debug)]
pub struct AccountNames(Arc<str>);

impl AccountNames {
    /// Returns the names where virtual host `/` is that account.
    #[must_use]
    pub fn new(default_account: &str) -> Self {
        Self(default_account.into())
    }

    /// Returns the account that virtual host `/` is.
    #[must_use]
    pub fn default_account(&self) -> &str {
        &self.0
    }

    /// Returns the account that a virtual host is. One that has the default account's name is none:
    /// that is another one's.
    #[must_use]
    pub fn account_of<'a>(&'a self, vhost: &'a str) -> Option<&'a str> {
        if vhost == DEFAULT_VHOST {
            return Some(&self.0);
        }
        (*vhost != *self.0).then_some(vhost)
    }

    /// Returns the virtual host that an account is; an account `/` is none.
    #[must_use]
    pub fn vhost_of<'a>(&self, account: &'a str) -> Option<&'a str> {
        if *account == *self.0 {
            return Some(DEFAULT_VHOST);
        }
        (account != DEFAULT_VHOST).then_some(account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_virtual_host_has_one_account_and_each_account_one_virtual_host() {
        let names = AccountNames::new("123");
        for (vhost, account) in [("/", "123"), ("456", "456"), ("a/b", "a/b")] {
            assert_eq!(names.account_of(vhost), Some(account));
            assert_eq!(names.vhost_of(account), Some(vhost));
        }
        assert_eq!((names.account_of("123"), names.vhost_of("/")), (None, None));
    }
}

//! Whom a statement is about.

use super::PolicyCaller;

/// `Principal` or `NotPrincipal`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Principals {
    /// Whether those are meant that are not listed.
    pub(super) others: bool,
    pub(super) listed: Vec<Principal>,
}

/// One who is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Principal {
    /// `*`, those without a key included.
    Anybody,
    /// An account with all its users.
    Account(String),
    /// One user of an account.
    User { account: String, name: String },
    /// A role, a service, somebody of another kind: it never calls here.
    Absent,
}

impl Principals {
    pub(super) fn are(&self, caller: Option<PolicyCaller<'_>>) -> bool {
        self.listed.iter().any(|principal| principal.is(caller)) != self.others
    }
}

impl Principal {
    /// Reads what stands under `AWS`: `*`, an account, or an ARN. `None` if it is nothing of these.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Anybody);
        }
        let Some(arn) = text.strip_prefix("arn:") else {
            // An account of twelve digits, or a virtual host by its name.
            let plain = !text.is_empty() && !text.contains(['*', '?', ':']);
            return plain.then(|| Self::Account(text.to_owned()));
        };
        let mut parts = arn.splitn(5, ':');
        let [partition, service, region, account, resource] =
            std::array::from_fn(|_| parts.next().unwrap_or(""));
        // A wildcard here would not be one: it stands for everybody, or not at all.
        if partition.is_empty() || !region.is_empty() || account.is_empty() || text.contains('*') {
            return None;
        }
        let account = account.to_owned();
        match (service, resource.split_once('/')) {
            ("iam", None) if resource == "root" => Some(Self::Account(account)),
            ("iam", Some(("user", name))) if !name.is_empty() => {
                Some(Self::User { account, name: name.to_owned() })
            }
            ("iam", Some(("role", name))) if !name.is_empty() => Some(Self::Absent),
            ("sts", Some(("assumed-role" | "federated-user", name))) if !name.is_empty() => {
                Some(Self::Absent)
            }
            _ => None,
        }
    }

    fn is(&self, caller: Option<PolicyCaller<'_>>) -> bool {
        match (self, caller) {
            (Self::Anybody, _) => true,
            (Self::Account(account), Some(caller)) => account == caller.account,
            (Self::User { account, name }, Some(caller)) => {
                account == caller.account && Some(&**name) == caller.user
            }
            (Self::Absent, _) | (_, None) => false,
        }
    }
}

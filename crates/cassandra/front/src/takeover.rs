//! What a log has of users, permissions, accounts and access keys goes into Cassandra.

use std::sync::Arc;

use quelea_broker::access::AccessRecords;
use quelea_cassandra_store::CassandraIdentity;
use quelea_sqs_protocol::{
    AccessKeyRecord, Fault, IdentityDirectory as _, PermissionRecord, TakenOver, UserRecord,
};

/// Takes over what a log has. What is there already stays as it is, unless `replaces`. Doing it again does it once.
///
/// # Errors
/// [`Fault::Unavailable`]; some of it may have been done.
pub(crate) async fn take_over(
    identity: &CassandraIdentity,
    records: &AccessRecords,
    replaces: bool,
) -> Result<TakenOver, Fault> {
    let mut taken = TakenOver::default();
    for vhost in &records.vhosts {
        match identity.names().account_of(vhost.as_str()) {
            Some(account) => taken.accounts += usize::from(identity.put_account(account).await?),
            None => taken.kept.push(format!("virtual host {vhost}: its name is the account of /")),
        }
    }
    let users = identity.users().await?;
    for user in &records.users {
        if !replaces && users.iter().any(|there| there.name == user.name) {
            taken.kept.push(format!("user {}", user.name));
            continue;
        }
        let record = UserRecord {
            name: Arc::clone(&user.name),
            password_hash: (&*user.password_hash).into(),
            tags: user.tags.iter().map(ToString::to_string).collect(),
        };
        identity.write_user(&record).await?;
        taken.users += 1;
    }
    take_over_permissions(identity, records, replaces, &mut taken).await?;
    let keys = identity.access_keys().await?;
    for key in &records.keys {
        if !replaces && keys.iter().any(|there| *there.id == *key.id) {
            taken.kept.push(format!("access key {}", key.id));
            continue;
        }
        let record = AccessKeyRecord {
            id: key.id.to_string(),
            user: Arc::clone(&key.user),
            vhost: key.vhost.as_str().into(),
            enabled: key.enabled,
            created_at_ms: key.created_at.as_millis(),
        };
        match identity.write_access_key(&record, &key.secret).await {
            Ok(()) => taken.access_keys += 1,
            Err(Fault::NotFound(reason)) => {
                taken.kept.push(format!("access key {}: {reason}", key.id));
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(taken)
}

async fn take_over_permissions(
    identity: &CassandraIdentity,
    records: &AccessRecords,
    replaces: bool,
    taken: &mut TakenOver,
) -> Result<(), Fault> {
    let permissions = identity.permissions().await?;
    for permission in &records.permissions {
        let vhost = permission.vhost.as_str();
        let is_same =
            |there: &&PermissionRecord| there.user == permission.user && *there.vhost == *vhost;
        let what = format!("permissions of {} in {vhost}", permission.user);
        if !replaces && permissions.iter().any(|there| is_same(&there)) {
            taken.kept.push(what);
            continue;
        }
        let record = PermissionRecord {
            user: Arc::clone(&permission.user),
            vhost: vhost.into(),
            configure: permission.configure.to_string(),
            write: permission.write.to_string(),
            read: permission.read.to_string(),
        };
        match identity.write_permission(&record).await {
            Ok(_) => taken.permissions += 1,
            // A pattern that is too large here, or a virtual host that is no account.
            Err(Fault::Invalid(reason) | Fault::NotFound(reason)) => {
                taken.kept.push(format!("{what}: {reason}"))
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}

//! What is said of the paths about users, permissions, accounts and keys, whoever keeps them: the broker's log or Cassandra.

use quelea_openapi::Operation;

use super::account_shapes::{
    AccessKeyState, Account, MadeAccessKey, NewAccessKey, NewAccount, ShownAccessKey,
};
use super::shapes::{
    List, NewPermissions, NewUser, TakeOver, UserNames, deletes, puts, shows, shows_all,
};

pub(crate) fn users() -> Operation {
    shows_all("Returns users")
}

pub(crate) fn user() -> Operation {
    shows("Returns a user")
}

pub(crate) fn put_user() -> Operation {
    puts("Makes a user, or sets the password and tags of one").body::<NewUser>()
}

pub(crate) fn delete_user() -> Operation {
    deletes("Deletes a user with the user's permissions and keys")
}

pub(crate) fn delete_users() -> Operation {
    deletes("Deletes users; those that are not there are no error").body::<UserNames>()
}

pub(crate) fn permissions() -> Operation {
    Operation::new("Returns permissions").answers::<List>(200)
}

pub(crate) fn permission() -> Operation {
    shows("Returns a user's permissions in a virtual host")
}

pub(crate) fn put_permissions() -> Operation {
    puts("Sets a user's permissions in a virtual host").body::<NewPermissions>()
}

pub(crate) fn delete_permissions() -> Operation {
    deletes("Deletes a user's permissions in a virtual host")
}

pub(crate) fn put_vhost() -> Operation {
    puts("Makes a virtual host, with all permissions for its maker")
}

pub(crate) fn delete_vhost() -> Operation {
    deletes("Deletes a virtual host with all that is in it")
}

pub(crate) fn accounts() -> Operation {
    Operation::new("Returns the SQS accounts that the user may see").answers::<Vec<Account>>(200)
}

pub(crate) fn put_account() -> Operation {
    puts("Makes an account: a virtual host by its other name; with a password, its owner too")
        .optional_body::<NewAccount>()
}

pub(crate) fn delete_account() -> Operation {
    deletes("Deletes an account with its queues and keys")
}

pub(crate) fn access_keys() -> Operation {
    Operation::new("Returns the user's access keys, or to an administrator all, without secrets")
        .answers::<Vec<ShownAccessKey>>(200)
}

pub(crate) fn access_key() -> Operation {
    Operation::new("Returns an access key without its secret").answers::<ShownAccessKey>(200)
}

pub(crate) fn create_access_key() -> Operation {
    Operation::new("Makes an access key; its secret is shown this once")
        .body::<NewAccessKey>()
        .refuses(&[404])
        .answers::<MadeAccessKey>(201)
}

pub(crate) fn enable_access_key() -> Operation {
    deletes("Enables or disables an access key").body::<AccessKeyState>()
}

pub(crate) fn delete_access_key() -> Operation {
    deletes("Deletes an access key")
}

pub(crate) fn take_over() -> Operation {
    shows("Takes over what the log beside Cassandra has of users, permissions, accounts and keys")
        .optional_body::<TakeOver>()
}

//! The paths about users, permissions, accounts and keys, with what they take and answer.

use quelea_openapi::{Operation, Route};

use super::shapes::{
    AccessKeyState, Account, MadeAccessKey, NewAccessKey, NewAccount, ShownAccessKey,
};
use super::{access_keys, accounts, password, permissions, take_over, users, vhosts};
use crate::shapes::{
    NewPermissions, NewUser, TakeOver, UserNames, deletes, lists, puts, shows, shows_one,
};
use crate::state::SharedState;

/// Returns the routes that a broker has and a front-end.
pub(crate) fn identity_routes<S: SharedState>() -> Vec<Route<S>> {
    let mut all = of_users();
    all.extend(of_permissions());
    all.extend(of_accounts());
    all.push(password::route());
    all
}

/// Returns the route that makes and deletes virtual hosts, where they are shown: at a broker.
pub(crate) fn vhost_route<S: SharedState>() -> Route<S> {
    let put = puts("Makes a virtual host, with all permissions for its maker");
    Route::at("/vhosts/{vhost}").put(vhosts::put::<S>, put).delete(
        vhosts::delete::<S>,
        deletes(
            "Deletes a virtual host with all that is in it; on Cassandra one that has no queues",
        ),
    )
}

/// Returns the route that takes over a log, for where one may be beside another store.
pub(crate) fn take_over_route<S: SharedState>() -> Route<S> {
    let take_over = shows(
        "Takes over what the log beside Cassandra has of users, permissions, accounts and keys",
    )
    .optional_body::<TakeOver>();
    Route::at("/take-over").post(take_over::take_over::<S>, take_over)
}

fn of_users<S: SharedState>() -> Vec<Route<S>> {
    let put = puts("Makes a user, or sets the password and tags of one").body::<NewUser>();
    let delete = deletes("Deletes a user with the user's permissions and keys");
    let delete_all =
        deletes("Deletes users; those that are not there are no error").body::<UserNames>();
    vec![
        Route::at("/users").get(users::list::<S>, lists("Returns users")),
        Route::at("/users/without-permissions")
            .get(users::without_permissions::<S>, lists("Returns users who may do nothing")),
        Route::at("/users/bulk-delete").post(users::bulk_delete::<S>, delete_all),
        Route::at("/auth/hash_password/{password}").get(
            users::hash_given::<S>,
            Operation::new("Returns a password's hash as RabbitMQ has it")
                .answers::<users::PasswordHash>(200),
        ),
        Route::at("/users/{user}")
            .get(users::one::<S>, shows_one("Returns a user"))
            .put(users::put::<S>, put)
            .delete(users::delete::<S>, delete),
    ]
}

fn of_permissions<S: SharedState>() -> Vec<Route<S>> {
    let one = shows_one("Returns a user's permissions in a virtual host");
    let put = puts("Sets a user's permissions in a virtual host").body::<NewPermissions>();
    let delete = deletes("Deletes a user's permissions in a virtual host");
    vec![
        Route::at("/permissions").get(permissions::list::<S>, lists("Returns permissions")),
        Route::at("/users/{user}/permissions")
            .get(permissions::of_user::<S>, lists("Returns a user's permissions")),
        Route::at("/vhosts/{vhost}/permissions")
            .get(permissions::of_vhost::<S>, lists("Returns the permissions in a virtual host")),
        Route::at("/permissions/{vhost}/{user}")
            .get(permissions::one::<S>, one)
            .put(permissions::put::<S>, put)
            .delete(permissions::delete::<S>, delete),
    ]
}

fn of_accounts<S: SharedState>() -> Vec<Route<S>> {
    let accounts = Operation::new("Returns the SQS accounts that the user may see")
        .answers::<Vec<Account>>(200);
    let put_account =
        puts("Makes an account: a virtual host by its other name; with a password, its owner too")
            .optional_body::<NewAccount>();
    let keys = Operation::new(
        "Returns the user's access keys, or to an administrator all, without secrets",
    )
    .answers::<Vec<ShownAccessKey>>(200);
    let key = Operation::new("Returns an access key without its secret");
    let create = Operation::new("Makes an access key; its secret is shown this once")
        .body::<NewAccessKey>()
        .refuses(&[404])
        .answers::<MadeAccessKey>(201);
    let enable = deletes("Enables or disables an access key").body::<AccessKeyState>();
    vec![
        Route::at("/accounts").get(accounts::list::<S>, accounts),
        Route::at("/accounts/{account}").put(accounts::put::<S>, put_account).delete(
            accounts::delete::<S>,
            deletes(
                "Deletes an account with its queues and keys; on Cassandra one that has no queues",
            ),
        ),
        Route::at("/access-keys")
            .get(access_keys::list::<S>, keys)
            .post(access_keys::create::<S>, create),
        Route::at("/access-keys/{id}")
            .get(access_keys::one::<S>, key.answers::<ShownAccessKey>(200))
            .put(access_keys::enable::<S>, enable)
            .delete(access_keys::delete::<S>, deletes("Deletes an access key")),
    ]
}

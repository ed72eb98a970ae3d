//! Users, permissions, virtual hosts, accounts and access keys below `/api`: the same of a broker, whose log has them, and of a
//! front-end on Cassandra. Handlers reach them through [`quelea_sqs_protocol::IdentityDirectory`] alone. Start with
//! `routes.rs`.

mod access_keys;
mod accounts;
mod broker;
mod owner;
mod password;
mod permissions;
mod routes;
mod shapes;
mod take_over;
pub(crate) mod users;
pub(crate) mod vhosts;

pub(crate) use password::store_better_hashes;
pub(crate) use permissions::{check_patterns, to_json as permission_to_json};
pub(crate) use routes::{identity_routes, take_over_route, vhost_route};

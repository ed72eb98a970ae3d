//! `quelea admin`: all that the management API of a running broker has: queues and messages, exchanges, bindings,
//! connections, users, virtual hosts, permissions, accounts, access keys, definitions, elastic queues,
//! replicated queues and their cluster, datagram peers, the audit trail, the log's segments.

mod access_key;
mod account;
mod argument;
mod audit;
mod binding;
mod client;
mod cluster;
mod connection;
mod datagram;
mod definitions;
mod elastic;
mod exchange;
mod input;
mod log;
mod moves;
mod overview;
mod pages;
mod permission;
mod publish;
mod queue;
mod replicated;
mod sqs;
mod table;
mod takeover;
mod token;
mod top;
mod user;
mod vhost;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use self::client::{Client, ClientError, Credentials};
use crate::exit;

/// Manage users, virtual hosts, permissions and queues of a running broker.
#[derive(Debug, Args)]
pub(crate) struct AdminArgs {
    /// The management API's address.
    #[arg(long, env = "QUELEA_ADMIN_URL", default_value = "http://127.0.0.1:15672", global = true)]
    url: String,
    /// Whom to log in as.
    #[arg(long = "user", env = "QUELEA_ADMIN_USER", default_value = "guest", global = true)]
    login_user: String,
    /// The password to log in with.
    #[arg(
        long = "password",
        env = "QUELEA_ADMIN_PASSWORD",
        default_value = "guest",
        hide_env_values = true,
        global = true
    )]
    login_password: String,
    /// A token to log in with instead of a password, as `token create` makes it.
    #[arg(long, env = "QUELEA_ADMIN_TOKEN", hide_env_values = true, global = true)]
    token: Option<String>,
    /// Print JSON instead of a table.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    resource: Resource,
}

#[derive(Debug, Subcommand)]
enum Resource {
    /// Users and their passwords and tags.
    #[command(subcommand)]
    User(user::Command),
    /// Tokens, which scripts show instead of a password.
    #[command(subcommand)]
    Token(token::Command),
    /// Virtual hosts.
    #[command(subcommand)]
    Vhost(vhost::Command),
    /// What a user may configure, write and read in a virtual host.
    #[command(subcommand)]
    Permission(permission::Command),
    /// Accounts of the SQS interface; each is a virtual host.
    #[command(subcommand)]
    Account(account::Command),
    /// Access keys, with which clients of the SQS interface sign their requests.
    #[command(subcommand)]
    AccessKey(access_key::Command),
    /// At a broker beside Cassandra: has Cassandra take over the users, permissions, accounts and access keys of its log.
    TakeOver(takeover::Args),
    /// Queues of a virtual host, and their messages.
    #[command(subcommand)]
    Queue(queue::Command),
    /// Exchanges of a virtual host.
    #[command(subcommand)]
    Exchange(exchange::Command),
    /// Bindings: what an exchange sends where.
    #[command(subcommand)]
    Binding(binding::Command),
    /// Connections, their channels and consumers.
    #[command(subcommand)]
    Connection(connection::Command),
    /// Totals and rates.
    Overview,
    /// What goes on, live in the terminal: totals, rates, queues, connections, elastic queues.
    Top(top::TopArgs),
    /// Users, virtual hosts, permissions, exchanges, queues and bindings as one document.
    #[command(subcommand)]
    Definitions(definitions::Command),
    /// Elastic queues: their relays, what was decided about them, what would be.
    #[command(subcommand)]
    Elastic(elastic::Command),
    /// Replicated queues, which are in Cassandra, and their messages.
    Replicated(replicated::ReplicatedArgs),
    /// The front-ends of replicated queues, and Cassandra's nodes.
    Cluster,
    /// Peers that send by CMQ, and what was lost of each.
    Datagram,
    /// The last changes, the latest first: who made what of them, from where.
    Audit,
    /// The log that durable messages are in.
    #[command(subcommand)]
    Log(log::Command),
    /// An operation of the SQS interface, with the JSON of the AWS service.
    Sqs(sqs::SqsArgs),
}

/// Why a command failed; each prints as one sentence.
#[derive(Debug, thiserror::Error)]
enum AdminError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("user {name:?} exists already; `user password` and `user tags` change it")]
    UserExists { name: String },
    #[error("argument {text:?} is not NAME=VALUE")]
    Argument { text: String },
    #[error("cannot read standard input: {0}")]
    Input(std::io::Error),
    #[error("the message fits no queue, and is gone")]
    Unroutable,
    #[error("top needs a terminal; `overview` and the lists have --json for scripts")]
    NoTerminal,
    #[error("the terminal failed: {0}")]
    Terminal(std::io::Error),
    #[error("the move {state}: {moved} of {wanted} messages were moved{why}")]
    Move { state: String, moved: u64, wanted: u64, why: String },
    #[error("there is no account of virtual host \"/\" that you see; name one by --account")]
    NoAccount,
    #[error("the request is no JSON object: {0}")]
    Request(String),
    #[error("there is no such binding")]
    NoSuchBinding,
    #[error("cannot read definitions from {}: {problem}", file.display())]
    Document { file: PathBuf, problem: String },
    #[error("field {text:?} is not FIELD=VALUE")]
    Field { text: String },
}

/// Runs one command; prints its result or its error.
pub(crate) fn run(args: AdminArgs) -> ExitCode {
    match dispatch(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::fail("quelea admin", error),
    }
}

fn dispatch(args: AdminArgs) -> Result<(), AdminError> {
    let credentials = match &args.token {
        Some(token) => Credentials::Token(token),
        None => Credentials::Password(&args.login_user, &args.login_password),
    };
    let client = Client::new(&args.url, credentials)?;
    let output = if args.json { table::Output::Json } else { table::Output::Table };
    match args.resource {
        Resource::User(command) => user::run(command, &client, output),
        Resource::Token(command) => token::run(&command, &client, output),
        Resource::Vhost(command) => vhost::run(command, &client, output),
        Resource::Permission(command) => permission::run(command, &client, output),
        Resource::Account(command) => account::run(command, &client, output),
        Resource::AccessKey(command) => access_key::run(command, &client, output),
        Resource::TakeOver(args) => takeover::run(&args, &client, output),
        Resource::Queue(command) => queue::run(command, &client, output),
        Resource::Exchange(command) => exchange::run(command, &client, output),
        Resource::Binding(command) => binding::run(command, &client, output),
        Resource::Connection(command) => connection::run(command, &client, output),
        Resource::Overview => overview::run(&client, output),
        Resource::Top(args) => top::run(args, client, output),
        Resource::Definitions(command) => definitions::run(command, &client),
        Resource::Elastic(command) => elastic::run(command, &client, output),
        Resource::Replicated(args) => replicated::run(args, &client, output),
        Resource::Cluster => cluster::run(&client, output),
        Resource::Datagram => datagram::run(&client, output),
        Resource::Audit => audit::run(&client, output),
        Resource::Log(command) => log::run(&command, &client, output),
        Resource::Sqs(args) => sqs::run(args, &client),
    }
}

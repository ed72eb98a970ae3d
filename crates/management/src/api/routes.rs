//! The routes below `/api` with what they take and answer. Those of users, permissions, accounts and keys stand in
//! `identity/routes.rs`.

use axum::extract::DefaultBodyLimit;
use quelea_broker::access::TopicPermission;
use quelea_broker::report::{
    BindingReport, ConsumerReport, ExchangeReport, QueueReport, VhostReport,
};
use quelea_openapi::{Operation, Route};

use super::listing::{list, list_all, list_in};
use super::rates::RawRateQuery;
use super::{
    bindings, channels, connections, definitions, exchanges, health, later, messages, nodes,
    overview, queues, topic_permissions, vhosts,
};
use crate::identity::{identity_routes, users, vhost_route};
use crate::limits::DEFINITIONS_BYTES_MAX;
use crate::shapes::{
    DefinitionsDocument, GetMessages, Health, NewBinding, NewExchange, NewMessage, NewQueue,
    NewTopicPermissions, Published, QueueAction, TopicPermissionsOf, deletes, lists, puts, shows,
    shows_all, shows_one,
};
use crate::state::{ApiState, BrokerState};
use crate::v1;

/// Returns all routes but those about users, and those that make and delete virtual hosts.
pub(super) fn of_broker() -> Vec<Route<ApiState>> {
    let all = [
        of_node(),
        health_checks(),
        of_connections(),
        of_queues(),
        of_exchanges(),
        of_bindings(),
        of_topic_permissions(),
    ];
    all.into_iter().flatten().collect()
}

/// Returns the other routes, whoever keeps users.
pub(crate) fn of_access<S: BrokerState>() -> Vec<Route<S>> {
    let mut all = identity_routes();
    all.push(vhost_route());
    all.push(
        Route::at("/users/{user}/topic-permissions")
            .get(topic_permissions::of_user::<S>, lists("Returns a user's topic permissions")),
    );
    all.extend(of_definitions());
    all
}

/// Describes an operation that is not supported yet.
fn later(summary: &'static str) -> Operation {
    Operation::new(summary).refuses(&[400])
}

fn of_node() -> Vec<Route<ApiState>> {
    let overview =
        shows_one("Returns totals: of the broker, or of the virtual hosts that the user sees")
            .query::<RawRateQuery>();
    vec![
        Route::at("/overview").get(overview::overview, overview),
        Route::at("/nodes").get(nodes::list, shows_all("Returns the node, in a list")),
        Route::at("/nodes/{name}")
            .get(nodes::one, shows_one("Returns the node").query::<nodes::NodeQuery>()),
        Route::at("/nodes/{name}/memory")
            .get(nodes::memory, shows("Returns what the node's memory holds")),
        Route::at("/cluster-name")
            .get(nodes::cluster_name, shows("Returns the node's name as the cluster's"))
            .put(later::name_cluster, later("Names the cluster")),
        Route::at("/extensions")
            .get(nodes::extensions, shows_all("Returns the extensions of the API: none")),
        Route::at("/audit").get(v1::audit::<ApiState>, v1::audit_operation()),
        Route::at("/auth").get(nodes::auth, shows("Returns how one signs in").public()),
        Route::at("/auth/attempts/{node}")
            .get(nodes::auth_attempts, shows_all("Returns how many failed to sign in, by protocol"))
            .delete(later::reset_attempts, later("Resets these counts")),
        Route::at("/whoami").get(users::whoami::<ApiState>, shows("Returns the user who asks")),
    ]
}

fn health_checks() -> Vec<Route<ApiState>> {
    let check = |summary| Operation::new(summary).answers::<Health>(200).answers::<Health>(503);
    let blocked = || check("Fails while publishers are blocked");
    let answers = || check("Fails if the broker does not answer");
    let listens = |summary| check(summary).refuses(&[400]);
    vec![
        Route::at("/aliveness-test/{vhost}")
            .get(health::aliveness, check("Has a message go through a queue")),
        Route::at("/healthchecks/node").get(health::alarms, blocked()),
        Route::at("/healthchecks/node/{node}").get(health::alarms_of, blocked()),
        Route::at("/health/checks/alarms").get(health::alarms, blocked()),
        Route::at("/health/checks/local-alarms").get(health::alarms, blocked()),
        Route::at("/health/checks/unreadable-messages").get(
            health::unreadable_messages,
            check("Fails while messages cannot be read from the log"),
        ),
        Route::at("/health/checks/ready-to-serve-clients")
            .get(health::ready_to_serve, check("Fails if no client can connect")),
        Route::at("/health/checks/below-node-connection-limit").get(
            health::below_connection_limit,
            check("Fails when there are as many connections as there may be"),
        ),
        Route::at("/health/checks/virtual-hosts").get(health::alive, answers()),
        Route::at("/health/checks/port-listener/{port}")
            .get(health::port_listener, listens("Fails if nobody listens at the port")),
        Route::at("/health/checks/protocol-listener/{protocol}")
            .get(health::protocol_listener, listens("Fails if nobody listens for the protocol")),
        Route::at("/health/checks/certificate-expiration/{within}/{unit}")
            .get(health::certificate_expiration, answers().refuses(&[400])),
        Route::at("/health/checks/node-is-mirror-sync-critical").get(health::alive, answers()),
        Route::at("/health/checks/node-is-quorum-critical").get(health::alive, answers()),
        Route::at("/health/checks/is-in-service").get(health::alive, answers()),
    ]
}

fn of_connections() -> Vec<Route<ApiState>> {
    vec![
        Route::at("/connections")
            .get(list::<connections::ListedConnection>, lists("Returns connections")),
        Route::at("/connections/{name}")
            .get(connections::one, shows_one("Returns a connection"))
            .delete(
                connections::close,
                deletes("Closes a connection; the header X-Reason says why"),
            ),
        Route::at("/connections/username/{user}")
            .get(connections::of_user, lists("Returns a user's connections"))
            .delete(connections::close_of_user, deletes("Closes a user's connections")),
        Route::at("/connections/{name}/channels")
            .get(channels::of_connection, lists("Returns a connection's channels")),
        Route::at("/channels").get(list::<channels::ListedChannel>, lists("Returns channels")),
        Route::at("/channels/{name}")
            .get(channels::one, shows_one("Returns a channel with its consumers")),
        Route::at("/consumers").get(list::<ConsumerReport>, lists("Returns consumers")),
        Route::at("/consumers/{vhost}")
            .get(list_in::<ConsumerReport>, lists("Returns a virtual host's consumers")),
        Route::at("/vhosts").get(list::<VhostReport>, lists("Returns virtual hosts")),
        Route::at("/vhosts/{vhost}")
            .get(vhosts::one, shows_one("Returns a virtual host").query::<RawRateQuery>()),
        Route::at("/vhosts/{vhost}/start/{node}")
            .post(nodes::start_vhost, deletes("Does nothing: a virtual host runs on its one node")),
        Route::at("/vhosts/{vhost}/connections").get(
            list_in::<connections::ListedConnection>,
            lists("Returns a virtual host's connections"),
        ),
        Route::at("/vhosts/{vhost}/channels")
            .get(list_in::<channels::ListedChannel>, lists("Returns a virtual host's channels")),
    ]
}

fn of_queues() -> Vec<Route<ApiState>> {
    vec![
        Route::at("/queues").get(list::<QueueReport>, lists("Returns queues")),
        // As RabbitMQ has it since 3.13, where the list above is shorter. It goes before a virtual host of that name.
        Route::at("/queues/detailed")
            .get(list::<QueueReport>, lists("Returns queues with all their fields")),
        Route::at("/queues/{vhost}")
            .get(list_in::<QueueReport>, lists("Returns a virtual host's queues")),
        Route::at("/queues/{vhost}/{name}")
            .get(
                queues::one,
                shows_one("Returns a queue with its consumers").query::<RawRateQuery>(),
            )
            .put(queues::declare, puts("Declares a queue").optional_body::<NewQueue>())
            .delete(queues::delete, deletes("Deletes a queue").query::<queues::DeleteQuery>()),
        Route::at("/queues/{vhost}/{name}/contents")
            .delete(queues::purge, deletes("Deletes a queue's messages that are ready")),
        Route::at("/queues/{vhost}/{name}/get").post(
            messages::get,
            shows_all("Returns messages of a queue, which it keeps, loses or dead-letters")
                .body::<GetMessages>(),
        ),
        Route::at("/queues/{vhost}/{name}/actions").post(
            nodes::queue_action,
            deletes("Does nothing: a queue has no mirrors").body::<QueueAction>(),
        ),
        Route::at("/queues/{vhost}/{name}/bindings")
            .get(bindings::of_queue, lists("Returns a queue's bindings")),
    ]
}

fn of_exchanges() -> Vec<Route<ApiState>> {
    vec![
        Route::at("/exchanges").get(list::<ExchangeReport>, lists("Returns exchanges")),
        Route::at("/exchanges/{vhost}")
            .get(list_in::<ExchangeReport>, lists("Returns a virtual host's exchanges")),
        Route::at("/exchanges/{vhost}/{name}")
            .get(exchanges::one, shows_one("Returns an exchange"))
            .put(exchanges::declare, puts("Declares an exchange").optional_body::<NewExchange>())
            .delete(
                exchanges::delete,
                deletes("Deletes an exchange").query::<exchanges::DeleteQuery>(),
            ),
        Route::at("/exchanges/{vhost}/{name}/publish").post(
            messages::publish,
            Operation::new("Publishes a message, and answers when it is in its queues")
                .body::<NewMessage>()
                .answers::<Published>(200),
        ),
        Route::at("/exchanges/{vhost}/{name}/bindings/source")
            .get(bindings::from_exchange, lists("Returns the bindings from an exchange")),
        Route::at("/exchanges/{vhost}/{name}/bindings/destination")
            .get(bindings::to_exchange, lists("Returns the bindings to an exchange")),
    ]
}

fn of_bindings() -> Vec<Route<ApiState>> {
    let binds = || {
        Operation::new("Binds, and returns the binding's properties key in Location")
            .optional_body::<NewBinding>()
            .answers_status(201)
    };
    let one = || shows_one("Returns a binding");
    let all = || lists("Returns the bindings of a pair");
    let unbinds = || deletes("Unbinds");
    vec![
        Route::at("/bindings").get(list::<BindingReport>, lists("Returns bindings")),
        Route::at("/bindings/{vhost}")
            .get(list_in::<BindingReport>, lists("Returns a virtual host's bindings")),
        Route::at("/bindings/{vhost}/e/{source}/q/{destination}")
            .get(bindings::queue_pair, all())
            .post(bindings::bind_queue, binds()),
        Route::at("/bindings/{vhost}/e/{source}/q/{destination}/{properties_key}")
            .get(bindings::one_of_queue, one())
            .delete(bindings::unbind_queue, unbinds()),
        Route::at("/bindings/{vhost}/e/{source}/e/{destination}")
            .get(bindings::exchange_pair, all())
            .post(bindings::bind_exchange, binds()),
        Route::at("/bindings/{vhost}/e/{source}/e/{destination}/{properties_key}")
            .get(bindings::one_of_exchange, one())
            .delete(bindings::unbind_exchange, unbinds()),
    ]
}

fn of_topic_permissions() -> Vec<Route<ApiState>> {
    vec![
        Route::at("/topic-permissions")
            .get(list_all::<TopicPermission>, lists("Returns topic permissions")),
        Route::at("/vhosts/{vhost}/topic-permissions")
            .get(topic_permissions::of_vhost, lists("Returns a virtual host's topic permissions")),
        Route::at("/topic-permissions/{vhost}/{user}")
            .get(
                topic_permissions::one,
                shows_all("Returns a user's topic permissions in a virtual host"),
            )
            .put(
                topic_permissions::put,
                puts("Sets a user's topic permissions").body::<NewTopicPermissions>(),
            )
            .delete(
                topic_permissions::delete,
                deletes("Deletes a user's topic permissions").optional_body::<TopicPermissionsOf>(),
            ),
        Route::at("/topic-permissions/{vhost}/{user}/{exchange}")
            .get(
                topic_permissions::one_of_exchange,
                shows("Returns a user's topic permissions on an exchange"),
            )
            .delete(
                topic_permissions::delete_of_exchange,
                deletes("Deletes a user's topic permissions on an exchange"),
            ),
    ]
}

fn of_definitions<S: BrokerState>() -> Vec<Route<S>> {
    let imports = |summary| {
        deletes(summary).query::<definitions::ImportQuery>().optional_body::<DefinitionsDocument>()
    };
    let large = DefaultBodyLimit::max(DEFINITIONS_BYTES_MAX);
    // By its name of today, and that of RabbitMQ's first versions.
    let exports = |summary| shows(summary).query::<definitions::ExportQuery>();
    let whole = |path| {
        Route::at(path)
            .get(definitions::all::<S>, exports("Returns all that is declared"))
            .post(definitions::import_all::<S>, imports("Declares all of a document, or nothing"))
    };
    let all = vec![
        whole("/definitions"),
        whole("/all-configuration"),
        Route::at("/definitions/{vhost}")
            .get(definitions::of_vhost::<S>, exports("Returns what is declared in a virtual host"))
            .post(
                definitions::import_in::<S>,
                imports("Declares all of a document in a virtual host, or nothing"),
            ),
    ];
    all.into_iter().map(|route| route.map(|methods| methods.layer(large))).collect()
}

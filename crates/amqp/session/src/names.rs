//! Names of queues and exchanges as clients give them.

/// Returns the name without line ends, which RabbitMQ leaves out where queues and exchanges are
/// declared, deleted and bound: a client that read it from a file means the name before its end.
/// Other methods take names as they are.
pub(crate) fn without_line_ends(name: &str) -> String {
    name.replace(['\r', '\n'], "")
}

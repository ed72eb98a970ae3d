//! What can end a suite early.

use super::args::Role;

/// Why a suite ended before its last round. What was measured before is in the report.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// A role said why it cannot go on.
    #[error("the {}: {why}", role.name())]
    Role {
        /// Who.
        role: Role,
        /// In its words.
        why: String,
    },
    /// A role's process, or its connection, ended.
    #[error("the {} ended", role.name())]
    Ended {
        /// Who.
        role: Role,
    },
    /// A role could not be started, or something else came to where roles are awaited.
    #[error("cannot start the {}: {why}", role.name())]
    Start {
        /// Who.
        role: Role,
        /// The system's reason.
        why: String,
    },
    /// Of a role: the coordinator does not take it.
    #[error("the coordinator does not take this role: {why}")]
    TurnedAway {
        /// In its words.
        why: String,
    },
    /// Of a role: no order came any more, nor that to quit.
    #[error("the coordinator ended, or its connection, before the suite did")]
    CoordinatorEnded,
    /// What arrived is not what was sent.
    #[error("{case}, {size} B: {complaint}")]
    Broken {
        /// The experiment.
        case: String,
        /// Bytes of a message.
        size: usize,
        /// What is wrong.
        complaint: String,
    },
    /// Of a publisher: more came back than its consumers had to reply.
    #[error("after the end of a round {complaint}")]
    LateReplies {
        /// What is wrong.
        complaint: String,
    },
    /// Nothing moved.
    #[error("no message moved for {seconds} s: {sent} sent, {received} received")]
    Stalled {
        /// How long was waited.
        seconds: u64,
        /// By all publishers, in this round.
        sent: u64,
        /// By all consumers.
        received: u64,
    },
    /// The broker takes too long to declare what some cases need; the others were measured.
    #[error("left out: {}", cases.join("; "))]
    LeftOut {
        /// The experiments, with how far each came.
        cases: Vec<String>,
    },
    /// Network namespaces could not be made.
    #[error("--network: {0}")]
    Network(String),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

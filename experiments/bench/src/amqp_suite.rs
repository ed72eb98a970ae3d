//! `quelea bench amqp-suite`: the benchmarks of Subramoni, Marsh, Narravula, Lai, Panda: "Design and Evaluation of
//! Benchmarks for Financial Applications using Advanced Message Queuing Protocol (AMQP) over InfiniBand", sections 3
//! and 4, against any AMQP 0-9-1 broker. For every message size each publisher sends a number of messages, each
//! consumer answers the last of them (in ping-pong each of them), and the clock stops when the publisher has all
//! answers. Publishers, broker and consumers are processes of their own, on any hosts.

pub(crate) mod args;
mod baseline;
mod case;
mod conversation;
mod coordinator;
pub(crate) mod error;
mod network;
mod numbered_pieces;
mod peers;
mod protocol;
mod report;
mod role;
mod roles;
mod round_check;
mod topology;

use crate::error::BenchError;

use args::{AmqpSuiteArgs, Role};

/// Runs the suite, or a role of it.
pub(crate) fn run(args: &AmqpSuiteArgs) -> Result<(), BenchError> {
    let (cases, rounds) = case::cases(args)?;
    match args.role {
        Role::Coordinator => coordinator::run(args, &cases, &rounds),
        Role::Publisher | Role::Consumer | Role::Relay => role::run(args),
    }
}

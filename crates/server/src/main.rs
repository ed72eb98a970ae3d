//! The binary `quelea`: its sub-commands. [`serve`] wires the broker together.

mod admin;
mod bench;
mod cli;
mod config;
mod elastic_pipe;
mod exit;
mod key_file;
mod logging;
mod pipe;
mod pop;
mod push;
mod relay;
mod serve;
mod shell;
mod signals;
mod stdout;

use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use quelea_elastic_directory::provider::process::hold;

use crate::cli::{ConfigArgs, ShowArgs};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A message queue in which every queue picks its own point between speed and guarantees.
#[derive(Debug, Parser)]
#[command(name = "quelea", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the broker.
    Serve(ConfigArgs),
    /// Print the configuration that is in force, or the reference of all keys.
    Config(ShowArgs),
    /// Manage users, virtual hosts, permissions and queues of a running broker.
    Admin(admin::AdminArgs),
    /// Put a broker under load and measure it.
    Bench(bench::BenchArgs),
    /// Send each line of standard input to a CMQ peer (UDP, no broker).
    Push(push::PushArgs),
    /// Print what CMQ peers send here, a line each (UDP, no broker).
    Pop(pop::PopArgs),
    /// Publish to and listen to elastic queues.
    Elastic(elastic_pipe::ElasticArgs),
    /// Run one relay of an elastic queue.
    Relay(Box<relay::RelayArgs>),
    /// Print a script that completes commands in a shell.
    Completions(shell::CompletionsArgs),
    /// Print the manual page, or write those of all commands.
    Man(shell::ManArgs),
    /// Wait for a directory's word, then become a relay. Only directories use it.
    #[command(hide = true)]
    Hold(HoldArgs),
}

#[derive(Debug, Args)]
struct HoldArgs {
    /// The relay's command line.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(args) => match args.config() {
            Ok(config) => serve::run(&args, &config),
            Err(error) => exit::refuse("quelea", error),
        },
        Command::Config(args) => match args.print() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => exit::refuse("quelea", error),
        },
        Command::Admin(args) => admin::run(args),
        Command::Push(args) => push::run(&args),
        Command::Pop(args) => pop::run(&args),
        Command::Elastic(args) => elastic_pipe::run(&args),
        Command::Relay(args) => relay::run(&args),
        Command::Hold(args) => hold::run(&args.arguments),
        Command::Bench(args) => bench::run(&args),
        Command::Completions(args) => shell::completions(&args, Cli::command()),
        Command::Man(args) => shell::man(&args, Cli::command()),
    }
}

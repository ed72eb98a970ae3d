//! The binary `quelea`. [`cli`] is what can be asked for; [`serve`] wires the broker together.

mod admin;
mod bench;
mod bridge;
mod cli;
mod cmq;
mod config;
mod elastic;
mod elastic_pipe;
mod key_file;
mod pipe;
mod pop;
mod push;
mod relay;
mod serve;
mod sqs;
mod wiring;

use std::process::ExitCode;

use clap::Parser as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::Cli::parse().run()
}

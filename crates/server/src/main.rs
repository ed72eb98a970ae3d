//! The binary `quelea`. [`cli`] is what can be asked for; [`serve`] wires the broker together.

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
mod signals;

use std::process::ExitCode;

use clap::Parser as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::Cli::parse().run()
}

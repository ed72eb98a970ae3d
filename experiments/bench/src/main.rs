//! The binary `quelea-bench`, which `quelea bench` becomes when it lies beside it.

use std::process::ExitCode;

use clap::Parser;
use quelea_bench::BenchArgs;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Puts a broker under load and measures it.
#[derive(Debug, Parser)]
#[command(name = "quelea-bench", bin_name = "quelea bench", version, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    bench: BenchArgs,
}

fn main() -> ExitCode {
    match quelea_bench::run(Cli::parse().bench) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quelea bench: {error}");
            ExitCode::FAILURE
        }
    }
}

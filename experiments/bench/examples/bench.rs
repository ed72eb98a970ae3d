//! `quelea bench` by itself, without the rest of the binary:
//! `cargo run --release -p quelea-bench --example bench -- amqp --help`.

use std::process::ExitCode;

use clap::Parser;
use quelea_bench::BenchArgs;

#[derive(Parser)]
#[command(name = "bench", about = "Measures brokers and disks")]
struct Line {
    #[command(flatten)]
    bench: BenchArgs,
}

fn main() -> ExitCode {
    match quelea_bench::run(Line::parse().bench) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

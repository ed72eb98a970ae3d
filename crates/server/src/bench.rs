//! `quelea bench`: this process becomes `quelea-bench`, a binary of its own that lies beside this one. The
//! load generator is no part of the product's build.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use clap::Args;

use crate::exit;

const PROGRAM: &str = "quelea-bench";

/// How to get it, for whoever does not have it.
const HOW_TO_BUILD: &str =
    "`make bench-build` builds it, or `cargo build --release -p quelea-bench` in experiments/";

#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct BenchArgs {
    /// What `quelea-bench` gets, word for word; `--help` is its own.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Replaces this process, so that exit code and signals are the other's. Returns only if that fails.
pub(crate) fn run(args: &BenchArgs) -> ExitCode {
    let program = match env::current_exe() {
        Ok(own) => own.with_file_name(PROGRAM),
        Err(error) => return fail(&format!("this executable's folder is not known: {error}")),
    };
    let error = Command::new(&program).args(&args.arguments).exec();
    match error.kind() {
        io::ErrorKind::NotFound => {
            fail(&format!("there is no {}; {HOW_TO_BUILD}", program.display()))
        }
        _ => fail(&format!("{}: {error}", program.display())),
    }
}

fn fail(reason: &str) -> ExitCode {
    exit::fail("quelea bench", reason)
}

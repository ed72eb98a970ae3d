//! What a shell and `man` know of the command line: `quelea completions` and `quelea man`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::{exit, stdout};

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Whose: the script goes to standard output.
    shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Writes a page for each command into this directory; without it, the page of `quelea` goes to standard output.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints the script.
pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "quelea", &mut script);
    stdout::print_bytes(&script);
    ExitCode::SUCCESS
}

/// Prints or writes manual pages.
pub(crate) fn man(args: &ManArgs, command: Command) -> ExitCode {
    let done = match &args.dir {
        Some(dir) => pages(command, dir),
        None => print_page(command),
    };
    done.map_or_else(|error| exit::fail("quelea", error), |()| ExitCode::SUCCESS)
}

fn print_page(command: Command) -> io::Result<()> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    stdout::print_bytes(&page);
    Ok(())
}

fn pages(command: Command, dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    clap_mangen::generate_to(command, dir)
}

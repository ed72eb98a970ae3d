//! `quelea bench papers`: the experiments of the four papers, which a script of the source tree runs, with
//! this program, the `quelea` beside it and the peers that it finds.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::error::BenchError;
use crate::serve_process::program;

const SCRIPT: &str = "experiments/papers/papers.py";

/// What the script is given.
#[derive(Debug, Clone, Args)]
pub struct PapersArgs {
    /// The checkout whose script is run; without it that of the build
    #[arg(long, value_name = "DIRECTORY")]
    pub tree: Option<PathBuf>,
    /// The broker, if not the `quelea` beside this one
    #[arg(long, value_name = "FILE")]
    pub quelea: Option<PathBuf>,
    /// The script's own, as `--quick`, `--full`, `--only cmq,eqs`; all with `-- --help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
}

/// Becomes the script.
///
/// # Errors
/// [`BenchError`] if there is no such script, or no `python3` to run it.
pub(crate) fn run(args: &PapersArgs) -> Result<(), BenchError> {
    let tree = args.tree.clone().unwrap_or_else(tree_of_the_build);
    let script = tree.join(SCRIPT);
    if !script.is_file() {
        let missing = format!(
            "--tree: there is no {}: the experiments are scripts of Quelea's source tree",
            script.display()
        );
        return Err(BenchError::Arguments(missing));
    }
    let quelea = program(args.quelea.as_deref())
        .map_err(|error| BenchError::Arguments(format!("--quelea: {error}")))?;
    let mut python = Command::new("python3");
    python.arg(&script).arg("--quelea").arg(quelea).args(&args.arguments);
    let source = python.exec();
    Err(BenchError::File { doing: "cannot run python3 with", path: script, source })
}

/// Returns the checkout that this was built in.
fn tree_of_the_build() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

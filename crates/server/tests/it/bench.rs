//! `quelea bench` becomes the program `quelea-bench` beside it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A folder with the built binary and, if there is one, a script as `quelea-bench`.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, script: Option<&str>) -> Self {
        // In the target directory, where a hard link spares copying the binary.
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        fs::hard_link(env!("CARGO_BIN_EXE_quelea"), folder.join("quelea")).unwrap();
        if let Some(script) = script {
            let path = folder.join("quelea-bench");
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self(folder)
    }

    fn bench(&self, words: &[&str]) -> Output {
        Command::new(self.0.join("quelea")).arg("bench").args(words).output().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn bench_gets_every_argument_verbatim_and_its_exit_code_is_kept() {
    let folder = Folder::new("arguments", Some("#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit 7\n"));
    let words = ["--help", "amqp", "-z", "1", "--", "--version", "two words", ""];
    let output = folder.bench(&words);
    assert_eq!(output.status.code(), Some(7));
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed.split_terminator('\n').collect::<Vec<_>>(), words);
}

#[test]
fn bench_dies_by_the_signal_that_killed_it() {
    let folder = Folder::new("signal", Some("#!/bin/sh\nkill -TERM $$\n"));
    assert_eq!(folder.bench(&[]).status.signal(), Some(15));
}

#[test]
fn without_the_load_generator_bench_says_how_to_build_it() {
    let folder = Folder::new("missing", None);
    let output = folder.bench(&["amqp"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("quelea-bench; `make bench-build` builds it"), "{said}");
}

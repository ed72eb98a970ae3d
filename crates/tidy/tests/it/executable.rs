//! What is run by its path can be: it has the executable bit.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use quelea_tidy::Repository;

use crate::assert_none;

fn is_executable(repository: &Repository, path: &str) -> bool {
    let file = fs::metadata(repository.path(path));
    file.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[test]
fn every_script_with_an_interpreter_is_executable() {
    let repository = Repository::open();
    let scripts: Vec<_> = repository
        .files("", &[".py", ".sh"])
        .into_iter()
        .filter(|path| repository.read(path).starts_with("#!"))
        .collect();
    assert!(scripts.len() > 5, "the scripts were found");
    let faults: Vec<_> =
        scripts.into_iter().filter(|path| !is_executable(&repository, path)).collect();
    assert_none("scripts that begin with #! and are not executable", &faults);
}

#[test]
fn every_file_that_a_page_runs_by_its_path_is_executable() {
    let repository = Repository::open();
    let run: BTreeSet<_> = repository
        .files("", &[".md"])
        .iter()
        .flat_map(|page| {
            let text = repository.read(page);
            commands(&text).map(|command| (page.clone(), command.to_owned())).collect::<Vec<_>>()
        })
        .filter(|(_, command)| repository.path(command).is_file())
        .collect();
    assert!(run.len() > 5, "the commands were found");
    let wrong = run.iter().filter(|(_, command)| !is_executable(&repository, command));
    let faults: Vec<_> = wrong.map(|(page, command)| format!("{page}: {command}")).collect();
    assert_none("files that pages run and that are not executable", &faults);
}

/// Returns the first words of lines of code, in fences or indented, if they are paths: `a/b` or
/// `./a`.
fn commands(text: &str) -> impl Iterator<Item = &str> {
    let mut is_fenced = false;
    let code = text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fence && (is_fenced || line.starts_with("    "))
    });
    code.filter_map(|line| {
        // Variables of the environment stand before the command.
        let word = line.split_whitespace().find(|word| !word.contains('='))?;
        word.contains('/').then(|| word.trim_start_matches("./"))
    })
}

#[test]
fn commands_are_the_first_words_of_code() {
    let page = "a/prose.py\n```sh\nA=1 ./b/c.py --x d/e.py\ncargo run\n```\n    f/g.sh\n";
    assert_eq!(commands(page).collect::<Vec<_>>(), ["b/c.py", "f/g.sh"]);
}

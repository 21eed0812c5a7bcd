//! The programs that the laboratory starts, itself and the server that it is part of or lies alongside; and how it was started.

use std::path::{Path, PathBuf};

use crate::error::LabError;

const LABORATORY: &str = "scrinium-lab";
const SERVER: &str = "scrinium";

/// The laboratory as a program: this one, and the words that lead to its commands.
///
/// # Errors
/// [`LabError::Usage`] if the system does not say which program this is.
pub(crate) fn laboratory() -> Result<(PathBuf, Vec<&'static str>), LabError> {
    let program = std::env::current_exe()
        .map_err(|error| LabError::Usage(format!("this program cannot be found: {error}")))?;
    let words = if is(&program, LABORATORY) { Vec::new() } else { vec!["lab"] };
    Ok((program, words))
}

/// The server: this program if it has one, or the one next to it. `None` if there is none.
pub(crate) fn server() -> Option<PathBuf> {
    let here = std::env::current_exe().ok()?;
    let program = server_of(here);
    program.exists().then_some(program)
}

fn server_of(here: PathBuf) -> PathBuf {
    if is(&here, SERVER) && !is(&here, LABORATORY) { here } else { here.with_file_name(SERVER) }
}

/// Programs are known by their names, to which a version or a machine may be added: `scrinium-2.1`.
fn is(program: &Path, name: &str) -> bool {
    let stem = program.file_name().unwrap_or_default().to_string_lossy();
    stem.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
}

/// An address without the password that may stand in it.
pub(crate) fn without_password(target: &str) -> String {
    let Some((before, place)) = target.rsplit_once('@') else { return target.to_owned() };
    let Some((scheme, account)) = before.split_once("://") else { return target.to_owned() };
    match account.split_once(':') {
        Some((name, _)) => format!("{scheme}://{name}:***@{place}"),
        None => target.to_owned(),
    }
}

/// Options whose values nobody is shown.
const SECRETS: [&str; 3] = ["--password", "--user-password", "--driver-token"];

/// The command line without what follows a password's option.
pub(crate) fn command_line() -> String {
    let mut secret = false;
    let words: Vec<String> = std::env::args()
        .map(|word| {
            let hidden = std::mem::replace(&mut secret, SECRETS.contains(&word.as_str()));
            match word.split_once('=') {
                _ if hidden => "***".to_owned(),
                Some((name, _)) if SECRETS.contains(&name) => format!("{name}=***"),
                _ if word.contains(' ') => format!("'{word}'"),
                _ => without_password(&word),
            }
        })
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_under_another_name_is_still_itself() {
        let server = |path: &str| server_of(PathBuf::from(path)).display().to_string();
        assert_eq!(server("/bin/scrinium"), "/bin/scrinium");
        assert_eq!(server("/bin/scrinium-2.1"), "/bin/scrinium-2.1");
        assert_eq!(server("/bin/scrinium-lab"), "/bin/scrinium");
        assert_eq!(server("/bin/scrinium-lab-2.1"), "/bin/scrinium");
        assert_eq!(server("/target/deps/experiment-1234"), "/target/deps/scrinium");
        assert_eq!(server("/target/deps/scrinium_lab-1234"), "/target/deps/scrinium");
    }
}

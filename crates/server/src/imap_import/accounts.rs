//! Whose mail is brought: one person's, or that of all in a table.

use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::cli::{Failure, ImportImapArguments, Terminal};
use crate::credentials::ask_password;

/// No table and no password has more bytes.
const LONGEST_TABLE_BYTES: u64 = 64 << 20;

/// A person here, and how they log in there.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) person: String,
    pub(super) user: String,
    pub(super) password: String,
}

/// Those that the command names.
pub(super) fn accounts(asked: &ImportImapArguments, terminal: &Terminal) -> Result<Vec<Account>, Failure> {
    match (&asked.people, &asked.person) {
        (Some(path), None) => {
            let text = read(path, terminal)?;
            table(&text).map_err(|reason| Failure::Use(format!("{}: {reason}", path.display())))
        }
        (None, Some(person)) => {
            let user = asked.login.clone().unwrap_or_else(|| person.clone());
            let password = password(&user, asked, terminal)?;
            Ok(vec![Account { person: person.clone(), user, password }])
        }
        _ => Err(Failure::Use("name one --person, or a table of --people".to_owned())),
    }
}

fn password(user: &str, asked: &ImportImapArguments, terminal: &Terminal) -> Result<String, Failure> {
    let first_line = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    let password = match &asked.password_file {
        Some(path) if path != Path::new("-") => first_line(&read(path, terminal)?),
        None if std::io::stdin().is_terminal() => {
            ask_password(&format!("Password of {user} at {}: ", asked.host)).map_err(Failure::work)?
        }
        _ => {
            let mut line = String::new();
            let mut input = std::io::stdin().lock().take(LONGEST_TABLE_BYTES);
            input.read_line(&mut line).map_err(Failure::work)?;
            first_line(&line)
        }
    };
    if password.is_empty() {
        let advice = "no password: give it on a terminal, on standard input or by --password-file";
        return Err(Failure::Use(advice.to_owned()));
    }
    Ok(password)
}

fn read(path: &Path, terminal: &Terminal) -> Result<String, Failure> {
    let cannot = |error: std::io::Error| Failure::Work(format!("cannot read {}: {error}", path.display()));
    let file = std::fs::File::open(path).map_err(cannot)?;
    let metadata = file.metadata().map_err(cannot)?;
    if metadata.is_file() && metadata.mode() & 0o077 != 0 {
        terminal.say(&format!("warning: others can read {0}; run: chmod 600 {0}", path.display()));
    }
    let mut text = String::new();
    BufReader::new(file).take(LONGEST_TABLE_BYTES).read_to_string(&mut text).map_err(cannot)?;
    Ok(text)
}

/// A table whose first line names the columns person, user and password, in any order.
fn table(text: &str) -> Result<Vec<Account>, String> {
    let mut lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    let (_, head) = lines.next().ok_or("it is empty")?;
    let separator = if head.contains(';') { ';' } else { ',' };
    let names = cells(head, separator).ok_or("line 1: a quotation mark has no end")?;
    let column = |wanted: &str| {
        let place = names.iter().position(|name| name.trim().eq_ignore_ascii_case(wanted));
        place.ok_or_else(|| {
            format!("its first line names no column {wanted}; it wants person, user, password")
        })
    };
    let [person, user, password] = [column("person")?, column("user")?, column("password")?];
    let mut accounts = Vec::new();
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let line_number = number + 1;
        let cells = cells(line, separator)
            .ok_or_else(|| format!("line {line_number}: a quotation mark has no end"))?;
        let cell = |place: usize| match cells.get(place) {
            Some(cell) if !cell.is_empty() => Ok(cell.clone()),
            _ => {
                Err(format!("line {line_number}: {} is missing", names.get(place).map_or("", String::as_str)))
            }
        };
        accounts.push(Account { person: cell(person)?, user: cell(user)?, password: cell(password)? });
    }
    Ok(accounts)
}

/// The cells of a line (RFC 4180); `None` where a quotation mark has no end.
fn cells(line: &str, separator: char) -> Option<Vec<String>> {
    let (mut cells, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_quoted && characters.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' if is_quoted || cell.is_empty() => is_quoted = !is_quoted,
            character if character == separator && !is_quoted => cells.push(std::mem::take(&mut cell)),
            character => cell.push(character),
        }
    }
    cells.push(cell);
    (!is_quoted).then_some(cells)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_table_names_its_columns_and_quotes_what_has_commas() {
        let read =
            table("user,password,person\nada@old.example,\"a, \"\"b\"\"\",ada\n\nbob,x,bob\n").unwrap();
        let told: Vec<[&str; 3]> =
            read.iter().map(|one| [&*one.person, &*one.user, &*one.password]).collect();
        assert_eq!(told, [["ada", "ada@old.example", "a, \"b\""], ["bob", "bob", "x"]]);
        for wrong in
            ["", "person,user\nada,ada\n", "person;user;password\nada;ada\n", "person,user,password\n\"ada"]
        {
            assert!(table(wrong).is_err(), "{wrong}");
        }
    }
}

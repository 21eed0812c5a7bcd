//! `rename person`, `rename group`, `remove person`, `remove group` and `show requests`.

use scrinium_administration::{NewRequest, Request, RequestKind, Requests};
use serde_json::{Value, json};

use super::command::Command;
use super::table::{Align, grouped, table};
use super::{ConsoleError, Reply};

pub(super) const RENAME_PERSON: &str = "NAME NEW [name=FULLNAME] [address=ADDRESS] [field=FIELD]";
pub(super) const RENAME_GROUP: &str = "NAME NEW [address=ADDRESS] [field=FIELD]";
pub(super) const REMOVE: &str = "NAME [field=FIELD]";

/// Requests that people are shown, of those that are over.
const OVER_SHOWN: usize = 20;

/// Reads what follows the words; a name with blanks stands in quotation marks.
pub(super) fn parse(kind: RequestKind, rest: &str) -> Option<Command> {
    let mut words = words(rest)?.into_iter();
    let mut new = NewRequest::new(kind, &words.next()?, "");
    if !kind.removes() {
        new.new_name = Some(words.next()?);
    }
    for word in words {
        let (option, value) = word.split_once('=')?;
        let value = value.to_owned();
        match option {
            "name" if kind == RequestKind::RenamePerson => new.new_full_names.push(value),
            "address" if !kind.removes() && new.new_address.is_none() => new.new_address = Some(value),
            "field" => new.fields.push(value),
            _ => return None,
        }
    }
    Some(Command::Request(new))
}

/// Words between blanks; quotation marks keep blanks together.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let (mut word, mut is_word, mut is_quoted) = (String::new(), false, false);
    for character in text.chars() {
        match character {
            '"' => (is_quoted, is_word) = (!is_quoted, true),
            blank if blank.is_whitespace() && !is_quoted => {
                if std::mem::take(&mut is_word) {
                    words.push(std::mem::take(&mut word));
                }
            }
            other => {
                word.push(other);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    (!is_quoted).then_some(words)
}

/// The line of the console that asks for a request.
pub(crate) fn line_of(new: &NewRequest) -> String {
    let options = new.new_full_names.iter().map(|name| format!("\"name={name}\""));
    let options = options.chain(new.new_address.iter().map(|address| format!("\"address={address}\"")));
    let options = options.chain(new.fields.iter().map(|field| format!("\"field={field}\"")));
    let names = std::iter::once(&new.name).chain(&new.new_name).map(|name| format!("\"{name}\""));
    let words: Vec<String> =
        std::iter::once(new.kind.words().to_owned()).chain(names).chain(options).collect();
    words.join(" ")
}

/// Takes a request.
pub(crate) fn order(requests: &Requests, new: &NewRequest) -> Result<Reply, String> {
    let request = requests.order(new).map_err(|error| error.to_string())?;
    let text = format!(
        "{} will be {} in all databases; show requests shows how far that is.\n",
        request.name,
        if request.kind.removes() { "removed" } else { "renamed" },
    );
    Ok(Reply { text, data: data_of(&request) })
}

/// All requests.
pub(super) fn show(requests: Option<&Requests>) -> Result<Reply, ConsoleError> {
    let not_open = || ConsoleError::NotFound("the server is about to stop".to_owned());
    let all = requests.ok_or_else(not_open)?.list();
    let all = all.map_err(|error| ConsoleError::NotFound(error.to_string()))?;
    let over = all.iter().filter(|request| request.is_over()).count();
    let hidden = over.saturating_sub(OVER_SHOWN);
    let data: Vec<Value> = all.iter().map(data_of).collect();
    let text = if all.is_empty() { "There are no requests.\n".to_owned() } else { lines(&all, hidden) };
    Ok(Reply { text, data: json!({"requests": data}) })
}

fn lines(all: &[Request], hidden: usize) -> String {
    use Align::{Left, Right};
    let columns = [
        ("Request", Left),
        ("Name", Left),
        ("New name", Left),
        ("State", Left),
        ("Databases", Right),
        ("Of", Right),
        ("Documents", Right),
        ("Left", Right),
        ("Asked by", Left),
    ];
    let rows: Vec<Vec<String>> = all.iter().skip(hidden).map(row).collect();
    table(&columns, &rows)
}

fn row(request: &Request) -> Vec<String> {
    let progress = &request.progress;
    let state = match &request.reason {
        Some(reason) => format!("{}: {reason}", request.state.name()),
        None => request.state.name().to_owned(),
    };
    vec![
        request.kind.words().to_owned(),
        request.name.clone(),
        request.new_name.clone().unwrap_or_default(),
        state,
        grouped(progress.databases_done),
        grouped(progress.databases),
        grouped(progress.changed.get("documents").copied().unwrap_or_default()),
        grouped(progress.left),
        request.requested_by.clone(),
    ]
}

/// A request as data.
pub(crate) fn data_of(request: &Request) -> Value {
    let progress = &request.progress;
    json!({
        "id": request.id,
        "kind": request.kind,
        "entry": request.entry,
        "name": request.name,
        "new_name": request.new_name,
        "state": request.state.name(),
        "reason": request.reason,
        "databases_done": progress.databases_done,
        "databases": progress.databases,
        "changed": progress.changed,
        "left": progress.left,
        "requested_by": request.requested_by,
        "requested": request.requested,
        "ended": request.ended,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_asked_for_and_is_read_back() {
        let mut new = NewRequest::new(RequestKind::RenamePerson, "Ada Lovelace", "");
        new.new_name = Some("adele".to_owned());
        new.new_full_names = vec!["Adele Lovelace".to_owned()];
        new.new_address = Some("adele@example.org".to_owned());
        new.fields = vec!["Reviewers".to_owned()];
        assert_eq!(Command::parse(&line_of(&new)).unwrap(), Command::Request(new));
        for wrong in [
            "rename person ada",
            "remove person",
            "remove group a b",
            "rename group a b name=c",
            "rename person \"a b",
        ] {
            assert!(Command::parse(wrong).is_err(), "{wrong}");
        }
        let removal = NewRequest::new(RequestKind::RemoveGroup, "Sales Team", "");
        assert_eq!(Command::parse("remove group \"Sales Team\"").unwrap(), Command::Request(removal));
    }
}

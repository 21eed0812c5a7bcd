//! Which mailboxes another server has, and which folders they become here.

use scrinium_imap_wire::{Command, ListCommand, ListedMailbox, MailboxName, Namespace, Response};

use super::session::{Session, SessionError};

/// What stands between the levels of a folder's name.
const SEPARATOR: char = '\\';

/// Mailboxes for one purpose, by what their server says of them (RFC 6154), are the folders that mail programs find here for it.
const USES: [(&str, &str); 6] = [
    ("\\Drafts", "Drafts"),
    ("\\Sent", "Sent"),
    ("\\Trash", "Trash"),
    ("\\Junk", "Junk"),
    ("\\Archive", "Archive"),
    ("\\All", "Archive"),
];

/// Views of what is in other mailboxes too.
const VIEWS: [&str; 3] = ["\\All", "\\Flagged", "\\Important"];

/// A mailbox, and the folder that it becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mailbox {
    pub(super) name: MailboxName,
    pub(super) folder: String,
    /// It shows what is in other mailboxes too, as Gmail's "All Mail" does.
    pub(super) is_view: bool,
}

/// All mailboxes of the person, in an order that does not change.
pub(super) fn mailboxes(session: &mut Session) -> Result<Vec<Mailbox>, SessionError> {
    let (own, others) = match session.ask("NAMESPACE", &Command::Namespace) {
        Ok((heard, _)) => namespaces(heard),
        // A server of old does not know it.
        Err(SessionError::Refused(..)) => (String::new(), Vec::new()),
        Err(error) => return Err(error),
    };
    let (heard, _) = session.ask("LIST", &Command::List(ListCommand::plain("", "*")))?;
    let listed = heard.into_iter().filter_map(|response| match response {
        Response::List(listed) => Some(listed),
        _ => None,
    });
    let mut all: Vec<Mailbox> = listed.filter_map(|listed| mailbox(listed, &own, &others)).collect();
    all.sort_by(|one, other| one.name.as_str().cmp(other.name.as_str()));
    all.dedup_by(|one, other| one.name == other.name);
    Ok(all)
}

/// What the person's own names begin with, and what names of others' mailboxes and of shared ones begin with.
fn namespaces(heard: Vec<Response>) -> (String, Vec<String>) {
    let prefix = |namespace: Namespace| namespace.into_iter().map(|(prefix, _)| prefix);
    for response in heard {
        if let Response::Namespace { personal, other_users, shared } = response {
            let own = prefix(personal).next().unwrap_or_default();
            let others = prefix(other_users).chain(prefix(shared)).filter(|prefix| !prefix.is_empty());
            return (own, others.collect());
        }
    }
    (String::new(), Vec::new())
}

fn mailbox(listed: ListedMailbox, own: &str, others: &[String]) -> Option<Mailbox> {
    let has = |wanted: &str| listed.attributes.iter().any(|one| one.eq_ignore_ascii_case(wanted));
    let name = listed.name.as_str();
    let is_of_others = others.iter().any(|prefix| name.starts_with(prefix.as_str()));
    if has("\\Noselect") || has("\\NonExistent") || is_of_others {
        return None;
    }
    let by_use = USES.iter().find(|(named, _)| has(named)).map(|(_, folder)| (*folder).to_owned());
    let folder = by_use.unwrap_or_else(|| folder_of(name, own, listed.delimiter));
    let is_view = VIEWS.iter().any(|named| has(named));
    Some(Mailbox { folder, is_view, name: listed.name })
}

fn folder_of(name: &str, own: &str, delimiter: Option<char>) -> String {
    // RFC 3501, section 5.1: INBOX is this mailbox in any case of letters.
    if name.eq_ignore_ascii_case("INBOX") {
        return scrinium_mail::INBOX.to_owned();
    }
    let name = name.strip_prefix(own).filter(|rest| !rest.is_empty()).unwrap_or(name);
    let levels: Vec<&str> = match delimiter {
        Some(delimiter) => name.split(delimiter).filter(|level| !level.is_empty()).collect(),
        None => vec![name],
    };
    let mut folder = Vec::with_capacity(levels.len());
    for (place, level) in levels.into_iter().enumerate() {
        let is_inbox = place == 0 && level.eq_ignore_ascii_case("INBOX");
        let level = if is_inbox { scrinium_mail::INBOX } else { level };
        folder.push(level.replace(SEPARATOR, "_"));
    }
    folder.join(&SEPARATOR.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn listed(name: &str, delimiter: char, attributes: &[&str]) -> ListedMailbox {
        ListedMailbox {
            attributes: attributes.iter().map(|one| (*one).to_owned()).collect(),
            delimiter: Some(delimiter),
            name: MailboxName::new(name).unwrap(),
            extended: Vec::new(),
        }
    }

    #[test]
    fn mailboxes_become_folders_by_their_purpose_and_their_levels() {
        let of = |name, delimiter, attributes: &[&str]| {
            let others = ["Other Users/".to_owned()];
            mailbox(listed(name, delimiter, attributes), "INBOX.", &others).map(|one| one.folder)
        };
        assert_eq!(of("inbox", '.', &[]).unwrap(), "Inbox");
        assert_eq!(of("INBOX.Arbeit.2026", '.', &[]).unwrap(), "Arbeit\\2026");
        assert_eq!(of("Inbox/below", '/', &[]).unwrap(), "Inbox\\below");
        assert_eq!(of("a\\b//c", '/', &[]).unwrap(), "a_b\\c");
        assert_eq!(of("Gesendete Elemente", '/', &["\\sent"]).unwrap(), "Sent");
        assert_eq!(of("Other Users/bob", '/', &[]), None);
        assert_eq!(of("only above", '/', &["\\Noselect"]), None);
        let all = mailbox(listed("[Gmail]/All Mail", '/', &["\\All"]), "", &[]).unwrap();
        assert!(all.is_view && all.folder == "Archive");
    }
}

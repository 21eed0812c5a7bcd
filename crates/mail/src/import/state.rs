//! What a mail program kept of a message besides its text: whether it was read, answered, flagged or deleted, and labels.

use std::borrow::Cow;
use std::path::Path;

use crate::message::decoded_words;

/// A header is looked through this far.
pub(super) const LONGEST_HEADER: usize = 256 * 1024;

const MOST_LABELS: usize = 64;
const LONGEST_LABEL: usize = 127;

/// The labels that Thunderbird has from the beginning, by its keywords.
const THUNDERBIRD_LABELS: [(&str, &str); 5] = [
    ("$label1", "Important"),
    ("$label2", "Work"),
    ("$label3", "Personal"),
    ("$label4", "To Do"),
    ("$label5", "Later"),
];

/// What was kept of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageState {
    /// It was read.
    pub read: bool,
    /// It was answered.
    pub answered: bool,
    /// It was passed on to somebody.
    pub forwarded: bool,
    /// It was flagged, starred or marked.
    pub flagged: bool,
    /// It is not finished.
    pub draft: bool,
    /// It was deleted, and is only still in the file.
    pub deleted: bool,
    /// Other flags, as mail programs call them.
    pub keywords: Vec<String>,
    /// Labels, as people see them.
    pub labels: Vec<String>,
    /// The folders that it lay in, where the message itself tells.
    pub folders: Vec<String>,
}

impl MessageState {
    /// The names of what is set, as a memo's field `$Flags` has them.
    #[must_use]
    pub fn flags(&self) -> Vec<&str> {
        let named = [
            (self.answered, "\\Answered"),
            (self.forwarded, "$Forwarded"),
            (self.flagged, "\\Flagged"),
            (self.draft, "\\Draft"),
        ];
        let named = named.into_iter().filter_map(|(is_set, name)| is_set.then_some(name));
        named.chain(self.keywords.iter().map(String::as_str)).collect()
    }

    fn add_keyword(&mut self, keyword: &str) {
        if keyword.eq_ignore_ascii_case("$Forwarded") {
            self.forwarded = true;
        } else if self.keywords.len() < MOST_LABELS
            && !self.keywords.iter().any(|known| known.eq_ignore_ascii_case(keyword))
        {
            self.keywords.push(keyword.to_owned());
        }
    }

    fn add_label(&mut self, label: &str) {
        let label = cleaned(label);
        if !label.is_empty() && self.labels.len() < MOST_LABELS && !self.labels.contains(&label) {
            self.labels.push(label);
        }
    }

    fn add_folder(&mut self, folder: &str) {
        let folder = cleaned(folder);
        if !folder.is_empty() && self.folders.len() < MOST_LABELS && !self.folders.contains(&folder) {
            self.folders.push(folder);
        }
    }
}

fn cleaned(text: &str) -> String {
    let mut text: String = text.trim().chars().filter(|letter| !letter.is_control()).collect();
    while text.len() > LONGEST_LABEL {
        text.pop();
    }
    text.trim_end_matches(['\\', ' ']).to_owned()
}

/// What the name of a file in a Maildir says: it ends in `:2,` and letters. Where a file system takes no colon, other
/// marks stand for it.
pub(super) fn of_maildir_name(name: &str) -> MessageState {
    let mut state = MessageState::default();
    for flag in flags_in(name).chars() {
        match flag {
            'S' => state.read = true,
            'R' => state.answered = true,
            'P' => state.forwarded = true,
            'F' => state.flagged = true,
            'D' => state.draft = true,
            'T' => state.deleted = true,
            _ => {}
        }
    }
    state
}

fn flags_in(name: &str) -> &str {
    let name = name.strip_suffix(".eml").unwrap_or(name);
    let flags = name.rsplit_once("2,").filter(|(before, _)| before.ends_with([':', '!', ';', '_', '-']));
    flags.map_or("", |(_, flags)| flags)
}

/// Who has written a file, in its name: what an export knows of a message stands there, and in nobody else's files.
pub(crate) const EXPORTED_BY: &str = "scrinium";

/// The last of the header fields that an export puts before a message in an mbox.
pub(crate) const EXPORT_MARK: &str = "X-Scrinium-Export";

/// Where a Maildir has the names of keywords, by their letters.
pub(crate) const KEYWORD_FILE: &str = "dovecot-keywords";

/// A longer one does not count.
const KEYWORD_FILE_BYTES: u64 = 64 << 10;

/// The keywords of a Maildir's folder in the order of their letters.
pub(super) fn keywords_of(folder: &Path) -> Vec<String> {
    let path = folder.join(KEYWORD_FILE);
    let is_short =
        std::fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() <= KEYWORD_FILE_BYTES);
    // One that cannot be read says no more than none.
    let text = if is_short { std::fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
    let mut keywords = vec![String::new(); 26];
    for line in text.lines() {
        let Some((place, keyword)) = line.split_once(' ') else { continue };
        let place: Option<usize> = place.parse().ok();
        if let Some(place) = place.and_then(|place| keywords.get_mut(place)) {
            keyword.trim().clone_into(place);
        }
    }
    keywords
}

/// Adds the keywords whose letters stand in the name of a file.
pub(super) fn add_keywords(state: &mut MessageState, name: &str, keywords: &[String]) {
    for letter in flags_in(name).bytes().filter(u8::is_ascii_lowercase) {
        let keyword = keywords.get(usize::from(letter - b'a')).filter(|keyword| !keyword.is_empty());
        keyword.into_iter().for_each(|keyword| state.add_keyword(keyword));
    }
}

/// When a message came, as the name of a file says that an export has written, in seconds since 1970.
pub(super) fn exported_received(name: &str) -> Option<i64> {
    let mut parts = name.splitn(3, '.');
    let (received, uid, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let behind = rest.strip_prefix(EXPORTED_BY)?;
    uid.parse::<u64>().ok()?;
    behind.starts_with([',', '_']).then(|| received.parse().ok()).flatten()
}

/// What the name of a file says that an export has written as a message of its own.
pub(super) fn of_exported_name(name: &str) -> Option<MessageState> {
    exported_received(name)?;
    name.strip_suffix(".eml").map(of_maildir_name)
}

/// What an export has put before a message in an mbox: what it says, and how long it is.
pub(super) fn of_exported_fields(source: &[u8]) -> Option<(MessageState, u64)> {
    let mut end = 0;
    for line in source.split_inclusive(|&byte| byte == b'\n') {
        end += line.len();
        let colon = line.iter().position(|&byte| byte == b':')?;
        match line.get(..colon)? {
            b"Status" | b"X-Status" | b"X-Keywords" => {}
            mark if mark == EXPORT_MARK.as_bytes() => {
                return Some((of_header(source.get(..end)?), end as u64));
            }
            _ => return None,
        }
    }
    None
}

/// What the header fields of mail programs say, of a message that did not lie in a Maildir.
pub(super) fn of_header(source: &[u8]) -> MessageState {
    let mut state = MessageState::default();
    for (name, value) in own_fields(source) {
        let value = String::from_utf8_lossy(&value);
        match name.to_ascii_lowercase().as_slice() {
            b"status" | b"x-status" => of_status(&value, &mut state),
            b"x-mozilla-status" => of_mozilla_status(&value, &mut state),
            b"x-mozilla-status2" => state.deleted |= bits(&value) & 0x0020_0000 != 0,
            b"x-mozilla-keys" => of_mozilla_keys(&value, &mut state),
            b"x-keywords" => value.split_whitespace().for_each(|keyword| state.add_keyword(keyword)),
            b"x-gmail-labels" => of_gmail_labels(&value, &mut state),
            _ => {}
        }
    }
    state
}

/// The fields that mail programs write for themselves: names and unfolded values.
fn own_fields(source: &[u8]) -> Vec<(&[u8], Cow<'_, [u8]>)> {
    let header = source.get(..LONGEST_HEADER).unwrap_or(source);
    let mut fields: Vec<(&[u8], Cow<'_, [u8]>)> = Vec::new();
    let mut is_own = false;
    for line in header.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match line.first() {
            None if fields.is_empty() && line.as_ptr() == header.as_ptr() => continue,
            None => break,
            Some(b' ' | b'\t') => {
                if let (true, Some((_, value))) = (is_own, fields.last_mut()) {
                    value.to_mut().extend_from_slice(line);
                }
                continue;
            }
            Some(_) => {}
        }
        let colon = line.iter().position(|&byte| byte == b':');
        let (name, value) = colon.and_then(|at| line.split_at_checked(at)).unwrap_or((line, b""));
        is_own = fields.len() < 16 && is_own_field(name);
        if is_own {
            fields.push((name, Cow::Borrowed(value.get(1..).unwrap_or_default())));
        }
    }
    fields
}

fn is_own_field(name: &[u8]) -> bool {
    const NAMES: [&str; 7] = [
        "status",
        "x-status",
        "x-keywords",
        "x-mozilla-status",
        "x-mozilla-status2",
        "x-mozilla-keys",
        "x-gmail-labels",
    ];
    matches!(name.first(), Some(b's' | b'S' | b'x' | b'X'))
        && NAMES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// `Status` and `X-Status`, as mail(1), mutt, pine and Dovecot write them.
fn of_status(value: &str, state: &mut MessageState) {
    // Somebody else's field of this name has more than letters for flags.
    if value.trim().len() > 8 {
        return;
    }
    for flag in value.trim().chars() {
        match flag {
            'R' => state.read = true,
            'A' | 'r' => state.answered = true,
            'F' => state.flagged = true,
            'D' => state.deleted = true,
            'T' => state.draft = true,
            _ => {}
        }
    }
}

/// Thunderbird's `X-Mozilla-Status`, four digits in hexadecimal.
fn of_mozilla_status(value: &str, state: &mut MessageState) {
    let bits = bits(value);
    state.read |= bits & 0x0001 != 0;
    state.answered |= bits & 0x0002 != 0;
    state.flagged |= bits & 0x0004 != 0;
    state.deleted |= bits & 0x0008 != 0;
    state.forwarded |= bits & 0x1000 != 0;
}

fn bits(value: &str) -> u32 {
    // Somebody else's field of this name says nothing.
    u32::from_str_radix(value.trim(), 16).unwrap_or_default()
}

/// Thunderbird's `X-Mozilla-Keys`: keywords with blanks between them.
fn of_mozilla_keys(value: &str, state: &mut MessageState) {
    for keyword in value.split_whitespace() {
        match keyword.to_ascii_lowercase().as_str() {
            "junk" | "nonjunk" | "$junk" | "$notjunk" | "$mdnsent" => {}
            "$forwarded" => state.forwarded = true,
            lower => {
                let known = THUNDERBIRD_LABELS.iter().find(|(name, _)| *name == lower);
                state.add_label(known.map_or(keyword, |(_, label)| label));
            }
        }
    }
}

/// Gmail's labels, as Takeout writes them: `Inbox,Unread,"Work, old",Projects/2026`. Those that people made, and those
/// that are places, are folders.
fn of_gmail_labels(value: &str, state: &mut MessageState) {
    state.read = true;
    for label in comma_separated(&decoded_words(value)) {
        match label.as_str() {
            "Unread" => state.read = false,
            "Starred" => state.flagged = true,
            "Opened" | "Important" | "Archived" | "All Mail" => {}
            "Trash" | "Bin" => state.deleted = true,
            "Draft" | "Drafts" => {
                state.draft = true;
                state.add_folder("Drafts");
            }
            "Inbox" | "Sent" | "Spam" | "Chat" => state.add_folder(&label),
            _ => match label.strip_prefix("Category ") {
                Some(category) => state.add_label(category),
                None => state.add_folder(&label.replace('/', "\\")),
            },
        }
    }
}

/// The texts between commas, outside of quotes.
fn comma_separated(text: &str) -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut quoted = false;
    for letter in text.chars() {
        match (letter, texts.last_mut()) {
            ('"', _) => quoted = !quoted,
            (',', _) if !quoted => texts.push(String::new()),
            (letter, Some(last)) => last.push(letter),
            (_, None) => {}
        }
    }
    texts.iter().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(lines: &str) -> MessageState {
        of_header(format!("From: ann@example.org\n{lines}\n\nX-Status: AFD\n").as_bytes())
    }

    #[test]
    fn header_fields_of_mail_programs_are_read() {
        let is = |state: MessageState| (state.read, state.flags().join(" "), state.deleted);
        assert_eq!(is(header("Subject: none")), (false, String::new(), false));
        assert_eq!(is(header("Status: O")), (false, String::new(), false));
        assert_eq!(is(header("Status: RO\nX-Status: AF")), (true, "\\Answered \\Flagged".to_owned(), false));
        assert_eq!(is(header("Status: delivered to the RAFT")), (false, String::new(), false));
        assert_eq!(is(header("X-Status: D")), (false, String::new(), true));
        assert_eq!(is(header("X-Mozilla-Status: 0001\r")), (true, String::new(), false));
        assert_eq!(
            is(header("X-Mozilla-Status: 1007")),
            (true, "\\Answered $Forwarded \\Flagged".to_owned(), false)
        );
        assert_eq!(
            is(header("X-Mozilla-Status: 0009\nX-Mozilla-Status2: 00000000")),
            (true, String::new(), true)
        );
        let keywords = "X-Keywords: $Forwarded work\nStatus: O";
        assert_eq!(is(header(keywords)), (false, "$Forwarded work".to_owned(), false));
        assert_eq!(header("X-Mozilla-Keys: $label4 house NonJunk     ").labels, ["To Do", "house"]);
    }

    #[test]
    fn labels_of_gmail_are_folders_and_marks() {
        let state =
            header("X-Gmail-Labels: Inbox,Unread,\"Work, old\",Projects/2026,\n Category Updates,Starred");
        assert_eq!(state.folders, ["Inbox", "Work, old", "Projects\\2026"]);
        assert_eq!((state.read, state.flagged, state.labels), (false, true, vec!["Updates".to_owned()]));
        let state = header("X-Gmail-Labels: =?UTF-8?Q?Archived,Opened,Gr=C3=BC=C3=9Fe?=");
        assert_eq!((state.read, state.folders), (true, vec!["Grüße".to_owned()]));
        assert!(header("X-Gmail-Labels: Trash").deleted);
    }

    #[test]
    fn names_of_files_in_a_maildir_are_read() {
        let state = of_maildir_name("1.x:2,FRS");
        assert!(state.read && state.answered && state.flagged && !state.deleted);
        assert!(of_maildir_name("1.x!2,S").read && of_maildir_name("1.x;2,PT").deleted);
        assert_eq!(of_maildir_name("1.xS"), MessageState::default());
        assert_eq!(of_maildir_name("1.x2,S"), MessageState::default());
    }
}

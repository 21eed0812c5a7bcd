//! Into which folder a message goes that lies in files.

use std::path::{Component, Path};

use super::is_named_mbox;
use super::kind::is_named_message;
use super::names::from_modified_utf7;
use crate::inbox::INBOX;

/// Longer names are cut, which a mail database would refuse.
const MAX_NAME_BYTES: usize = scrinium_database::folder::name::MAX_NAME_BYTES;

/// The folder of messages in the file at `path` below `root`: the Inbox for what lies at the top; else it is called
/// as the folders on the way and, for an mbox, as the file. A folder of a Maildir (`.Projects.2026`) lies within
/// others by the dots in its name. A single file is an mbox with a name of its own only if it is called so.
pub(super) fn folder_of(root: &Path, path: &Path, is_mbox: bool) -> String {
    let is_single = path.as_os_str().is_empty();
    let (file, above) = if is_single { (root, None) } else { (path, path.parent()) };
    let mut parts: Vec<String> = Vec::new();
    for component in above.into_iter().flat_map(Path::components) {
        if let Component::Normal(name) = component {
            add_parts(&name.to_string_lossy(), &mut parts);
        }
    }
    if in_maildir(path) {
        parts.pop();
    }
    if let Some(name) = mbox_name(file, is_mbox && !is_single) {
        add_parts(&name, &mut parts);
    }
    parts.retain(|part| !part.is_empty());
    if let Some(first) = parts.first_mut().filter(|first| first.eq_ignore_ascii_case(INBOX)) {
        INBOX.clone_into(first);
    }
    let mut name = parts.join("\\");
    while name.len() > MAX_NAME_BYTES {
        name.pop();
    }
    let name = name.trim_end_matches(['\\', ' ']);
    if name.is_empty() { INBOX.to_owned() } else { name.to_owned() }
}

/// What an mbox is called, without the ending that says what it is.
fn mbox_name(file: &Path, is_mbox: bool) -> Option<String> {
    let is_named = is_named_mbox(file);
    let name = if is_named || (is_mbox && is_named_message(file)) {
        file.file_stem()
    } else {
        file.file_name().filter(|_| is_mbox)
    };
    let name = name.filter(|name| !(is_named && name.eq_ignore_ascii_case("mbox")))?;
    Some(name.to_string_lossy().into_owned())
}

/// Whether a file lies where a Maildir has its messages.
pub(super) fn in_maildir(path: &Path) -> bool {
    let folder = path.parent().and_then(Path::file_name);
    folder.is_some_and(|name| name == "cur" || name == "new")
}

/// The names of folders in a name of the file system: without what programs add to it, or what no name may hold.
fn add_parts(name: &str, parts: &mut Vec<String>) {
    let name = [".mbox", ".sbd"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    let sound = |part: &str| -> String {
        let plain = |letter: char| if letter.is_control() || letter == '\\' { '_' } else { letter };
        let part = from_modified_utf7(part).unwrap_or_else(|| part.to_owned());
        part.chars().map(plain).collect::<String>().trim().to_owned()
    };
    // Some servers keep all other folders within the Inbox.
    let below_inbox = |name: &str| {
        let is_below = name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("INBOX."));
        name.get(6..).filter(|rest| is_below && !rest.is_empty()).map(str::to_owned)
    };
    match (name.strip_prefix('.'), below_inbox(name)) {
        (Some(maildir), _) => {
            let maildir = below_inbox(maildir).unwrap_or_else(|| maildir.to_owned());
            parts.extend(maildir.split('.').map(sound));
        }
        (None, Some(below)) => parts.extend(below.split('.').map(sound)),
        (None, None) => parts.push(sound(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_into_the_folders_that_they_lie_in() {
        let folder = |path: &str| folder_of(Path::new("/home/ada/Mail"), Path::new(path), false);
        assert_eq!(folder("cur/1.x:2,S"), "Inbox");
        assert_eq!(folder("new/1"), "Inbox");
        assert_eq!(folder(".Projects.2026/cur/1:2,"), "Projects\\2026");
        assert_eq!(folder("one.eml"), "Inbox");
        assert_eq!(folder("Sent/2026/one.eml"), "Sent\\2026");
        assert_eq!(folder("Archive.mbox"), "Archive");
        assert_eq!(folder("Work.sbd/Old.mbox"), "Work\\Old");
        assert_eq!(folder("Drafts.mbox/mbox"), "Drafts");
        assert_eq!(folder("mbox"), "Inbox");
        assert_eq!(folder("a\\b\u{7}/ /x.eml"), "a_b_");
        assert_eq!(folder(&format!("{}/x.eml", "ä".repeat(200))).len(), 254);
        let single = |path: &str| folder_of(Path::new(path), Path::new(""), true);
        assert_eq!(single("/tmp/Projects.mbox"), "Projects");
        assert_eq!(single("/tmp/mbox"), "Inbox");
        assert_eq!(single("/tmp/one.eml"), "Inbox");
        assert_eq!(single("/var/mail/ada"), "Inbox");
    }

    #[test]
    fn folders_are_called_as_mail_programs_show_them() {
        let folder = |path: &str, is_mbox| folder_of(Path::new("/home/ada/Mail"), Path::new(path), is_mbox);
        assert_eq!(folder("Inbox", true), "Inbox");
        assert_eq!(folder("INBOX.sbd/Sent", true), "Inbox\\Sent");
        assert_eq!(folder("2020-March.txt", true), "2020-March");
        assert_eq!(folder("v1.2", true), "v1.2");
        assert_eq!(folder("A/B/cur/2.h:2,", false), "A\\B");
        assert_eq!(folder(".Entw&APw-rfe/cur/2.h:2,", false), "Entwürfe");
        assert_eq!(folder(".INBOX.Sent.2026/cur/1", false), "Sent\\2026");
        assert_eq!(folder("INBOX.Sent/cur/1", false), "Sent");
        assert_eq!(folder(".R&D/cur/1", false), "R&D");
        assert_eq!(folder("ada@example.org/cur/1", false), "ada@example.org");
    }
}

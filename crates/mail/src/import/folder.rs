//! Into which folder a message goes that lies in files, and whether it was read there.

use std::path::{Component, Path};

use super::is_named_mbox;
use crate::inbox::INBOX;

/// Longer names are cut, which a mail database would refuse.
const MAX_NAME_BYTES: usize = 127;

/// The folder of messages in the file at `path` below `root`: the Inbox for what lies at the top; else it is called
/// as the folders on the way and, for an mbox, as the file. A folder of a Maildir (`.Projects.2026`) lies within
/// others by the dots in its name.
pub(super) fn folder_of(root: &Path, path: &Path) -> String {
    // A single file has no path below what is imported.
    let (file, above) = if path.as_os_str().is_empty() { (root, None) } else { (path, path.parent()) };
    let mut parts: Vec<String> = Vec::new();
    for component in above.into_iter().flat_map(Path::components) {
        if let Component::Normal(name) = component {
            add_parts(&name.to_string_lossy(), &mut parts);
        }
    }
    if in_maildir(path) {
        parts.pop();
    }
    if is_named_mbox(file)
        && let Some(stem) = file.file_stem().filter(|stem| !stem.eq_ignore_ascii_case("mbox"))
    {
        add_parts(&stem.to_string_lossy(), &mut parts);
    }
    parts.retain(|part| !part.is_empty());
    let mut name = parts.join("\\");
    while name.len() > MAX_NAME_BYTES {
        name.pop();
    }
    let name = name.trim_end_matches(['\\', ' ']);
    if name.is_empty() { INBOX.to_owned() } else { name.to_owned() }
}

/// Whether a file lies where a Maildir has its messages.
fn in_maildir(path: &Path) -> bool {
    let folder = path.parent().and_then(Path::file_name);
    folder.is_some_and(|name| name == "cur" || name == "new")
}

/// The names of folders in a name of the file system: without what programs add to it, or what no name may hold.
fn add_parts(name: &str, parts: &mut Vec<String>) {
    let name = [".mbox", ".sbd"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    let sound = |part: &str| -> String {
        let plain = |letter: char| if letter.is_control() || letter == '\\' { '_' } else { letter };
        part.chars().map(plain).collect::<String>().trim().to_owned()
    };
    match name.strip_prefix('.') {
        Some(maildir) => parts.extend(maildir.split('.').map(sound)),
        None => parts.push(sound(name)),
    }
}

/// Whether a Maildir says that the message was read: its name ends in `:2,` and flags, one of which is `S`.
pub(super) fn is_read(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let flags = name.rsplit_once("2,").filter(|(before, _)| before.ends_with([':', '!', ';']));
    in_maildir(path) && flags.is_some_and(|(_, flags)| flags.contains('S'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_into_the_folders_that_they_lie_in() {
        let folder = |path: &str| folder_of(Path::new("/home/ada/Mail"), Path::new(path));
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
        assert_eq!(folder(&format!("{}/x.eml", "ä".repeat(100))).len(), 126);
        assert_eq!(folder_of(Path::new("/tmp/Projects.mbox"), Path::new("")), "Projects");
        assert_eq!(folder_of(Path::new("/tmp/mbox"), Path::new("")), "Inbox");
        assert_eq!(folder_of(Path::new("/tmp/one.eml"), Path::new("")), "Inbox");
    }

    #[test]
    fn a_maildir_tells_what_was_read() {
        let read = |path: &str| is_read(Path::new(path));
        assert!(read("cur/1.x:2,FRS") && read("cur/1.x!2,S"));
        assert!(!read("cur/1.x:2,F") && !read("cur/1.xS") && !read("other/1:2,S") && !read("new/1"));
    }
}

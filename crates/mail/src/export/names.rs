//! Names of folders as files have them: what an import reads as the same names.

use super::ExportFormat;

/// Longer names are not for every file system.
const NAME_BYTES_MAX: usize = 240;

/// Names that programs give to what is no folder of mail, or that begin so.
const TAKEN: [&str; 4] = ["cur", "new", "tmp", "mbox"];
const TAKEN_BEGINNINGS: [&str; 4] = ["dovecot", "courier", "maildirfolder", "maildirsize"];

/// The parts of a folder's name, each as a name of a file.
pub(super) fn parts(folder: &str, format: ExportFormat) -> Vec<String> {
    let parts: Vec<&str> = folder.split('\\').collect();
    let is_within = parts.len() > 1;
    let named = parts.iter().enumerate().map(|(place, part)| {
        // Some servers keep all folders within the Inbox, and imports take that away.
        let is_taken = format == ExportFormat::Maildir && place == 0 && is_within;
        let is_taken = is_taken && part.eq_ignore_ascii_case(crate::inbox::INBOX);
        file_name(part, format, is_taken || is_of_programs(part))
    });
    named.collect()
}

fn is_of_programs(part: &str) -> bool {
    let lower = part.to_ascii_lowercase();
    TAKEN.contains(&lower.as_str()) || TAKEN_BEGINNINGS.iter().any(|taken| lower.starts_with(taken))
}

/// As it stands, or in IMAP's modified UTF-7 (RFC 3501 §5.1.3), in which dots and slashes are written as well.
fn file_name(part: &str, format: ExportFormat, is_taken: bool) -> String {
    let keeps = |letter: char| match letter {
        ' ' | '-' | '_' | '(' | ')' | '+' | ',' | '@' => true,
        letter if letter.is_ascii() => letter.is_ascii_alphanumeric(),
        letter => format != ExportFormat::Maildir && letter.is_alphanumeric(),
    };
    let name = if !is_taken && part.chars().all(keeps) { part.to_owned() } else { encoded(part, is_taken) };
    if name.len() <= NAME_BYTES_MAX {
        return name;
    }
    let hash = blake3::hash(part.as_bytes()).to_hex();
    format!("long-{}", hash.get(..16).unwrap_or_default())
}

/// `first`: the first letter is encoded as well, whatever it is.
fn encoded(part: &str, first: bool) -> String {
    let mut name = String::new();
    let mut units: Vec<u16> = Vec::new();
    for (place, letter) in part.char_indices() {
        let is_plain = letter.is_ascii_alphanumeric() || " -_()+,@".contains(letter);
        if is_plain && !(first && place == 0) {
            close(&mut name, &mut units);
            name.push(letter);
        } else {
            units.extend_from_slice(letter.encode_utf16(&mut [0; 2]));
        }
    }
    close(&mut name, &mut units);
    name
}

fn close(name: &mut String, units: &mut Vec<u16>) {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD_NO_PAD;
    if units.is_empty() {
        return;
    }
    let bytes: Vec<u8> = units.drain(..).flat_map(u16::to_be_bytes).collect();
    name.push('&');
    name.push_str(&STANDARD_NO_PAD.encode(bytes).replace('/', ","));
    name.push('-');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_where_no_program_takes_them_for_something_else() {
        let name = |folder: &str, format| parts(folder, format).join("/");
        assert_eq!(name("Projects\\Entwürfe (2)", ExportFormat::Eml), "Projects/Entwürfe (2)");
        assert_eq!(name("Entwürfe", ExportFormat::Maildir), "Entw&APw-rfe");
        assert_eq!(name("R&D v1.2/x", ExportFormat::Mbox), "R&ACY-D v1&AC4-2&AC8-x");
        assert_eq!(name("cur\\Mbox\\dovecot-x", ExportFormat::Eml), "&AGM-ur/&AE0-box/&AGQ-ovecot-x");
        assert_eq!(name("Inbox", ExportFormat::Maildir), "Inbox");
        assert_eq!(name("Inbox\\A", ExportFormat::Maildir), "&AEk-nbox/A");
        assert_eq!(name(&"ä".repeat(120), ExportFormat::Maildir).len(), 21);
    }
}

//! Names of folders as file systems have them.

/// The name that stands in IMAP's modified UTF-7 (RFC 3501 §5.1.3), `Entw&APw-rfe`; `None` where it is invalid.
pub(super) fn from_modified_utf7(name: &str) -> Option<String> {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('&') {
        let (encoded, behind) = after.split_once('-')?;
        text.push_str(before);
        if encoded.is_empty() {
            text.push('&');
        } else {
            text.push_str(&decoded(encoded)?);
        }
        rest = behind;
    }
    text.push_str(rest);
    name.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ').then_some(text)
}

/// UTF-16 in base64 with a comma for the slash.
fn decoded(encoded: &str) -> Option<String> {
    let (mut held, mut held_bits) = (0_u32, 0_u32);
    let mut units = Vec::new();
    for letter in encoded.bytes() {
        let six_bits = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b',' => 63,
            _ => return None,
        };
        held = held << 6 | u32::from(six_bits);
        held_bits += 6;
        if held_bits >= 16 {
            held_bits -= 16;
            units.push(u16::try_from(held >> held_bits & 0xffff).ok()?);
            held &= (1 << held_bits) - 1;
        }
    }
    // What is left fills the last letter, and is nothing.
    if held_bits >= 6 || held != 0 {
        return None;
    }
    char::decode_utf16(units).collect::<Result<_, _>>().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_modified_utf7_are_read_and_others_left() {
        let read = from_modified_utf7;
        assert_eq!(read("Entw&APw-rfe").as_deref(), Some("Entwürfe"));
        // The examples of RFC 3501 §5.1.3.
        assert_eq!(read("~peter/mail/&U,BTFw-/&ZeVnLIqe-").as_deref(), Some("~peter/mail/台北/日本語"));
        assert_eq!(read("&2D3cCQ-").as_deref(), Some("🐉"));
        assert_eq!(read("R&-D").as_deref(), Some("R&D"));
        assert_eq!(read("plain").as_deref(), Some("plain"));
        for name in ["R&D", "Q&A-B", "&APw", "&2D0-", "&APy-", "ü&-"] {
            assert_eq!(read(name), None, "{name}");
        }
    }
}

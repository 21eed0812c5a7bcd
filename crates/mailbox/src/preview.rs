//! The first words of a message (RFC 8970).

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use crate::html::{is_filler, shown_text};

/// RFC 8970, section 3.2.
const PREVIEW_MAX_CHARACTERS: usize = 200;

/// The first words of a decoded text, of which only the beginning may be there. `None` if it has no words.
pub(crate) fn preview(bytes: &[u8], charset: Option<&[u8]>, is_html: bool) -> Option<String> {
    let encoding = charset.and_then(Encoding::for_label);
    let text = match encoding {
        Some(encoding) => encoding.decode_without_bom_handling(bytes).0,
        None => match std::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            // The end may be cut in the middle of a character.
            Err(error) if error.error_len().is_none() => UTF_8.decode_without_bom_handling(bytes).0,
            Err(_) => WINDOWS_1252.decode_without_bom_handling(bytes).0,
        },
    };
    let text = if is_html { shown_text(&text) } else { own_words(&text) };
    let mut preview = String::new();
    let mut count = 0;
    for word in text.split(|letter: char| letter.is_whitespace() || letter.is_control() || is_filler(letter))
    {
        let word = word.trim_matches('\u{fffd}');
        let length = word.chars().count() + usize::from(count > 0);
        if word.is_empty() {
            continue;
        }
        if count + length > PREVIEW_MAX_CHARACTERS {
            let room = PREVIEW_MAX_CHARACTERS.saturating_sub(count);
            if count == 0 {
                preview.extend(word.chars().take(room));
            }
            break;
        }
        if count > 0 {
            preview.push(' ');
        }
        preview.push_str(word);
        count += length;
    }
    (!preview.is_empty()).then_some(preview)
}

/// Without what is quoted from others, unless there is nothing else, and without a signature.
fn own_words(text: &str) -> String {
    let lines = || text.lines().take_while(|line| *line != "-- ");
    let own: String = lines().filter(|line| !line.starts_with('>')).flat_map(|line| [line, "\n"]).collect();
    if own.trim().is_empty() {
        lines().flat_map(|line| [line.trim_start_matches('>'), "\n"]).collect()
    } else {
        own
    }
}

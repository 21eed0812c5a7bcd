//! The text that HTML shows, for the first words of a message. What is shown in truth is the client's to say.

/// Elements whose text nobody sees.
const HIDDEN: [&str; 5] = ["head", "script", "style", "title", "template"];

/// The text of a piece of HTML, without tags and comments. Elements are separated by spaces.
pub(crate) fn shown_text(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        push_text(before, &mut text);
        if let Some(comment) = tag.strip_prefix("<!--") {
            rest = comment.find("-->").and_then(|end| comment.get(end + 3..)).unwrap_or_default();
            continue;
        }
        let name_end =
            tag.get(1..).and_then(|name| name.find(|letter: char| !letter.is_ascii_alphanumeric()));
        let name =
            tag.get(1..).and_then(|name| name.get(..name_end.unwrap_or(name.len()))).unwrap_or_default();
        rest = tag.find('>').and_then(|end| tag.get(end + 1..)).unwrap_or_default();
        if HIDDEN.iter().any(|hidden| hidden.eq_ignore_ascii_case(name)) {
            rest = behind(rest, name);
        }
        text.push(' ');
    }
    push_text(rest, &mut text);
    text
}

/// What stands behind the end of an element.
fn behind<'a>(html: &'a str, name: &str) -> &'a str {
    let mut rest = html;
    while let Some(at) = rest.find("</") {
        rest = rest.get(at + 2..).unwrap_or_default();
        if rest.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return rest.find('>').and_then(|end| rest.get(end + 1..)).unwrap_or_default();
        }
    }
    ""
}

fn push_text(html: &str, text: &mut String) {
    let mut rest = html;
    while let Some(at) = rest.find('&') {
        let (before, entity) = rest.split_at(at);
        text.push_str(before);
        let end = entity.bytes().take(12).position(|byte| byte == b';');
        let letter = end.and_then(|end| entity.get(1..end)).and_then(character);
        match (letter, end) {
            (Some(letter), Some(end)) => {
                text.push(letter);
                rest = entity.get(end + 1..).unwrap_or_default();
            }
            _ => {
                text.push('&');
                rest = entity.get(1..).unwrap_or_default();
            }
        }
    }
    text.push_str(rest);
}

fn character(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok()?,
            None => number.parse().ok()?,
        };
        // Invisible fillers that advertisers put before their text.
        return char::from_u32(code).map(|letter| if is_filler(letter) { ' ' } else { letter });
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" | "zwnj" | "zwj" | "shy" | "ensp" | "emsp" => ' ',
        "auml" => 'ä',
        "ouml" => 'ö',
        "uuml" => 'ü',
        "Auml" => 'Ä',
        "Ouml" => 'Ö',
        "Uuml" => 'Ü',
        "szlig" => 'ß',
        "eacute" => 'é',
        "egrave" => 'è',
        "agrave" => 'à',
        "ccedil" => 'ç',
        "euro" => '€',
        "hellip" => '…',
        "ndash" => '–',
        "mdash" => '—',
        "rsquo" | "lsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        _ => return None,
    })
}

/// Characters without width, which fill the beginning of advertisements.
pub(crate) fn is_filler(letter: char) -> bool {
    matches!(letter, '\u{ad}' | '\u{34f}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

//! Text of the format "flowed" (RFC 3676): lines that a blank ends go on in the next one.

/// Quotes inside quotes deeper than this are marked no more often.
const DEEPEST_QUOTE: usize = 50;

/// Paragraphs as lines. With `DelSp=yes` the blank at a line's end is no part of the text (§4.1).
pub(super) fn unwrapped(text: &str, deletes_blanks: bool) -> String {
    let mut result = String::with_capacity(text.len());
    // The depth of the paragraph that continues, if one does.
    let mut open: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let (line, has_end) = match line.strip_suffix('\n') {
            Some(line) => (line, true),
            None => (line, false),
        };
        let unquoted = line.trim_start_matches('>');
        let depth = line.len() - unquoted.len();
        // A blank at the beginning was put there for transport (§4.4).
        let content = unquoted.strip_prefix(' ').unwrap_or(unquoted);
        let is_signature = content == "-- ";
        let goes_on = content.ends_with(' ') && !is_signature && has_end;
        if open != Some(depth) || is_signature {
            if open.is_some() {
                result.push('\n');
            }
            for _ in 0..depth.min(DEEPEST_QUOTE) {
                result.push('>');
            }
            if depth > 0 && !content.is_empty() {
                result.push(' ');
            }
        }
        let kept = if goes_on && deletes_blanks { content.strip_suffix(' ') } else { None };
        result.push_str(kept.unwrap_or(content));
        open = goes_on.then_some(depth);
        if has_end && !goes_on {
            result.push('\n');
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::unwrapped;

    #[test]
    fn paragraphs_become_lines() {
        for (flowed, deletes_blanks, text) in [
            ("one \ntwo\nthree\n", false, "one two\nthree\n"),
            ("one \ntwo\n", true, "onetwo\n"),
            ("> said \n> so\n> yes\nno\n", false, "> said so\n> yes\nno\n"),
            (">> deep \n> less\n", false, ">> deep \n> less\n"),
            (" From me\n > no quote\n", false, "From me\n> no quote\n"),
            ("text \n-- \nAnn \nLee\n", false, "text \n-- \nAnn Lee\n"),
            ("a \n\nb", false, "a \nb"),
            (">\n> a\n", false, ">\n> a\n"),
            ("open ", false, "open "),
            ("", false, ""),
        ] {
            assert_eq!(unwrapped(flowed, deletes_blanks), text, "{flowed:?}");
        }
    }
}

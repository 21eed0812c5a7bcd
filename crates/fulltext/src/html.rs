//! The words of HTML and of flowed text. Mail's own bodies are shown by `mail`, which lays them out for people.

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, State, Tokenizer};

/// What is in words for a search: text, descriptions of pictures, titles; without scripts and styles. Linear in the length of
/// the HTML, and at most three times as long: a NUL in an attribute becomes a replacement character.
#[must_use]
pub fn text_of_html(html: &str) -> String {
    let mut words = HtmlWords::default();
    let emitter =
        CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| -> Option<State> { words.take(&event) });
    let mut tokenizer = Tokenizer::new_with_emitter(html, emitter);
    while let Some(Ok(state)) = tokenizer.next() {
        tokenizer.set_state(state);
    }
    drop(tokenizer);
    words.text
}

#[derive(Default)]
struct HtmlWords {
    text: String,
    tag: Vec<u8>,
    is_described: bool,
    /// Within what is for machines.
    hides: bool,
}

impl HtmlWords {
    fn take(&mut self, event: &CallbackEvent<'_>) -> Option<State> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag.clear();
                self.tag.extend_from_slice(name);
                self.set_apart(name);
            }
            CallbackEvent::AttributeName { name } => self.is_described = matches!(*name, b"alt" | b"title"),
            CallbackEvent::AttributeValue { value } if self.is_described => {
                self.text.push(' ');
                self.text.push_str(&String::from_utf8_lossy(value));
                self.text.push(' ');
            }
            CallbackEvent::CloseStartTag { .. } => {
                let state = match self.tag.as_slice() {
                    b"title" | b"textarea" => return Some(State::RcData),
                    b"script" => State::ScriptData,
                    b"style" | b"iframe" | b"noembed" | b"noframes" => State::RawText,
                    _ => return None,
                };
                self.hides = true;
                return Some(state);
            }
            CallbackEvent::EndTag { name } => {
                self.hides = false;
                self.set_apart(name);
            }
            CallbackEvent::String { value } if !self.hides => {
                self.text.push_str(&String::from_utf8_lossy(value));
            }
            _ => {}
        }
        None
    }

    /// Most elements end a word; those within a line do not.
    fn set_apart(&mut self, name: &[u8]) {
        let is_within_word = matches!(
            name,
            b"a" | b"abbr"
                | b"b"
                | b"bdi"
                | b"bdo"
                | b"big"
                | b"cite"
                | b"code"
                | b"data"
                | b"del"
                | b"dfn"
                | b"em"
                | b"font"
                | b"i"
                | b"ins"
                | b"kbd"
                | b"mark"
                | b"q"
                | b"s"
                | b"samp"
                | b"small"
                | b"span"
                | b"strike"
                | b"strong"
                | b"sub"
                | b"sup"
                | b"time"
                | b"tt"
                | b"u"
                | b"var"
                | b"wbr"
        );
        if !is_within_word {
            self.text.push('\n');
        }
    }
}

/// The paragraphs of flowed text (RFC 3676): with `DelSp=yes` a word may go on in the next line.
#[must_use]
pub fn text_of_flowed(text: &str, deletes_blanks: bool) -> String {
    let mut words = String::with_capacity(text.len());
    let mut depth_before = None;
    for line in text.lines() {
        let unquoted = line.trim_start_matches('>');
        let depth = line.len() - unquoted.len();
        let content = unquoted.strip_prefix(' ').unwrap_or(unquoted);
        if depth_before != Some(depth) && !words.is_empty() {
            words.push('\n');
        }
        // §4.3: the line "-- " separates a signature and is not flowed.
        let flows = content.ends_with(' ') && content != "-- ";
        let kept = if flows && deletes_blanks { content.strip_suffix(' ') } else { None };
        words.push_str(kept.unwrap_or(content));
        depth_before = flows.then_some(depth);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{text_of_flowed, text_of_html};

    fn words(html: &str) -> Vec<String> {
        text_of_html(html).split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn words_of_html_are_what_people_read() {
        let html = "<title>A &amp; B</title><style>p{}</style><p>half<b>bold</b><td>cell<td title='tip'>two<br>three\
                    <script>if (a < b) x()</script><img alt=\"a picture\"><!-- no -->end";
        assert_eq!(
            words(html),
            ["A", "&", "B", "halfbold", "cell", "tip", "two", "three", "a", "picture", "end"]
        );
        assert_eq!(words("<scr"), Vec::<String>::new());
        assert_eq!(words("caf&eacute; &#26085;"), ["café", "日"]);
    }

    #[test]
    fn flowed_lines_are_one_paragraph() {
        assert_eq!(text_of_flowed("a long \nline\nnext", false), "a long line\nnext");
        assert_eq!(
            text_of_flowed("inter \nrupted\n> quoted \n> line\n-- \nme", true),
            "interrupted\nquotedline\n-- \nme"
        );
    }
}

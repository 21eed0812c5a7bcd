//! What an HTML body says, as text.

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, State, Tokenizer};

use super::layout::Layout;

/// Where in an HTML body its character set may stand (the HTML standard looks as far).
const META_BYTES: usize = 1_024;

/// No character reference of HTML is longer.
const LONGEST_ENTITY: usize = 34;

/// The character set that HTML itself declares in a `meta` element; for parts whose header names none.
pub(super) fn declared_charset(html: &[u8]) -> Option<&str> {
    const WORD: &[u8] = b"charset=";
    let beginning = html.get(..META_BYTES).unwrap_or(html);
    let at = beginning.windows(WORD.len()).position(|window| window.eq_ignore_ascii_case(WORD))?;
    let value = beginning.get(at + WORD.len()..)?;
    let value = value.strip_prefix(b"\"").or_else(|| value.strip_prefix(b"'")).unwrap_or(value);
    let ends = |byte: &u8| !(byte.is_ascii_alphanumeric() || b"-_.:".contains(byte));
    let end = value.iter().position(ends).unwrap_or(value.len());
    std::str::from_utf8(value.get(..end)?).ok().filter(|label| !label.is_empty())
}

/// HTML that was cut at some place, without a character reference that is not whole at its end.
pub(super) fn without_cut_entity(html: &str) -> &str {
    let longest = html.len().saturating_sub(LONGEST_ENTITY);
    let Some(start) = html.rfind('&').filter(|start| *start >= longest) else { return html };
    let (before, reference) = html.split_at(start);
    let is_open =
        reference.chars().skip(1).all(|character| character.is_ascii_alphanumeric() || character == '#');
    if is_open { before } else { html }
}

/// The text that a reader of the HTML sees. Time and memory are bounded by the length of the HTML.
pub(super) fn shown_text(html: &str) -> String {
    let (text, hiding) = laid_out(html, None);
    match hiding {
        // What hides all of it was never closed: it is shown as if that were not there.
        Some(element) if text.is_empty() => laid_out(html, Some(element)).0,
        _ => text,
    }
}

/// The text, and the element that hid the end of it. An element `shown` hides nothing.
fn laid_out(html: &str, shown: Option<Vec<u8>>) -> (String, Option<Vec<u8>>) {
    let mut layout = Layout::new(shown);
    let emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| -> Option<State> {
        layout.take(&event)
    });
    let mut tokenizer = Tokenizer::new_with_emitter(html, emitter);
    while let Some(Ok(state)) = tokenizer.next() {
        tokenizer.set_state(state);
    }
    drop(tokenizer);
    layout.finish()
}

#[cfg(test)]
mod tests {
    use super::{shown_text, without_cut_entity};

    fn check(html: &str, text: &str) {
        assert_eq!(shown_text(html), text, "{html}");
    }

    #[test]
    fn what_no_reader_sees_is_left_out() {
        check("<style type=\"text/css\">p{color:red}</style><p>Shown</p>", "Shown");
        check("<script type=x>if (a<b && c>d) { '</p>' }</script>Shown", "Shown");
        check("<head><title>T</title><STYLE media='a>b'>x</STYLE></head><body>Shown", "Shown");
        check("a<!-- <p>no</p> -->b<!--[if mso]><p>no</p><![endif]-->c", "abc");
        check("<![if !mso]>a<![endif]><![CDATA[no]]>b<?php no ?>c<!DOCTYPE html>", "abc");
        check("<div style=\"Display : NONE\">no <div>no</div> no</div><p hidden>no<p>yes", "yes");
        check("<textarea>no</textarea><iframe><p>no</p></iframe><noscript>yes</noscript>", "yes");
        check("<p title=\"a > b\" data-x='<i>'>Shown</p>", "Shown");
    }

    #[test]
    fn elements_stand_apart_as_a_reader_sees_them() {
        check(
            "<table><tr><td>Total</td><td>12.00</td></tr><tr><td>Tax<td>2.00</table>after",
            "Total\t12.00\nTax\t2.00\nafter",
        );
        check(
            "<ul><li>one<li>two<ul><li>inner</ul></ul><ol start=3><li>c<li>d</ol>x",
            "- one\n- two\n  - inner\n\n3. c\n4. d\n\nx",
        );
        check(
            "<p>one</p><p>two<br>three<br><br>four</p><div>five</div>six",
            "one\n\ntwo\nthree\n\nfour\n\nfive\nsix",
        );
        check("<h1>Head</h1>text<hr>more", "Head\n\ntext\n\nmore");
        check("a <b> b</b>\n\n c<i>d</i>", "a b cd");
        check("<pre>\n a\n  b</pre>c", " a\n  b\n\nc");
        check("<blockquote>said<br>so</blockquote>answer", "> said\n> so\n\nanswer");
        check(
            "<p>&nbsp;</p>a&nbsp;&nbsp;b&amp;&lt;&eacute;&#8364;&#x110000;&unknown; &copy",
            "a  b&<é€\u{fffd}&unknown; ©",
        );
        check("<dl><dt>term<dd>what it is</dl>", "term\nwhat it is");
        check("line one\nline two", "line one line two");
    }

    #[test]
    fn links_are_kept_where_they_say_more_than_their_text() {
        check("<a href=\"https://acme.example/x\">our page</a>.", "our page <https://acme.example/x>.");
        check("<a href=\"https://acme.example/\">acme.example</a>", "acme.example");
        check("<a href=\"https://acme.example/x\">https://acme.example/x</a>", "https://acme.example/x");
        check("<a href=\"mailto:ann@acme.example?subject=x\">ann@acme.example</a>", "ann@acme.example");
        check("<a href=\"mailto:ann@acme.example\">Ann</a>", "Ann <ann@acme.example>");
        check("<a href=\"#top\">up</a> <a href=\"javascript:x()\">run</a> <a name=x>here</a>", "up run here");
        check(
            "<a href=\"https://acme.example/x\"><img src=y alt=\"The logo\"></a>",
            "The logo <https://acme.example/x>",
        );
        check("<a href=\"https://acme.example/x\"><img src=y></a>z", "z");
        check("<a href=\"https://acme.example/x target=\">our page</a>", "our page <https://acme.example/x>");
    }

    #[test]
    fn damaged_html_shows_what_there_is() {
        check("<html><head><title>never closed <body><p>Shown</p>", "never closed\n\nShown");
        check("<div style='display:none'>all of it", "all of it");
        check("no tags at all", "no tags at all");
        check("1 < 2 and a<b", "1 < 2 and a");
        check("<p>cut <a href=\"https://acme.exam", "cut");
        check("</p></div>a</li></ul></table>b", "a\n\nb");
        check("", "");
    }

    #[test]
    fn html_that_is_cut_ends_before_an_open_reference() {
        for (cut, whole) in [
            ("a &am", "a "),
            ("a &#82", "a "),
            ("a &", "a "),
            ("a &amp;", "a &amp;"),
            ("a & b", "a & b"),
            ("ä &auml; b", "ä &auml; b"),
            ("", ""),
        ] {
            assert_eq!(without_cut_entity(cut), whole, "{cut}");
        }
    }

    #[test]
    fn hostile_html_takes_no_longer_than_its_length() {
        for piece in [
            "<b>",
            "<p>",
            "<a href=https://x.example>a",
            "<ul><li>a",
            "<x a",
            " a=b",
            "<!--",
            "<table><td>a",
            "&#1",
            "<div hidden>",
            "<",
        ] {
            let html = format!("<i {}", piece.repeat(60_000 / piece.len()));
            assert!(shown_text(&html).len() < 1_000_000, "{piece}");
        }
    }
}

//! HTML of strangers, made harmless: what is left are known elements with known attributes, written again from tokens.
//!
//! Nothing is taken over as it stands. Each element, attribute and declaration of a style is on a list, or is dropped; no element
//! whose text is raw (`style`, `title`, `svg`, …) is ever written, so a browser reads what is written as it was meant.

use std::fmt::Write as _;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, State, Tokenizer};

/// Elements in elements; what lies deeper loses its tags.
const DEPTH_MAX: usize = 100;
/// Written for one piece of HTML, without pictures.
const OUT_MAX_BYTES: usize = 4 << 20;
/// Pictures of one piece; further ones are left out.
const PICTURES_MAX: usize = 500;
/// Longer addresses are no links.
const LINK_MAX_BYTES: usize = 4096;
/// Looked at of a link's text for an address that it seems to lead to.
const LINK_TEXT_MAX_BYTES: usize = 400;

const ELEMENTS: [&str; 72] = [
    "a",
    "abbr",
    "address",
    "article",
    "aside",
    "b",
    "bdi",
    "bdo",
    "big",
    "blockquote",
    "br",
    "caption",
    "center",
    "cite",
    "code",
    "col",
    "colgroup",
    "dd",
    "del",
    "dfn",
    "div",
    "dl",
    "dt",
    "em",
    "figcaption",
    "figure",
    "font",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "i",
    "img",
    "ins",
    "kbd",
    "li",
    "main",
    "mark",
    "nav",
    "ol",
    "p",
    "pre",
    "q",
    "s",
    "samp",
    "section",
    "small",
    "span",
    "strike",
    "strong",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "time",
    "tr",
    "tt",
    "u",
    "ul",
    "var",
    "wbr",
    "dir",
    "menu",
];
const VOID: [&str; 5] = ["br", "col", "hr", "img", "wbr"];
/// What is dropped with all that is in it.
const SKIPPED: [&str; 13] = [
    "svg", "math", "template", "object", "applet", "audio", "video", "canvas", "select", "frameset",
    "datalist", "map", "portal",
];
/// Attributes whose values are words, numbers or texts, and can do nothing.
const ATTRIBUTES: [&str; 25] = [
    "align",
    "alt",
    "bgcolor",
    "border",
    "cellpadding",
    "cellspacing",
    "color",
    "colspan",
    "dir",
    "face",
    "height",
    "hspace",
    "lang",
    "nowrap",
    "reversed",
    "rowspan",
    "rules",
    "size",
    "span",
    "start",
    "title",
    "type",
    "valign",
    "vspace",
    "width",
];
const PROPERTIES: [&str; 22] = [
    "background",
    "background-color",
    "border",
    "clear",
    "color",
    "direction",
    "float",
    "font",
    "height",
    "letter-spacing",
    "line-height",
    "list-style",
    "margin",
    "max-height",
    "max-width",
    "min-height",
    "min-width",
    "opacity",
    "padding",
    "vertical-align",
    "white-space",
    "width",
];
/// Families of properties, by what they begin with.
const FAMILIES: [&str; 8] =
    ["border-", "font-", "list-style-", "margin-", "padding-", "table-layout", "text-", "word-"];
const FUNCTIONS: [&str; 4] = ["rgb", "rgba", "hsl", "hsla"];

/// What is wanted of it.
pub struct SafeOptions<'a> {
    /// Whether pictures come from other servers.
    pub remote_pictures: bool,
    /// Gives the `data:` address of a picture in the message, by its Content-ID.
    pub inline_picture: &'a mut dyn FnMut(&str) -> Option<String>,
}

/// HTML that can do nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SafeHtml {
    /// What stands in a body.
    pub html: String,
    /// Pictures of other servers that it names.
    pub remote_pictures: usize,
    /// Whether there was more than is written.
    pub is_cut: bool,
}

/// Makes HTML harmless. Time and memory are bounded by its length, and by what the pictures have.
#[must_use]
pub fn safe_html(html: &str, options: SafeOptions<'_>) -> SafeHtml {
    let mut writer = Writer::new(options);
    let emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| -> Option<State> {
        writer.take(&event)
    });
    let mut tokenizer = Tokenizer::new_with_emitter(html, emitter);
    while let Some(Ok(state)) = tokenizer.next() {
        tokenizer.set_state(state);
    }
    drop(tokenizer);
    writer.finish()
}

/// A text as HTML that shows it.
#[must_use]
pub fn html_of_text(text: &str) -> String {
    let mut html = String::with_capacity(text.len() + 16);
    html.push_str("<pre>");
    escape(text, &mut html);
    html.push_str("</pre>");
    html
}

/// Writes a text so that it is nothing but text, in elements and in attributes.
fn escape(text: &str, out: &mut String) {
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '`' => out.push_str("&#96;"),
            '\n' | '\t' => out.push(letter),
            '\r' => out.push_str("&#13;"),
            control if control.is_control() => {}
            other => out.push(other),
        }
    }
}

#[derive(Default)]
struct Tag {
    name: String,
    attribute: String,
    attributes: Vec<(String, String)>,
}

struct Link {
    host: String,
    text: String,
}

struct Writer<'a> {
    options: SafeOptions<'a>,
    safe: SafeHtml,
    tag: Option<Tag>,
    open: Vec<&'static str>,
    /// An element whose text is raw and dropped.
    raw: Option<String>,
    /// An element that is dropped with its content, and how many of its name are open.
    skipped: Option<(String, usize)>,
    link: Option<Link>,
    pictures: usize,
    picture_bytes: usize,
}

impl<'a> Writer<'a> {
    fn new(options: SafeOptions<'a>) -> Self {
        Self {
            options,
            safe: SafeHtml::default(),
            tag: None,
            open: Vec::new(),
            raw: None,
            skipped: None,
            link: None,
            pictures: 0,
            picture_bytes: 0,
        }
    }

    fn take(&mut self, event: &CallbackEvent<'_>) -> Option<State> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag = Some(Tag { name: text(name).to_ascii_lowercase(), ..Tag::default() });
            }
            CallbackEvent::AttributeName { name } => {
                if let Some(tag) = &mut self.tag {
                    tag.attribute = text(name).to_ascii_lowercase();
                }
            }
            CallbackEvent::AttributeValue { value } => {
                if let Some(tag) = &mut self.tag {
                    let name = std::mem::take(&mut tag.attribute);
                    let is_kept = is_read(&name) && value.len() <= LINK_MAX_BYTES;
                    // The first of several with one name counts.
                    if is_kept && !tag.attributes.iter().any(|(known, _)| *known == name) {
                        tag.attributes.push((name, text(value)));
                    }
                }
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                let tag = self.tag.take()?;
                return self.start(&tag, *self_closing);
            }
            CallbackEvent::EndTag { name } => {
                self.tag = None;
                self.end(&text(name).to_ascii_lowercase());
            }
            CallbackEvent::String { value } if self.is_shown() => self.text(&text(value)),
            _ => {}
        }
        None
    }

    fn is_shown(&mut self) -> bool {
        if self.safe.html.len() - self.picture_bytes > OUT_MAX_BYTES {
            self.safe.is_cut = true;
        }
        self.raw.is_none() && self.skipped.is_none() && !self.safe.is_cut
    }

    fn text(&mut self, text: &str) {
        if let Some(link) = &mut self.link
            && link.text.len() < LINK_TEXT_MAX_BYTES
        {
            link.text.push_str(text.get(..LINK_TEXT_MAX_BYTES).unwrap_or(text));
        }
        escape(text, &mut self.safe.html);
    }

    fn start(&mut self, tag: &Tag, self_closing: bool) -> Option<State> {
        let name = tag.name.as_str();
        if let Some(state) = raw_state(name) {
            self.raw = Some(name.to_owned());
            return Some(state);
        }
        match &mut self.skipped {
            Some((skipped, depth)) if skipped == name => *depth += usize::from(!self_closing),
            Some(_) => {}
            None if SKIPPED.contains(&name) => {
                self.skipped = (!self_closing).then(|| (name.to_owned(), 1));
            }
            None => self.element(tag),
        }
        None
    }

    fn element(&mut self, tag: &Tag) {
        let Some(name) = ELEMENTS.iter().find(|known| **known == tag.name).copied() else { return };
        if !self.is_shown() {
            return;
        }
        if name == "img" {
            return self.picture(tag);
        }
        let is_void = VOID.contains(&name);
        if !is_void && self.open.len() >= DEPTH_MAX {
            return;
        }
        if name == "a" {
            self.end("a");
        }
        self.safe.html.push('<');
        self.safe.html.push_str(name);
        self.attributes(tag);
        let address = tag.value("href").and_then(link_of).filter(|_| name == "a");
        if let Some(address) = address {
            self.attribute("href", &address);
            self.attribute("title", &address);
            self.safe.html.push_str(" target=\"_blank\" rel=\"noopener noreferrer nofollow\"");
            self.link = Some(Link { host: host_of(&address).to_owned(), text: String::new() });
        }
        self.safe.html.push('>');
        if !is_void {
            self.open.push(name);
        }
    }

    fn attribute(&mut self, name: &str, value: &str) {
        self.safe.html.push(' ');
        self.safe.html.push_str(name);
        self.safe.html.push_str("=\"");
        escape(value, &mut self.safe.html);
        self.safe.html.push('"');
    }

    fn attributes(&mut self, tag: &Tag) {
        for (name, value) in &tag.attributes {
            if ATTRIBUTES.contains(&name.as_str()) && !(tag.name == "a" && name == "title") {
                self.attribute(name, value);
            } else if name == "style" {
                let style = safe_style(value);
                if !style.is_empty() {
                    self.attribute("style", &style);
                }
            }
        }
    }

    fn picture(&mut self, tag: &Tag) {
        let source = tag.value("src").unwrap_or_default().trim();
        let lower = source.get(..source.len().min(8)).unwrap_or_default().to_ascii_lowercase();
        let id = lower.starts_with("cid:").then(|| source.get("cid:".len()..)).flatten();
        let is_remote = lower.starts_with("http:") || lower.starts_with("https:") || lower.starts_with("//");
        self.safe.remote_pictures += usize::from(is_remote);
        self.pictures += 1;
        let address = match id {
            _ if self.pictures > PICTURES_MAX => None,
            Some(id) => (self.options.inline_picture)(id),
            None if lower.starts_with("https:") && self.options.remote_pictures => Some(source.to_owned()),
            None => None,
        };
        let Some(address) = address else {
            let words = tag.value("alt").unwrap_or_default().trim().to_owned();
            if !words.is_empty() {
                self.text(&format!("[{words}]"));
            }
            return;
        };
        self.safe.html.push_str("<img");
        self.attributes(tag);
        let before = self.safe.html.len();
        self.attribute("src", &address);
        self.picture_bytes += self.safe.html.len() - before;
        self.safe.html.push_str(" referrerpolicy=\"no-referrer\">");
    }

    fn end(&mut self, name: &str) {
        if self.raw.is_some() {
            if self.raw.as_deref() == Some(name) {
                self.raw = None;
            }
            return;
        }
        if let Some((skipped, depth)) = &mut self.skipped {
            if skipped == name {
                *depth -= 1;
                if *depth == 0 {
                    self.skipped = None;
                }
            }
            return;
        }
        let Some(at) = self.open.iter().rposition(|open| *open == name) else { return };
        while self.open.len() > at {
            self.close();
        }
    }

    fn close(&mut self) {
        let Some(name) = self.open.pop() else { return };
        let _ = write!(self.safe.html, "</{name}>");
        if name != "a" {
            return;
        }
        let Some(link) = self.link.take() else { return };
        // A text that names another host than the one that it leads to is what deceives people.
        if shown_host(&link.text).is_some_and(|shown| !is_same_host(&shown, &link.host)) {
            self.safe.html.push_str(" <b>[");
            escape(&link.host, &mut self.safe.html);
            self.safe.html.push_str("]</b>");
        }
    }

    fn finish(mut self) -> SafeHtml {
        while !self.open.is_empty() {
            self.close();
        }
        self.safe
    }
}

impl Tag {
    fn value(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn is_read(name: &str) -> bool {
    matches!(name, "href" | "src" | "style") || ATTRIBUTES.contains(&name)
}

fn raw_state(name: &str) -> Option<State> {
    match name {
        "title" | "textarea" => Some(State::RcData),
        "script" => Some(State::ScriptData),
        "style" | "iframe" | "xmp" | "noembed" | "noframes" => Some(State::RawText),
        _ => None,
    }
}

/// An address that a link may have; browsers pass over blanks and control characters in one.
fn link_of(address: &str) -> Option<String> {
    let address: String = address.trim().chars().filter(|letter| !letter.is_control()).collect();
    let lower = address.to_ascii_lowercase();
    let is_known = ["http://", "https://", "mailto:", "tel:"].iter().any(|scheme| lower.starts_with(scheme));
    is_known.then_some(address)
}

/// The host of an address, with what stands before it taken off.
fn host_of(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    host.split(':').next().unwrap_or_default()
}

/// The host that a text seems to lead to.
fn shown_host(text: &str) -> Option<String> {
    let word = text.split_whitespace().find(|word| {
        let lower = word.get(..word.len().min(8)).unwrap_or_default().to_ascii_lowercase();
        lower.starts_with("http://") || lower.starts_with("https://") || lower.starts_with("www.")
    })?;
    let host = host_of(word).trim_end_matches(['.', ',', ')', '…']).to_ascii_lowercase();
    (!host.is_empty()).then_some(host)
}

fn is_same_host(shown: &str, host: &str) -> bool {
    let bare = |host: &str| host.trim_start_matches("www.").to_ascii_lowercase();
    bare(shown) == bare(host)
}

/// The declarations of a style that can load nothing, lie over nothing, and have no name of their own.
fn safe_style(style: &str) -> String {
    let mut safe = String::new();
    for declaration in style.split(';') {
        let Some((name, value)) = declaration.split_once(':') else { continue };
        let name = name.trim().to_ascii_lowercase();
        let is_known =
            PROPERTIES.contains(&name.as_str()) || FAMILIES.iter().any(|family| name.starts_with(family));
        let is_name = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        if is_known && is_name && is_safe_value(value) {
            let _ = write!(safe, "{name}:{};", value.trim());
        }
    }
    safe
}

/// Of words, numbers, colours and quoted names: nothing that is escaped, no function but those of colours.
fn is_safe_value(value: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() || " \t\n#%.,-+!'\"()".contains(letter);
    let is_even = |quote: char| value.matches(quote).count().is_multiple_of(2);
    let mut functions = value.split('(');
    functions.next_back();
    let calls_colours = functions.all(|before| {
        let name = before.rsplit(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-').next();
        name.is_some_and(|name| FUNCTIONS.contains(&name.to_ascii_lowercase().as_str()))
    });
    value.len() <= 500 && value.chars().all(is_letter) && is_even('"') && is_even('\'') && calls_colours
}

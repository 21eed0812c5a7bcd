//! Lays out the tokens of HTML as lines of text: what stands on a line of its own, what a blank sets apart, what is hidden.

use html5gum::State;
use html5gum::emitters::callback::CallbackEvent;

use crate::memo::LONGEST_BODY;

/// Longer addresses are for machines alone.
const LONGEST_LINK: usize = 1_000;

/// Lists inside lists deeper than this are indented no further, quotes inside quotes marked no more often.
const DEEPEST_INDENT: usize = 6;

/// Lists inside lists deeper than this are not numbered.
const MOST_LISTS: usize = 100;

/// More empty lines than this are none the clearer.
const MOST_BREAKS: usize = 3;

/// A start tag that is being read.
#[derive(Default)]
struct Tag {
    name: Vec<u8>,
    attribute: Vec<u8>,
    link: Option<String>,
    picture_text: String,
    first_number: Option<u32>,
    is_hidden: bool,
}

/// The text so far, and what is to stand before the next of it.
#[derive(Default)]
pub(super) struct Layout {
    text: String,
    tag: Option<Tag>,
    /// Line ends to come before the next text.
    breaks: usize,
    space: bool,
    tab: bool,
    /// What marks the item of a list that has no text yet.
    marker: Option<String>,
    /// Of each list around: its next number, where it counts.
    lists: Vec<Option<u32>>,
    quotes: usize,
    preformatted: usize,
    /// Where a link goes, and where its text began.
    link: Option<(String, usize)>,
    /// The element whose text is raw and not shown.
    raw: Option<Vec<u8>>,
    /// A hidden element, and how many of its name are open.
    hidden: Option<(Vec<u8>, usize)>,
    /// The element that hides nothing, see [`Layout::new`].
    shown: Option<Vec<u8>>,
}

impl Layout {
    /// Where an element that is never closed hid everything, it is `shown` in another try.
    pub(super) fn new(shown: Option<Vec<u8>>) -> Self {
        Self { shown, ..Self::default() }
    }

    /// Takes up one token; gives the state in which the tokenizer is to read on.
    pub(super) fn take(&mut self, event: &CallbackEvent<'_>) -> Option<State> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag = Some(Tag { name: name.to_vec(), ..Tag::default() });
            }
            CallbackEvent::AttributeName { name } => {
                if let Some(tag) = &mut self.tag {
                    tag.attribute = name.to_vec();
                    tag.is_hidden |= *name == b"hidden";
                }
            }
            CallbackEvent::AttributeValue { value } => {
                if let Some(tag) = &mut self.tag {
                    tag.take_value(value);
                }
            }
            CallbackEvent::CloseStartTag { .. } => {
                let tag = self.tag.take()?;
                return self.start(tag);
            }
            CallbackEvent::EndTag { name } => {
                self.tag = None;
                self.end(name);
            }
            CallbackEvent::String { value } if self.is_visible() => {
                self.characters(&String::from_utf8_lossy(value));
            }
            _ => {}
        }
        None
    }

    /// The text, and the element that hid its end.
    pub(super) fn finish(mut self) -> (String, Option<Vec<u8>>) {
        self.end_link();
        let hiding = self.raw.or_else(|| self.hidden.map(|hidden| hidden.0));
        let lines: Vec<&str> = self.text.lines().map(str::trim_end).collect();
        (lines.join("\n").trim_matches('\n').trim_end().to_owned(), hiding)
    }

    fn is_visible(&self) -> bool {
        self.raw.is_none() && self.hidden.is_none() && self.text.len() <= 2 * LONGEST_BODY
    }

    fn start(&mut self, tag: Tag) -> Option<State> {
        let state = raw_state(&tag.name).filter(|_| self.shown.as_ref() != Some(&tag.name));
        if state.is_some() && tag.name != b"xmp" {
            self.raw = Some(tag.name);
            return state;
        }
        let breaks = breaks_around(&tag.name);
        match &mut self.hidden {
            // A paragraph ends where the next block begins, closed or not.
            Some((name, _)) if name == b"p" && breaks > 0 => self.hidden = None,
            Some((name, depth)) if *name == tag.name => *depth += 1,
            _ => {}
        }
        if self.hidden.is_some() {
            return state;
        }
        if (tag.is_hidden || tag.name == b"template")
            && !is_void(&tag.name)
            && self.shown.as_ref() != Some(&tag.name)
        {
            self.hidden = Some((tag.name, 1));
            return state;
        }
        self.block(breaks);
        self.start_shown(tag);
        state
    }

    fn start_shown(&mut self, tag: Tag) {
        match tag.name.as_slice() {
            b"br" => self.breaks = (self.breaks + 1).min(MOST_BREAKS),
            b"td" | b"th" => self.tab = true,
            b"img" | b"area" => self.characters(&tag.picture_text),
            b"ul" | b"menu" | b"dir" | b"ol" if self.lists.len() < MOST_LISTS => {
                self.lists.push((tag.name == b"ol").then(|| tag.first_number.unwrap_or(1)));
            }
            b"li" => self.marker = Some(self.next_marker()),
            b"blockquote" => self.quotes += 1,
            b"pre" | b"xmp" | b"listing" | b"plaintext" => self.preformatted += 1,
            b"a" => {
                self.end_link();
                self.link = tag.link.map(|link| (link, self.text.len()));
            }
            _ => {}
        }
    }

    fn end(&mut self, name: &[u8]) {
        if self.raw.as_deref() == Some(name) {
            self.raw = None;
            return;
        }
        if let Some((hidden, depth)) = &mut self.hidden {
            if hidden == name {
                *depth -= 1;
                if *depth == 0 {
                    self.hidden = None;
                }
            }
            return;
        }
        match name {
            b"a" => self.end_link(),
            b"ul" | b"menu" | b"dir" | b"ol" => {
                self.lists.pop();
                self.marker = None;
            }
            b"blockquote" => self.quotes = self.quotes.saturating_sub(1),
            b"pre" | b"xmp" | b"listing" => self.preformatted = self.preformatted.saturating_sub(1),
            _ => {}
        }
        self.block(breaks_around(name));
    }

    /// At least this many line ends come before the next text. Lists inside lists need no empty lines.
    fn block(&mut self, breaks: usize) {
        let breaks = if self.lists.is_empty() { breaks } else { breaks.min(1) };
        self.breaks = self.breaks.max(breaks);
    }

    fn next_marker(&mut self) -> String {
        match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            _ => "- ".to_owned(),
        }
    }

    fn characters(&mut self, text: &str) {
        if self.preformatted > 0 {
            return self.preformatted(text);
        }
        for (place, word) in text.split(|character: char| character.is_ascii_whitespace()).enumerate() {
            self.space |= place > 0;
            if word.is_empty() {
                continue;
            }
            if word.chars().all(|character| character == '\u{a0}') && self.is_line_start() {
                continue;
            }
            self.separate();
            self.text
                .extend(word.chars().map(|character| if character == '\u{a0}' { ' ' } else { character }));
        }
    }

    fn preformatted(&mut self, text: &str) {
        for (place, line) in text.split('\n').enumerate() {
            if place > 0 {
                self.breaks += 1;
            }
            let line = line.trim_end_matches('\r');
            if !line.is_empty() {
                self.space = false;
                self.separate();
                self.text.push_str(line);
            }
        }
    }

    fn is_line_start(&self) -> bool {
        self.text.is_empty() || self.breaks > 0
    }

    /// Writes what is to stand before the next text.
    fn separate(&mut self) {
        if self.is_line_start() {
            let breaks = if self.text.is_empty() { 0 } else { self.breaks };
            for _ in 0..breaks {
                self.text.push('\n');
            }
            for _ in 0..self.quotes.min(DEEPEST_INDENT) {
                self.text.push_str("> ");
            }
            for _ in 1..self.lists.len().min(DEEPEST_INDENT) {
                self.text.push_str("  ");
            }
        } else if self.tab {
            self.text.push('\t');
        } else if self.space {
            self.text.push(' ');
        }
        if let Some(marker) = self.marker.take() {
            self.text.push_str(&marker);
        }
        (self.breaks, self.space, self.tab) = (0, false, false);
    }

    /// Writes where a link goes behind its text, if that does not say it.
    fn end_link(&mut self) {
        let Some((link, start)) = self.link.take() else { return };
        let text = self.text.get(start..).unwrap_or_default().trim().to_owned();
        let without_scheme = link.split_once("://").map_or(link.as_str(), |(_, rest)| rest);
        let says_it = text.contains(without_scheme.trim_end_matches('/'));
        if !text.is_empty() && !says_it && self.is_visible() {
            self.text.push_str(" <");
            self.text.push_str(&link);
            self.text.push('>');
        }
    }
}

impl Tag {
    fn take_value(&mut self, value: &[u8]) {
        let text = || String::from_utf8_lossy(value).trim().to_owned();
        match self.attribute.as_slice() {
            b"href" if self.name == b"a" => self.link = shown_link(&text()),
            b"alt" => self.picture_text = text(),
            b"start" => self.first_number = text().parse().ok(),
            b"style" => {
                let plain: Vec<u8> = value
                    .iter()
                    .filter(|byte| !byte.is_ascii_whitespace())
                    .map(u8::to_ascii_lowercase)
                    .collect();
                self.is_hidden |= plain.windows(12).any(|window| window == b"display:none");
            }
            _ => {}
        }
    }
}

/// A link as it is shown; `None` for one that leads nowhere outside of the message.
fn shown_link(link: &str) -> Option<String> {
    // Blanks and brackets are none of an address: a quote that is missing has made a part of the tag one of it.
    let ends = |character: char| character.is_ascii_whitespace() || "<>".contains(character);
    let link = link.split(ends).next()?;
    let lower = link.get(..8).unwrap_or(link).to_ascii_lowercase();
    if link.len() > LONGEST_LINK || link.contains(char::is_control) {
        return None;
    }
    if let Some(scheme) = ["http://", "https://", "ftp://"].iter().find(|scheme| lower.starts_with(**scheme))
    {
        return (link.len() > scheme.len()).then(|| link.to_owned());
    }
    let address = if lower.starts_with("mailto:") { link.get(7..)? } else { return None };
    let address = address.split('?').next().unwrap_or_default();
    let address = address.split("%20").next().unwrap_or_default();
    (!address.is_empty()).then(|| address.to_owned())
}

/// The state in which an element's text is read (HTML standard §13.2.6.2). A reader of mail runs no scripts, so that
/// `noscript` is an element like others.
fn raw_state(name: &[u8]) -> Option<State> {
    match name {
        b"title" | b"textarea" => Some(State::RcData),
        b"script" => Some(State::ScriptData),
        b"style" | b"iframe" | b"xmp" | b"noembed" | b"noframes" => Some(State::RawText),
        _ => None,
    }
}

fn is_void(name: &[u8]) -> bool {
    matches!(
        name,
        b"area"
            | b"base"
            | b"br"
            | b"col"
            | b"embed"
            | b"hr"
            | b"img"
            | b"input"
            | b"link"
            | b"meta"
            | b"source"
            | b"track"
            | b"wbr"
    )
}

/// How many line ends at least set an element apart from what is around it.
fn breaks_around(name: &[u8]) -> usize {
    match name {
        b"p" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"blockquote" | b"pre" | b"xmp"
        | b"listing" | b"ul" | b"ol" | b"menu" | b"dir" | b"hr" | b"figure" => 2,
        b"address" | b"article" | b"aside" | b"body" | b"caption" | b"center" | b"dd" | b"details"
        | b"div" | b"dl" | b"dt" | b"fieldset" | b"figcaption" | b"footer" | b"form" | b"head"
        | b"header" | b"html" | b"legend" | b"li" | b"main" | b"nav" | b"option" | b"plaintext"
        | b"section" | b"summary" | b"table" | b"tbody" | b"tfoot" | b"thead" | b"title" | b"tr" => 1,
        _ => 0,
    }
}

//! Bodies in XML: read into a tree within limits, and written.

use quick_xml::NsReader;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::ResolveResult;
use thiserror::Error;

use crate::names::PREFIXES;

/// Limits of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct XmlLimits {
    pub bytes: usize,
    pub depth: usize,
    pub elements: usize,
    /// Attributes of one element.
    pub attributes: usize,
}

impl Default for XmlLimits {
    fn default() -> Self {
        Self { bytes: 1 << 20, depth: 32, elements: 50_000, attributes: 32 }
    }
}

/// Why a body is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum XmlError {
    #[error("the body is longer than {0} bytes")]
    TooLong(usize),
    #[error("elements are nested deeper than {0}")]
    TooDeep(usize),
    #[error("the body has more than {0} elements")]
    TooManyElements(usize),
    #[error("an element has more than {0} attributes")]
    TooManyAttributes(usize),
    #[error("the body declares a document type, which is not allowed")]
    DocumentType,
    #[error("the body uses an entity that XML does not have")]
    Entity,
    #[error("the body uses a prefix that it does not declare")]
    Prefix,
    #[error("the body is not UTF-8")]
    NotText,
    #[error("the body has no element, or more than one, or text outside of it")]
    Root,
    #[error("the body is not well-formed: {0}")]
    Malformed(String),
}

/// The name of an element or attribute: its namespace, which may be none, and its name there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Name {
    pub namespace: String,
    pub local: String,
}

impl Name {
    /// A name.
    #[must_use]
    pub fn new(namespace: &str, local: &str) -> Self {
        Self { namespace: namespace.to_owned(), local: local.to_owned() }
    }

    /// Whether it is this one.
    #[must_use]
    pub fn is(&self, namespace: &str, local: &str) -> bool {
        self.namespace == namespace && self.local == local
    }
}

/// What stands in an element.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Node {
    Element(Element),
    Text(String),
}

/// An element.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Element {
    pub name: Name,
    pub attributes: Vec<(Name, String)>,
    pub children: Vec<Node>,
}

impl Element {
    /// An element of this name, empty.
    #[must_use]
    pub fn new(namespace: &str, local: &str) -> Self {
        Self { name: Name::new(namespace, local), attributes: Vec::new(), children: Vec::new() }
    }

    /// An empty element.
    #[must_use]
    pub fn named(name: &Name) -> Self {
        Self { name: name.clone(), attributes: Vec::new(), children: Vec::new() }
    }

    /// The same with this text.
    #[must_use]
    pub fn with_text(mut self, text: &str) -> Self {
        if !text.is_empty() {
            self.children.push(Node::Text(text.to_owned()));
        }
        self
    }

    /// The same with this element in it.
    #[must_use]
    pub fn with(mut self, child: Self) -> Self {
        self.children.push(Node::Element(child));
        self
    }

    /// The same with these elements in it.
    #[must_use]
    pub fn with_all(mut self, children: impl IntoIterator<Item = Self>) -> Self {
        self.children.extend(children.into_iter().map(Node::Element));
        self
    }

    /// The same with an attribute that has no namespace.
    #[must_use]
    pub fn with_attribute(mut self, name: &str, value: &str) -> Self {
        self.attributes.push((Name::new("", name), value.to_owned()));
        self
    }

    /// Whether it has this name.
    #[must_use]
    pub fn is(&self, namespace: &str, local: &str) -> bool {
        self.name.is(namespace, local)
    }

    /// The elements in it.
    pub fn elements(&self) -> impl Iterator<Item = &Self> {
        self.children.iter().filter_map(|node| match node {
            Node::Element(element) => Some(element),
            Node::Text(_) => None,
        })
    }

    /// The first element in it that has this name.
    #[must_use]
    pub fn child(&self, namespace: &str, local: &str) -> Option<&Self> {
        self.elements().find(|element| element.is(namespace, local))
    }

    /// The text in it, without that of its elements.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.children.iter().filter_map(|node| match node {
            Node::Text(text) => Some(text.as_str()),
            Node::Element(_) => None,
        });
        texts.collect()
    }

    /// An attribute that has no namespace.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known.is("", name)).map(|(_, value)| value.as_str())
    }

    /// Reads a body.
    ///
    /// # Errors
    /// [`XmlError`]
    pub fn parse(body: &[u8], limits: XmlLimits) -> Result<Self, XmlError> {
        if body.len() > limits.bytes {
            return Err(XmlError::TooLong(limits.bytes));
        }
        let body = std::str::from_utf8(body).map_err(|_| XmlError::NotText)?;
        Tree { limits, open: Vec::new(), root: None, elements: 0 }
            .read(body.strip_prefix('\u{feff}').unwrap_or(body))
    }

    /// Writes a body. What XML cannot hold is left out.
    #[must_use]
    pub fn write(&self) -> String {
        let mut out = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n".to_owned();
        self.write_into(&mut out, true, "");
        out
    }

    pub(crate) fn write_into(&self, out: &mut String, is_root: bool, default: &str) {
        let known = PREFIXES.iter().find(|(namespace, _)| *namespace == self.name.namespace);
        let tag = match known {
            Some((_, prefix)) => format!("{prefix}:{}", self.name.local),
            None => self.name.local.clone(),
        };
        out.push('<');
        out.push_str(&tag);
        if is_root {
            for (namespace, prefix) in PREFIXES {
                out.push_str(&format!(" xmlns:{prefix}=\"{namespace}\""));
            }
        }
        let default = match known {
            Some(_) => default,
            None => {
                if default != self.name.namespace {
                    out.push_str(&format!(" xmlns=\"{}\"", escaped(&self.name.namespace, true)));
                }
                &self.name.namespace
            }
        };
        for (index, (name, value)) in self.attributes.iter().enumerate() {
            let prefix = match name.namespace.as_str() {
                "" => String::new(),
                XML => "xml:".to_owned(),
                namespace => {
                    out.push_str(&format!(" xmlns:n{index}=\"{}\"", escaped(namespace, true)));
                    format!("n{index}:")
                }
            };
            out.push_str(&format!(" {prefix}{}=\"{}\"", name.local, escaped(value, true)));
        }
        if self.children.is_empty() {
            out.push_str("/>");
            return;
        }
        out.push('>');
        for child in &self.children {
            match child {
                Node::Text(text) => out.push_str(&escaped(text, false)),
                Node::Element(element) => element.write_into(out, false, default),
            }
        }
        out.push_str("</");
        out.push_str(&tag);
        out.push('>');
    }
}

/// What `xml:` stands for.
const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// What XML 1.0 can hold (section 2.2).
fn is_xml(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

fn escaped(text: &str, in_attribute: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars().filter(|character| is_xml(*character)) {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' if in_attribute => out.push_str("&quot;"),
            // A reader makes a space or an LF of them otherwise.
            '\r' => out.push_str("&#13;"),
            '\n' | '\t' if in_attribute => out.push_str(&format!("&#{};", u32::from(character))),
            character => out.push(character),
        }
    }
    out
}

struct Tree {
    limits: XmlLimits,
    open: Vec<Element>,
    root: Option<Element>,
    elements: usize,
}

impl Tree {
    fn read(mut self, body: &str) -> Result<Element, XmlError> {
        let mut reader = NsReader::from_str(body);
        reader.config_mut().expand_empty_elements = true;
        loop {
            let event = reader.read_event().map_err(malformed)?;
            match event {
                Event::Start(start) => {
                    let element = self.element(&reader, &start)?;
                    self.open.push(element);
                }
                Event::End(_) => self.close()?,
                Event::Text(text) => {
                    let text = text.xml10_content().map_err(malformed)?;
                    self.text(&text)?;
                }
                Event::CData(text) => {
                    let text = text.xml10_content().map_err(malformed)?;
                    self.text(&text)?;
                }
                Event::GeneralRef(reference) => {
                    let character = character_of(&reference)?;
                    self.text(character.encode_utf8(&mut [0; 4]))?;
                }
                Event::DocType(_) => return Err(XmlError::DocumentType),
                Event::Eof => break,
                Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            }
        }
        if self.open.is_empty() { self.root.ok_or(XmlError::Root) } else { Err(XmlError::Root) }
    }

    fn element(&mut self, reader: &NsReader<&[u8]>, start: &BytesStart<'_>) -> Result<Element, XmlError> {
        self.elements += 1;
        if self.open.len() >= self.limits.depth {
            return Err(XmlError::TooDeep(self.limits.depth));
        }
        if self.elements > self.limits.elements {
            return Err(XmlError::TooManyElements(self.limits.elements));
        }
        if self.root.is_some() {
            return Err(XmlError::Root);
        }
        let (namespace, local) = reader.resolver().resolve_element(start.name());
        let mut element =
            Element { name: name(&namespace, local.as_ref())?, attributes: Vec::new(), children: Vec::new() };
        for (index, attribute) in start.attributes().enumerate() {
            if index >= self.limits.attributes {
                return Err(XmlError::TooManyAttributes(self.limits.attributes));
            }
            let attribute = attribute.map_err(malformed)?;
            if attribute.key.as_namespace_binding().is_some() {
                continue;
            }
            let value = std::str::from_utf8(&attribute.value).map_err(|_| XmlError::NotText)?;
            let value = quick_xml::escape::unescape(value).map_err(|_| XmlError::Entity)?;
            if !value.chars().all(is_xml) {
                return Err(XmlError::Entity);
            }
            let (namespace, local) = reader.resolver().resolve_attribute(attribute.key);
            element.attributes.push((name(&namespace, local.as_ref())?, value.into_owned()));
        }
        Ok(element)
    }

    fn close(&mut self) -> Result<(), XmlError> {
        let closed = self.open.pop().ok_or(XmlError::Root)?;
        match self.open.last_mut() {
            Some(parent) => parent.children.push(Node::Element(closed)),
            None => self.root = Some(closed),
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), XmlError> {
        if !text.chars().all(is_xml) {
            return Err(XmlError::Entity);
        }
        let Some(parent) = self.open.last_mut() else {
            return if text.trim().is_empty() { Ok(()) } else { Err(XmlError::Root) };
        };
        match parent.children.last_mut() {
            Some(Node::Text(before)) => before.push_str(text),
            _ if text.is_empty() => {}
            _ => parent.children.push(Node::Text(text.to_owned())),
        }
        Ok(())
    }
}

fn name(namespace: &ResolveResult<'_>, local: &[u8]) -> Result<Name, XmlError> {
    let namespace = match namespace {
        ResolveResult::Unbound => "",
        ResolveResult::Bound(namespace) => std::str::from_utf8(namespace.0).map_err(|_| XmlError::NotText)?,
        ResolveResult::Unknown(_) => return Err(XmlError::Prefix),
    };
    let local = std::str::from_utf8(local).map_err(|_| XmlError::NotText)?;
    // The parser takes anything for a name; what is written must be one.
    let valid = local.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && local
            .chars()
            .all(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | '\u{b7}'));
    if !valid {
        return Err(XmlError::Malformed(format!("{local} is no name")));
    }
    let namespace = quick_xml::escape::unescape(namespace).map_err(|_| XmlError::Entity)?;
    if namespace.chars().all(is_xml) { Ok(Name::new(&namespace, local)) } else { Err(XmlError::Entity) }
}

fn character_of(reference: &BytesRef<'_>) -> Result<char, XmlError> {
    if let Some(character) = reference.resolve_char_ref().map_err(|_| XmlError::Entity)? {
        return Ok(character);
    }
    match &**reference {
        b"amp" => Ok('&'),
        b"lt" => Ok('<'),
        b"gt" => Ok('>'),
        b"quot" => Ok('"'),
        b"apos" => Ok('\''),
        _ => Err(XmlError::Entity),
    }
}

fn malformed(error: impl std::fmt::Display) -> XmlError {
    XmlError::Malformed(error.to_string())
}

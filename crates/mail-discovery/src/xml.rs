//! XML, written by a library: a value never ends its element.

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};

/// An XML document while it is written. Writing into memory does not fail.
pub(crate) struct Document {
    writer: Writer<Vec<u8>>,
}

impl Document {
    pub(crate) fn new() -> Self {
        let mut document = Self { writer: Writer::new_with_indent(Vec::new(), b' ', 2) };
        document.write(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)));
        document
    }

    /// A document type, which Apple's profiles have.
    pub(crate) fn document_type(&mut self, text: &str) {
        self.write(Event::DocType(BytesText::from_escaped(text)));
    }

    pub(crate) fn element(
        &mut self,
        name: &str,
        attributes: &[(&str, &str)],
        inside: impl FnOnce(&mut Self),
    ) {
        let mut start = BytesStart::new(name);
        let clean: Vec<(&str, String)> =
            attributes.iter().map(|(name, value)| (*name, without_control(value))).collect();
        for (name, value) in &clean {
            start.push_attribute((*name, value.as_str()));
        }
        self.write(Event::Start(start));
        inside(self);
        self.write(Event::End(BytesEnd::new(name)));
    }

    pub(crate) fn text(&mut self, name: &str, value: &str) {
        let value = without_control(value);
        self.element(name, &[], |document| document.write(Event::Text(BytesText::new(&value))));
    }

    pub(crate) fn empty(&mut self, name: &str) {
        self.write(Event::Empty(BytesStart::new(name)));
    }

    pub(crate) fn finish(self) -> String {
        let mut text = String::from_utf8_lossy(&self.writer.into_inner()).into_owned();
        text.push('\n');
        text
    }

    fn write(&mut self, event: Event<'_>) {
        _ = self.writer.write_event(event);
    }
}

/// XML 1.0 has no way to write most control characters (§2.2).
fn without_control(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control() && !matches!(letter, '\u{fffe}' | '\u{ffff}')).collect()
}

//! Answers about several resources (RFC 4918, section 13; RFC 6578, section 6.4).

use crate::names::{DAV, PREFIXES};
use crate::request::BodyError;
use crate::xml::{Element, XmlLimits};

/// Properties that have one status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertyStatus {
    /// 200, 404 and others.
    pub status: u16,
    /// The properties, with their values where there are some.
    pub properties: Vec<Element>,
    /// `DAV:error`.
    pub error: Option<Element>,
}

/// What is said of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceResponse {
    /// Its address; several have one status together.
    pub hrefs: Vec<String>,
    /// The status of the whole resource, where there are no properties.
    pub status: Option<u16>,
    /// Properties by status.
    pub properties: Vec<PropertyStatus>,
    /// `DAV:error`.
    pub error: Option<Element>,
    /// Text for people.
    pub description: Option<String>,
}

impl ResourceResponse {
    /// The first address.
    #[must_use]
    pub fn href(&self) -> &str {
        self.hrefs.first().map_or("", String::as_str)
    }

    /// The value of a property that was found.
    #[must_use]
    pub fn property(&self, namespace: &str, local: &str) -> Option<&Element> {
        let found =
            self.properties.iter().filter(|part| part.status == 200).flat_map(|part| &part.properties);
        found.into_iter().find(|property| property.is(namespace, local))
    }
}

/// An answer about several resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Multistatus {
    /// Each resource once.
    pub responses: Vec<ResourceResponse>,
    /// What the next `sync-collection` begins with.
    pub sync_token: Option<String>,
}

/// Writes an answer response by response, so that a long one takes the memory of its text alone.
#[derive(Debug)]
pub struct MultistatusWriter {
    text: String,
}

impl Default for MultistatusWriter {
    fn default() -> Self {
        let mut text = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus".to_owned();
        for (namespace, prefix) in PREFIXES {
            text.push_str(&format!(" xmlns:{prefix}=\"{namespace}\""));
        }
        text.push('>');
        Self { text }
    }
}

impl MultistatusWriter {
    /// Adds what is said of a resource.
    pub fn push(&mut self, response: &ResourceResponse) {
        response_element(response).write_into(&mut self.text, false, "");
    }

    /// Bytes so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// The body, with what the next `sync-collection` begins with.
    #[must_use]
    pub fn finish(mut self, sync_token: Option<&str>) -> String {
        if let Some(token) = sync_token {
            Element::new(DAV, "sync-token").with_text(token).write_into(&mut self.text, false, "");
        }
        self.text.push_str("</D:multistatus>");
        self.text
    }
}

impl Multistatus {
    /// Reads a body.
    ///
    /// # Errors
    /// [`BodyError`]
    pub fn parse(body: &[u8], limits: XmlLimits) -> Result<Self, BodyError> {
        let root = Element::parse(body, limits)?;
        if !root.is(DAV, "multistatus") {
            return Err(BodyError::Root);
        }
        let responses = root.elements().filter(|child| child.is(DAV, "response")).map(response);
        Ok(Self {
            responses: responses.collect::<Result<_, _>>()?,
            sync_token: root.child(DAV, "sync-token").map(|token| token.text().trim().to_owned()),
        })
    }

    /// The body.
    #[must_use]
    pub fn element(&self) -> Element {
        let token = self.sync_token.iter().map(|token| Element::new(DAV, "sync-token").with_text(token));
        Element::new(DAV, "multistatus").with_all(self.responses.iter().map(response_element)).with_all(token)
    }
}

fn response(element: &Element) -> Result<ResourceResponse, BodyError> {
    let hrefs: Vec<String> = element
        .elements()
        .filter(|child| child.is(DAV, "href"))
        .map(|href| href.text().trim().to_owned())
        .collect();
    if hrefs.is_empty() {
        return Err(BodyError::Missing("href"));
    }
    let mut properties = Vec::new();
    for part in element.elements().filter(|child| child.is(DAV, "propstat")) {
        let status = part.child(DAV, "status").ok_or(BodyError::Missing("status"))?;
        let all = part.child(DAV, "prop").ok_or(BodyError::Missing("prop"))?;
        properties.push(PropertyStatus {
            status: status_of(status)?,
            properties: all.elements().cloned().collect(),
            error: part.child(DAV, "error").cloned(),
        });
    }
    Ok(ResourceResponse {
        hrefs,
        status: element.child(DAV, "status").map(status_of).transpose()?,
        properties,
        error: element.child(DAV, "error").cloned(),
        description: element.child(DAV, "responsedescription").map(Element::text),
    })
}

/// What is said of a resource, as an element.
#[must_use]
pub fn response_element(response: &ResourceResponse) -> Element {
    let properties = response.properties.iter().map(|part| {
        let all = Element::new(DAV, "prop").with_all(part.properties.iter().cloned());
        Element::new(DAV, "propstat")
            .with(all)
            .with(status_element(part.status))
            .with_all(part.error.iter().cloned())
    });
    let hrefs = response.hrefs.iter().map(|href| Element::new(DAV, "href").with_text(href));
    let text = |text: &String| Element::new(DAV, "responsedescription").with_text(text);
    Element::new(DAV, "response")
        .with_all(hrefs)
        .with_all(response.status.iter().map(|status| status_element(*status)))
        .with_all(properties)
        .with_all(response.error.iter().cloned())
        .with_all(response.description.iter().map(text))
}

/// `HTTP/1.1 404 Not Found`.
fn status_of(element: &Element) -> Result<u16, BodyError> {
    let text = element.text();
    let code = text.split_ascii_whitespace().nth(1).and_then(|code| code.parse().ok());
    code.filter(|code| (100..1000).contains(code)).ok_or(BodyError::Value("status"))
}

fn status_element(status: u16) -> Element {
    let reason = match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        403 => "Forbidden",
        404 => "Not Found",
        409 => "Conflict",
        412 => "Precondition Failed",
        423 => "Locked",
        424 => "Failed Dependency",
        507 => "Insufficient Storage",
        _ => "Status",
    };
    Element::new(DAV, "status").with_text(&format!("HTTP/1.1 {status} {reason}"))
}

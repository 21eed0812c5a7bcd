//! The report of cargo-nextest.

use std::collections::BTreeMap;
use std::io;

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::run::TestName;

/// What became of a test that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It passed the first time.
    Passed,
    /// It failed, and passed when it was tried again.
    PassedAgain,
    /// It failed as often as it was tried.
    Failed,
}

/// What became of each test that ran.
pub(super) fn parse(report: &str) -> io::Result<BTreeMap<TestName, Outcome>> {
    let mut reader = Reader::from_str(report);
    let (mut ran, mut current) = (BTreeMap::new(), None);
    loop {
        match reader.read_event().map_err(io::Error::other)? {
            Event::Start(element) | Event::Empty(element) if element.name().as_ref() == b"testcase" => {
                let name = TestName {
                    program: attribute(&element, "classname")?,
                    test: attribute(&element, "name")?,
                };
                ran.insert(name.clone(), Outcome::Passed);
                current = Some(name);
            }
            Event::Start(element) | Event::Empty(element) => {
                let outcome = match element.name().as_ref() {
                    b"failure" | b"error" => Outcome::Failed,
                    b"flakyFailure" | b"flakyError" => Outcome::PassedAgain,
                    _ => continue,
                };
                if let Some(name) = &current {
                    ran.insert(name.clone(), outcome);
                }
            }
            Event::Eof => return Ok(ran),
            _ => {}
        }
    }
}

fn attribute(element: &BytesStart<'_>, name: &str) -> io::Result<String> {
    let found = element.try_get_attribute(name).map_err(io::Error::other)?;
    let found =
        found.ok_or_else(|| io::Error::other(format!("a test without {name} in nextest's report")))?;
    let value = found.normalized_value(XmlVersion::Implicit1_0).map_err(io::Error::other)?;
    Ok(value.into_owned())
}

//! The XML of a report, as rows.

use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};

use super::{AggregateReport, AuthResult, ReportError, ReportLimits, ReportRow};

/// Elements within elements; a report has six.
const DEPTH_MAX: usize = 16;

/// Letters of one value that are kept.
const VALUE_LETTERS_MAX: usize = 1_000;

/// Verdicts, reasons and errors of one list that are kept.
const LIST_MAX: usize = 50;

/// Reads the XML of a report.
///
/// # Errors
/// [`ReportError`]
pub fn parse_report(xml: &[u8], limits: &ReportLimits) -> Result<AggregateReport, ReportError> {
    if xml.len() > limits.xml_bytes {
        return Err(ReportError::Large(limits.xml_bytes));
    }
    // Old receivers write other character sets; names and numbers are ASCII in all of them.
    let text = String::from_utf8_lossy(xml);
    let mut reader = Reader::from_str(&text);
    let mut tree = Tree {
        report: AggregateReport::default(),
        row: None,
        path: Vec::new(),
        value: String::new(),
        most: limits.rows,
    };
    loop {
        match reader.read_event().map_err(|_| ReportError::Xml)? {
            Event::Start(start) => {
                let name = String::from_utf8_lossy(start.local_name().as_ref()).to_ascii_lowercase();
                tree.open(name)?;
            }
            Event::End(_) => tree.close(),
            Event::Text(text) => tree.text(&text.decode().map_err(|_| ReportError::Xml)?),
            Event::CData(text) => tree.text(&text.decode().map_err(|_| ReportError::Xml)?),
            Event::GeneralRef(reference) => tree.text(&letter(&reference)?),
            Event::DocType(_) => return Err(ReportError::DocumentType),
            Event::Eof => break,
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
    tree.finish()
}

/// What a reference stands for: the five of XML, and numbers.
fn letter(reference: &BytesRef<'_>) -> Result<String, ReportError> {
    if let Some(letter) = reference.resolve_char_ref().map_err(|_| ReportError::Xml)? {
        return Ok(letter.to_string());
    }
    let name = reference.decode().map_err(|_| ReportError::Xml)?;
    let text = quick_xml::escape::resolve_xml_entity(&name).ok_or(ReportError::DocumentType)?;
    Ok(text.to_owned())
}

struct Tree {
    report: AggregateReport,
    row: Option<ReportRow>,
    path: Vec<String>,
    value: String,
    most: usize,
}

impl Tree {
    fn open(&mut self, name: String) -> Result<(), ReportError> {
        if self.path.len() == DEPTH_MAX {
            return Err(ReportError::Xml);
        }
        self.path.push(name);
        self.value.clear();
        let names: Vec<&str> = self.path.iter().map(String::as_str).collect();
        match names.as_slice() {
            [_, "record"] => self.row = Some(ReportRow::default()),
            [_, "record", rest @ ..] => {
                if let Some(row) = self.row.as_mut() {
                    begin(row, rest);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn text(&mut self, text: &str) {
        let room = VALUE_LETTERS_MAX.saturating_sub(self.value.chars().count());
        self.value
            .extend(text.chars().take(room).map(|letter| if letter.is_control() { ' ' } else { letter }));
    }

    fn close(&mut self) {
        let value = self.value.trim().to_owned();
        self.value.clear();
        let names: Vec<&str> = self.path.iter().map(String::as_str).collect();
        match names.as_slice() {
            [_, "record"] => match self.row.take() {
                Some(row) if self.report.rows.len() < self.most => self.report.rows.push(row),
                _ => self.report.rows_left_out += 1,
            },
            [_, "record", rest @ ..] => {
                if let Some(row) = self.row.as_mut() {
                    set_row(row, rest, value);
                }
            }
            [_, rest @ ..] => set_report(&mut self.report, rest, value),
            [] => {}
        }
        self.path.pop();
    }

    fn finish(self) -> Result<AggregateReport, ReportError> {
        let report = self.report;
        if !self.path.is_empty() {
            return Err(ReportError::Xml);
        }
        for (value, what) in [
            (&report.organization, "name of who reports"),
            (&report.report_id, "report_id"),
            (&report.policy.domain, "domain"),
        ] {
            if value.is_empty() {
                return Err(ReportError::Missing(what));
            }
        }
        Ok(report)
    }
}

/// An element of a list begins.
fn begin(row: &mut ReportRow, path: &[&str]) {
    match path {
        ["auth_results", "dkim"] if row.dkim.len() < LIST_MAX => row.dkim.push(AuthResult::default()),
        ["auth_results", "spf"] if row.spf.len() < LIST_MAX => row.spf.push(AuthResult::default()),
        ["row", "policy_evaluated", "reason"] if row.overrides.len() < LIST_MAX => {
            row.overrides.push(Default::default());
        }
        _ => {}
    }
}

fn set_row(row: &mut ReportRow, path: &[&str], value: String) {
    match path {
        ["row", "source_ip"] => row.source = value.parse().ok(),
        ["row", "count"] => row.count = value.parse().unwrap_or_default(),
        ["row", "policy_evaluated", "disposition"] => row.disposition = value,
        ["row", "policy_evaluated", "dkim"] => row.is_dkim_aligned = value.eq_ignore_ascii_case("pass"),
        ["row", "policy_evaluated", "spf"] => row.is_spf_aligned = value.eq_ignore_ascii_case("pass"),
        ["row", "policy_evaluated", "reason", part] => {
            if let Some((kind, comment)) = row.overrides.last_mut() {
                match *part {
                    "type" => *kind = value,
                    "comment" => *comment = value,
                    _ => {}
                }
            }
        }
        ["identifiers" | "identities", "header_from"] => row.header_from = value,
        ["identifiers" | "identities", "envelope_from"] => row.envelope_from = value,
        ["identifiers" | "identities", "envelope_to"] => row.envelope_to = value,
        ["auth_results", "dkim", part] => set_result(row.dkim.last_mut(), part, value),
        ["auth_results", "spf", part] => set_result(row.spf.last_mut(), part, value),
        _ => {}
    }
}

fn set_result(result: Option<&mut AuthResult>, part: &str, value: String) {
    let Some(result) = result else { return };
    match part {
        "domain" => result.domain = value,
        "selector" | "scope" => result.detail = value,
        "result" => result.result = value,
        "human_result" => result.explanation = value,
        _ => {}
    }
}

fn set_report(report: &mut AggregateReport, path: &[&str], value: String) {
    let policy = &mut report.policy;
    match path {
        ["report_metadata", "org_name"] => report.organization = value,
        ["report_metadata", "email"] => report.email = value,
        ["report_metadata", "extra_contact_info"] => report.contact = value,
        ["report_metadata", "report_id"] => report.report_id = value,
        ["report_metadata", "error"] if report.errors.len() < LIST_MAX => report.errors.push(value),
        ["report_metadata", "date_range", "begin"] => {
            report.begin_seconds = value.parse().unwrap_or_default();
        }
        ["report_metadata", "date_range", "end"] => report.end_seconds = value.parse().unwrap_or_default(),
        ["policy_published", "domain"] => policy.domain = value,
        ["policy_published", "p"] => policy.policy = value,
        ["policy_published", "sp"] => policy.subdomain_policy = value,
        ["policy_published", "np"] => policy.absent_policy = value,
        ["policy_published", "adkim"] => policy.dkim_alignment = value,
        ["policy_published", "aspf"] => policy.spf_alignment = value,
        ["policy_published", "testing" | "pct"] => policy.testing = value,
        ["policy_published", "discovery_method"] => policy.discovery_method = value,
        _ => {}
    }
}

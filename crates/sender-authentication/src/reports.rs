//! Aggregate reports (RFC 9990, and those of RFC 7489): what others saw of mail in a domain's name.
//!
//! A report comes as XML, in gzip or zip. Sizes are bounded before and while anything is inflated or read; what is unknown in a report
//! is passed over, and what is left out is said.

mod parse;
mod unpack;

pub use parse::parse_report;
pub use unpack::unpack_report;

use std::net::IpAddr;

/// What a report may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportLimits {
    /// Bytes of a report as it comes.
    pub packed_bytes: usize,
    /// Bytes of its XML.
    pub xml_bytes: usize,
    /// Rows that are kept.
    pub rows: usize,
}

impl Default for ReportLimits {
    /// 5 MB, 25 MB and 20,000: several times the largest that big receivers send.
    fn default() -> Self {
        Self { packed_bytes: 5 << 20, xml_bytes: 25 << 20, rows: 20_000 }
    }
}

/// Why a report cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// It is larger than allowed, packed or unpacked.
    #[error("the report is larger than {0} bytes")]
    Large(usize),
    /// It is no gzip, zip or XML.
    #[error("the report is none of XML, gzip and zip")]
    Form,
    /// Its packing is damaged.
    #[error("the report cannot be unpacked")]
    Packing,
    /// A zip file with several files, or none.
    #[error("the report's zip file has {0} files instead of one")]
    Files(usize),
    /// It is no XML, or nested deeper than any report.
    #[error("the report's XML cannot be read")]
    Xml,
    /// It declares entities or a document type, which no report needs.
    #[error("the report's XML declares things of its own")]
    DocumentType,
    /// It lacks what a report must have.
    #[error("the report has no {0}")]
    Missing(&'static str),
}

/// A report about one domain, from one receiver, over one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AggregateReport {
    /// Who reports.
    pub organization: String,
    /// Their address.
    pub email: String,
    /// More about them.
    pub contact: String,
    /// The report's name; with the organization it tells reports apart.
    pub report_id: String,
    /// The time it is about, in seconds since 1970.
    pub begin_seconds: u64,
    /// Its end.
    pub end_seconds: u64,
    /// What went wrong there.
    pub errors: Vec<String>,
    /// The policy that they found.
    pub policy: PolicyPublished,
    /// What they saw.
    pub rows: Vec<ReportRow>,
    /// Rows that were there beyond the limit.
    pub rows_left_out: u64,
}

/// The policy as the receiver found it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyPublished {
    /// The domain of the record.
    pub domain: String,
    /// `p`
    pub policy: String,
    /// `sp`
    pub subdomain_policy: String,
    /// `np`
    pub absent_policy: String,
    /// `adkim`
    pub dkim_alignment: String,
    /// `aspf`
    pub spf_alignment: String,
    /// `testing`, or what stood in `pct`.
    pub testing: String,
    /// `discovery_method`: `psl` or `treewalk`.
    pub discovery_method: String,
}

/// Messages of one address that fared alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportRow {
    /// Who sent them; `None` if the report has no address there.
    pub source: Option<IpAddr>,
    /// How many.
    pub count: u64,
    /// What was done with them.
    pub disposition: String,
    /// Whether an aligned signature passed.
    pub is_dkim_aligned: bool,
    /// Whether SPF passed, aligned.
    pub is_spf_aligned: bool,
    /// Why the policy was not applied, each with its comment.
    pub overrides: Vec<(String, String)>,
    /// The author domain.
    pub header_from: String,
    /// The domain of MAIL FROM.
    pub envelope_from: String,
    /// The domain of the recipient.
    pub envelope_to: String,
    /// Signatures.
    pub dkim: Vec<AuthResult>,
    /// SPF.
    pub spf: Vec<AuthResult>,
}

/// A verdict in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthResult {
    /// The domain that it is about.
    pub domain: String,
    /// The selector of a signature; for SPF the scope.
    pub detail: String,
    /// `pass`, `fail` and the like.
    pub result: String,
    /// What a person may read about it.
    pub explanation: String,
}

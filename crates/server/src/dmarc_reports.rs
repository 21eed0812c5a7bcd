//! What other servers say of mail in the names of our domains (DMARC's aggregate reports, RFC 9990): read out of the messages in which they
//! come into a database, and written into the same one, with views that a person understands.
//!
//! What is written is made of the messages under ids of theirs, so that a message which is read again adds nothing. The position in
//! the database's changes is a `_local` document; it may be behind.

use std::collections::BTreeMap;
use std::sync::Arc;

use scrinium_catalog::Databases;
use scrinium_database::{
    Access, ChangesQuery, Database, DatabaseError, Edit, EditMode, InitialAccess, ReadOptions, Since,
};
use scrinium_mail::SOURCE_ATTACHMENT;
use scrinium_mailbox::{MapBuilder, MessageText};
use scrinium_sender_authentication::{
    AggregateReport, AuthResult, Head, ReportLimits, ReportRow, claims, parse_report, split_message,
    unpack_report,
};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::Shutdown;

/// Who reads reports.
static READER: Access = Access::of_the_server("reading DMARC reports");

/// The design document with the views. `version` goes up with every change of it.
const DESIGN: &str = include_str!("dmarc_reports/design.json");
const DESIGN_ID: &str = "_design/dmarc";

/// Where it is kept how far changes have been read.
const POSITION_ID: &str = "_local/dmarc-reports";

/// A longer message holds no report.
const MESSAGE_MAX_BYTES: u64 = 8 << 20;

/// Files of a message that are looked at.
const FILES_MAX: usize = 5;

/// Changes that are read at a time, and edits of one batch.
const AT_ONCE: usize = 100;

/// Sources of one report that are written down; those that sent least are put together.
const SOURCES_MAX: usize = 2_000;

/// Verdicts of a row that are named.
const VERDICTS_SHOWN: usize = 3;

/// Texts of a report are cut.
const TEXT_MAX_CHARACTERS: usize = 200;

/// Reads what comes into a database.
pub(crate) struct ReportReader {
    database: OpenDatabase,
    /// By which name this server says what it found out about senders.
    server: String,
}

/// Why reports are not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReportReaderError {
    /// Somebody keeps other views under this name.
    #[error(
        "the database {0} has a design document {DESIGN_ID} that is no server's; set dmarc.reports_database to another name"
    )]
    Foreign(String),
    /// It cannot be made or read.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl ReportReader {
    /// Opens the database, or makes it, for administrators alone, and brings its views to this version.
    ///
    /// # Errors
    /// [`ReportReaderError`]
    pub(crate) fn open(databases: &Databases, name: &str, server: String) -> Result<Self, ReportReaderError> {
        let database = match databases.get(name) {
            Err(DatabaseError::NotFound { .. }) => databases.create(name, &InitialAccess::Closed)?,
            found => found?,
        };
        upgrade(&database)?;
        Ok(Self { database, server })
    }

    /// Reads until the server stops.
    pub(crate) fn start(self, stopping: Shutdown) -> JoinHandle<()> {
        let reader = Arc::new(self);
        tokio::spawn(async move {
            let mut changed = reader.database.watch();
            loop {
                changed.borrow_and_update();
                let (own, until) = (Arc::clone(&reader), stopping.clone());
                let read = tokio::task::spawn_blocking(move || own.read(&until)).await;
                if let Ok(Err(error)) = read {
                    tracing::warn!(%error, "DMARC reports cannot be read or written; they are read with the next one");
                }
                tokio::select! {
                    told = changed.changed() => if told.is_err() { return },
                    () = stopping.wait() => return,
                }
            }
        })
    }

    /// Reads what came since the last time.
    fn read(&self, stopping: &Shutdown) -> Result<(), DatabaseError> {
        let mut since = self.position()?;
        while !stopping.is_requested() {
            let query = ChangesQuery {
                since: Since::At(self.database.sequence_text(since)),
                limit: Some(AT_ONCE as u64),
                include_documents: true,
                ..ChangesQuery::default()
            };
            let mut changes = self.database.changes(query, &READER)?;
            let mut last = since;
            loop {
                let some = changes.next_changes(AT_ONCE)?;
                if some.is_empty() {
                    break;
                }
                for change in some {
                    last = last.max(change.change_number);
                    let document = change.document.filter(|_| !change.deleted);
                    let memo = document.and_then(|text| serde_json::from_str::<Value>(&text).ok());
                    if memo.is_some_and(|memo| memo.get("Form") == Some(&json!("Memo"))) {
                        self.read_message(&change.id)?;
                    }
                }
            }
            if last == since {
                return Ok(());
            }
            since = last;
            let position = json!({"since": since}).to_string();
            self.database.write_local(POSITION_ID, position.as_bytes(), false, None, &READER)?.wait()?;
        }
        Ok(())
    }

    fn position(&self) -> Result<u64, DatabaseError> {
        match self.database.read_local(POSITION_ID, &READER) {
            Ok(document) => {
                let value = document.json.to_value().unwrap_or_default();
                Ok(value.get("since").and_then(Value::as_u64).unwrap_or(0))
            }
            Err(DatabaseError::NotFound { .. }) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Writes down the reports of one message. Other files, and damaged ones, are passed over.
    fn read_message(&self, id: &str) -> Result<(), DatabaseError> {
        let Some(source) = self.source(id)? else { return Ok(()) };
        let map = MapBuilder::map(&source);
        let message = MessageText { map: &map, source: &source };
        let (limits, sender) = (ReportLimits::default(), self.sender(&source));
        for file in message.files().take(FILES_MAX) {
            let packed = message.decoded(&file, limits.packed_bytes.saturating_add(1));
            let report = unpack_report(&packed, &limits).and_then(|xml| parse_report(&xml, &limits));
            match report {
                Ok(report) => self.write((id, sender), &report)?,
                Err(error) => {
                    tracing::debug!(message = id, file = file.name, %error, "a file is no DMARC report");
                }
            }
        }
        Ok(())
    }

    fn source(&self, id: &str) -> Result<Option<Vec<u8>>, DatabaseError> {
        let reader = match self.database.open_attachment(id, SOURCE_ATTACHMENT, None, &READER) {
            Ok(reader) if reader.length <= MESSAGE_MAX_BYTES => reader,
            Ok(_) | Err(DatabaseError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut source = Vec::new();
        loop {
            let piece = reader.read(source.len() as u64, 1 << 20)?;
            if piece.is_empty() {
                return Ok(Some(source));
            }
            source.extend_from_slice(&piece);
        }
    }

    /// Whether whom a message says that it is from is proven: as this server wrote it down when the message came.
    fn sender(&self, source: &[u8]) -> &'static str {
        let (head, _) = split_message(source);
        let head = Head::parse(head);
        let mut own = head.fields.iter().filter(|field| field.is_named("Authentication-Results"));
        match own.find(|field| claims(field.value, &[&self.server])) {
            Some(field) if field.value.windows(10).any(|part| part == b"dmarc=pass") => "proven",
            Some(_) => "not proven",
            None => "not checked",
        }
    }

    fn write(&self, message: (&str, &str), report: &AggregateReport) -> Result<(), DatabaseError> {
        let documents = documents_of(message, report);
        for some in documents.chunks(AT_ONCE) {
            let edit = |(id, document): &(String, Value)| Edit {
                id: Some(id.clone()),
                json: document.to_string().into(),
                ..Edit::default()
            };
            let edits = some.iter().map(edit).collect();
            for result in self.database.update(edits, EditMode::Interactive, &READER)?.wait()? {
                match result {
                    // It was read before.
                    Ok(_) | Err(DatabaseError::Conflict) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

/// Writes the views of this version over those of an earlier one.
fn upgrade(database: &Arc<Database>) -> Result<(), ReportReaderError> {
    let own: Value = serde_json::from_str(DESIGN).unwrap_or_default();
    let stored = match database.read(DESIGN_ID, &ReadOptions::default(), &READER) {
        Ok(document) => document.json.to_value().unwrap_or_default(),
        Err(DatabaseError::NotFound { .. }) => Value::Null,
        Err(error) => return Err(error.into()),
    };
    if !stored.is_null() && stored.get("made_by") != own.get("made_by") {
        return Err(ReportReaderError::Foreign(database.name().to_owned()));
    }
    let version = |design: &Value| design.get("version").and_then(Value::as_u64).unwrap_or(0);
    if version(&stored) >= version(&own) {
        return Ok(());
    }
    let revision = stored.get("_rev").and_then(Value::as_str).map(str::to_owned);
    let edit =
        Edit { id: Some(DESIGN_ID.to_owned()), json: own.to_string().into(), revision, ..Edit::default() };
    database.update_one(edit, EditMode::Interactive, &READER)?;
    Ok(())
}

/// What one address has sent that fared alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Source {
    address: String,
    header_from: String,
    disposition: String,
    is_dkim_aligned: bool,
    is_spf_aligned: bool,
    why: String,
}

impl Source {
    fn of(row: &ReportRow) -> Self {
        Self {
            address: row.source.map(|address| address.to_string()).unwrap_or_default(),
            header_from: cut(&row.header_from),
            disposition: cut(&row.disposition),
            is_dkim_aligned: row.is_dkim_aligned,
            is_spf_aligned: row.is_spf_aligned,
            why: why(row),
        }
    }

    /// DMARC passes where one of both does (RFC 9989 §5.3.5).
    const fn passes(&self) -> bool {
        self.is_dkim_aligned || self.is_spf_aligned
    }
}

/// Why messages did not pass, in words; empty if they did.
fn why(row: &ReportRow) -> String {
    if row.is_dkim_aligned || row.is_spf_aligned {
        return String::new();
    }
    let said = |what: &str, verdict: &AuthResult| match verdict.result.to_ascii_lowercase().as_str() {
        // RFC 9989 §5.1.2: what passes counts for its own domain alone.
        "pass" => format!("{what} {} passes, which is another domain", verdict.domain),
        result => format!("{what} {}: {result}", verdict.domain),
    };
    let dkim = row.dkim.iter().take(VERDICTS_SHOWN).map(|verdict| said("signature of", verdict));
    let spf = row.spf.iter().take(VERDICTS_SHOWN).map(|verdict| said("SPF of", verdict));
    let overrides = row.overrides.iter().take(VERDICTS_SHOWN);
    let reasons = overrides.map(|(kind, comment)| format!("treated as {kind} {comment}"));
    let unsigned = row.dkim.is_empty().then(|| "no signature".to_owned());
    let all: Vec<String> = unsigned.into_iter().chain(dkim).chain(spf).chain(reasons).collect();
    cut(all.join("; ").trim())
}

/// A document for the report, and one for each source that it names, with their ids.
fn documents_of((message, sender): (&str, &str), report: &AggregateReport) -> Vec<(String, Value)> {
    let mut hasher = blake3::Hasher::new_derive_key("scrinium 2026 id of a DMARC report");
    // Who cannot prove who they are takes nobody else's place.
    for part in [&report.organization, &report.report_id, &report.policy.domain, sender] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    let key: String = hasher.finalize().to_hex().chars().take(32).collect();
    let mut sources: BTreeMap<Source, u64> = BTreeMap::new();
    for row in &report.rows {
        let count = sources.entry(Source::of(row)).or_default();
        *count = count.saturating_add(row.count);
    }
    let sum = |wanted: &dyn Fn(&Source) -> bool| {
        let counts = sources.iter().filter(|(source, _)| wanted(source)).map(|(_, count)| *count);
        counts.fold(0, u64::saturating_add)
    };
    let (domain, reporter) = (cut(&report.policy.domain), cut(&report.organization));
    let (begins, ends) = (day(report.begin_seconds), day(report.end_seconds));
    let mut documents = vec![(
        format!("dmarc:{key}"),
        json!({
            "Form": "DMARCReport", "Domain": domain, "Day": begins, "End": ends, "Reporter": reporter,
            "ReportId": cut(&report.report_id), "Policy": cut(&report.policy.policy),
            "Messages": sum(&|_| true), "Passed": sum(&Source::passes),
            "Failed": sum(&|source| !source.passes()),
            "Rejected": sum(&|source| source.disposition == "reject"),
            "Quarantined": sum(&|source| source.disposition == "quarantine"),
            "RowsLeftOut": report.rows_left_out, "Errors": report.errors.iter().take(20).map(|text| cut(text)).collect::<Vec<_>>(),
            "Sender": sender, "Message": message,
        }),
    )];
    let mut ordered: Vec<(Source, u64)> = sources.into_iter().collect();
    ordered.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (number, (source, count)) in ordered.into_iter().take(SOURCES_MAX).enumerate() {
        let word = |passes: bool| if passes { "passes" } else { "fails" };
        documents.push((
            format!("dmarc:{key}:{number}"),
            json!({
                "Form": "DMARCSource", "Domain": domain, "Day": begins, "Reporter": reporter,
                "Source": source.address, "HeaderFrom": source.header_from, "Messages": count,
                "Result": word(source.passes()), "DKIM": word(source.is_dkim_aligned),
                "SPF": word(source.is_spf_aligned), "Done": source.disposition, "Why": source.why,
                "Sender": sender,
            }),
        ));
    }
    documents
}

fn cut(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(TEXT_MAX_CHARACTERS).collect()
}

/// The day in UTC, such as `2026-11-26`.
fn day(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map_or_else(String::new, |time| time.strftime("%Y-%m-%d").to_string())
}

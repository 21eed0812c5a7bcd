//! What a fixup found, and what became of it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// At most this many findings are told in full; more are counted.
const FINDINGS_MAX: usize = 10_000;

/// What can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingKind {
    /// Keys that the store cannot read.
    Unreadable,
    /// The record of what is known of the database as a whole is damaged or missing.
    Header,
    /// Its counts are not those of what is there.
    HeaderCounts,
    /// The record of a document's revisions is damaged or missing.
    RevisionTree,
    /// The record of a revision is damaged, missing, or not that of the revision that should be there.
    Revision,
    /// A record of a revision that its document does not have.
    StrayRevision,
    /// What a document says of its contents and its size differs from its revisions.
    DocumentSummary,
    /// A document is not in the feed of changes where its last change is.
    ChangeMissing,
    /// An entry of the feed of changes that is not the last change of a document, or cannot be read.
    ChangeStray,
    /// A document refers to a content, and that is not noted with the content.
    ReferenceMissing,
    /// It is noted with a content that a document refers to it, and the document does not.
    ReferenceStray,
    /// An attachment or a long field is not there.
    ContentMissing,
    /// The bytes of an attachment or of a long field are not those that were stored.
    ContentDamaged,
    /// The store of objects that an attachment is in cannot be asked.
    ContentUnchecked,
    /// A content that no document refers to, and that would stay for ever.
    ContentUnused,
    /// A `_local` document is damaged.
    Local,
    /// `_security` is damaged.
    Security,
    /// The access control list is damaged.
    AccessList,
    /// The record of a folder is damaged, or contradicts another.
    Folder,
    /// The counts of a folder are not those of what is in it.
    FolderCounts,
    /// What is stored of a document's being in a folder contradicts itself, or the document is not there.
    Membership,
    /// Something is left of a folder that is not there.
    FolderLeftover,
    /// What is stored of somebody's having read a document contradicts itself, or the document is not there.
    Mark,
    /// How much somebody has read is not what their marks come to.
    ReadCounts,
    /// The index of a view or of a folder contradicts itself.
    IndexDamaged,
    /// The index of a view or of a folder does not have what its documents come to.
    IndexDiffers,
    /// A view or a folder could not be checked.
    IndexUnchecked,
}

impl FindingKind {
    /// Every kind.
    pub const ALL: [Self; 26] = [
        Self::Unreadable,
        Self::Header,
        Self::HeaderCounts,
        Self::RevisionTree,
        Self::Revision,
        Self::StrayRevision,
        Self::DocumentSummary,
        Self::ChangeMissing,
        Self::ChangeStray,
        Self::ReferenceMissing,
        Self::ReferenceStray,
        Self::ContentMissing,
        Self::ContentDamaged,
        Self::ContentUnused,
        Self::Local,
        Self::Security,
        Self::AccessList,
        Self::Folder,
        Self::FolderCounts,
        Self::Membership,
        Self::FolderLeftover,
        Self::Mark,
        Self::ReadCounts,
        Self::IndexDamaged,
        Self::IndexDiffers,
        Self::IndexUnchecked,
    ];

    /// The word for it in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Header => "header",
            Self::HeaderCounts => "header_counts",
            Self::RevisionTree => "revision_tree",
            Self::Revision => "revision",
            Self::StrayRevision => "stray_revision",
            Self::DocumentSummary => "document_summary",
            Self::ChangeMissing => "change_missing",
            Self::ChangeStray => "change_stray",
            Self::ReferenceMissing => "reference_missing",
            Self::ReferenceStray => "reference_stray",
            Self::ContentMissing => "content_missing",
            Self::ContentDamaged => "content_damaged",
            Self::ContentUnchecked => "content_unchecked",
            Self::ContentUnused => "content_unused",
            Self::Local => "local",
            Self::Security => "security",
            Self::AccessList => "access_list",
            Self::Folder => "folder",
            Self::FolderCounts => "folder_counts",
            Self::Membership => "membership",
            Self::FolderLeftover => "folder_leftover",
            Self::Mark => "mark",
            Self::ReadCounts => "read_counts",
            Self::IndexDamaged => "index_damaged",
            Self::IndexDiffers => "index_differs",
            Self::IndexUnchecked => "index_unchecked",
        }
    }
}

/// What became of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingOutcome {
    /// It was put right from what is sound.
    Repaired,
    /// What is damaged was put aside, where it can be listed and exported; the rest continues without it.
    SetAside,
    /// It was left as it is: nothing was to be changed, or what it says cannot be had from anything else.
    Left,
}

impl FindingOutcome {
    /// The word for it in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Repaired => "repaired",
            Self::SetAside => "set_aside",
            Self::Left => "left",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The database; empty for what all databases share.
    pub database: String,
    /// What it is.
    pub kind: FindingKind,
    /// What it is about: a document's id, a folder's or a view's name, a key.
    pub subject: String,
    /// What was found, in words.
    pub detail: String,
    /// What became of it.
    pub outcome: FindingOutcome,
}

/// What a fixup looked at, found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FixupReport {
    /// Databases that were looked at.
    pub databases: u64,
    /// Documents, tombstones included.
    pub documents: u64,
    /// Records of every kind.
    pub records: u64,
    /// Contents whose bytes were read.
    pub contents: u64,
    /// Bytes of these, before compression.
    pub content_bytes: u64,
    /// Indexes of views and folders.
    pub indexes: u64,
    /// Findings in the order in which they came; after 10,000 they are only counted.
    pub findings: Vec<Finding>,
    /// How many there were of each kind and outcome.
    pub counts: BTreeMap<(FindingKind, FindingOutcome), u64>,
}

impl FixupReport {
    pub(crate) fn add(&mut self, finding: Finding) {
        *self.counts.entry((finding.kind, finding.outcome)).or_default() += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        }
    }

    /// How many findings came to this.
    #[must_use]
    pub fn count(&self, outcome: FindingOutcome) -> u64 {
        self.counts.iter().filter(|((_, of), _)| *of == outcome).map(|(_, count)| count).sum()
    }

    /// Whether nothing was found.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.counts.is_empty()
    }

    /// The report for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let findings = self.findings.iter().map(|finding| {
            json!({
                "database": finding.database,
                "kind": finding.kind.word(),
                "subject": finding.subject,
                "detail": finding.detail,
                "outcome": finding.outcome.word(),
            })
        });
        let counts = self.counts.iter().map(|((kind, outcome), count)| {
            json!({"kind": kind.word(), "outcome": outcome.word(), "count": count})
        });
        json!({
            "looked_at": {
                "databases": self.databases,
                "documents": self.documents,
                "records": self.records,
                "contents": self.contents,
                "content_bytes": self.content_bytes,
                "indexes": self.indexes,
            },
            "found": self.counts.values().sum::<u64>(),
            "repaired": self.count(FindingOutcome::Repaired),
            "set_aside": self.count(FindingOutcome::SetAside),
            "left": self.count(FindingOutcome::Left),
            "counts": counts.collect::<Vec<_>>(),
            "findings": findings.collect::<Vec<_>>(),
        })
    }

    /// The report for people: lines, each ended.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for Finding { database, kind, subject, detail, outcome } in &self.findings {
            let place = if database.is_empty() { "all databases" } else { database };
            let (outcome, kind) = (outcome.word(), kind.word());
            text.push_str(&format!("{outcome:<9}  {place}: {kind} {subject}: {detail}\n"));
        }
        let found: u64 = self.counts.values().sum();
        let told = self.findings.len() as u64;
        if found > told {
            text.push_str(&format!("and {} more\n", found - told));
        }
        text.push_str(&format!(
            "Looked at {} databases, {} documents, {} records, {} contents of {} bytes, {} indexes.\n",
            self.databases, self.documents, self.records, self.contents, self.content_bytes, self.indexes
        ));
        text.push_str(&format!(
            "Found {found}: {} repaired, {} set aside, {} left.\n",
            self.count(FindingOutcome::Repaired),
            self.count(FindingOutcome::SetAside),
            self.count(FindingOutcome::Left)
        ));
        text
    }
}

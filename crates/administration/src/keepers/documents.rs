//! Fields of names in documents.

use scrinium_catalog::REPLICATOR_DATABASE;
use scrinium_database::{
    Access, Database, DatabaseError, Edit, EditMode, NamedLeaf, NamedSearch, ReadOptions, Result,
};
use scrinium_directory::DIRECTORY_DATABASE;
use scrinium_views::OpenDatabase;

use crate::keeper::{NameKeeper, NameOrder, Piece};
use crate::raw::RawDocument;

/// Without a name in it, a document is everybody's.
const READERS: &str = "Readers";

/// The fields of names of all documents.
const ALWAYS: [&str; 2] = [READERS, "Authors"];

/// Those of people and groups besides.
const OF_DIRECTORY: [&str; 11] = [
    "Members",
    "Owners",
    "Writers",
    "SendAs",
    "SendOnBehalf",
    "MailReaders",
    "MailEditors",
    "ForwardTo",
    "CatchAll",
    "Administrators",
    "Manager",
];

/// Who a replication runs as.
const OF_REPLICATIONS: [&str; 1] = ["owner"];

/// Documents that are found, and looked at, for one piece: few, as a request that comes meanwhile waits for no more than the rest of it.
const FOUND_MAX: usize = 20;
const EXAMINED_MAX: usize = 2_000;

/// So much JSON is written in one batch.
const BATCH_BYTES: usize = 1 << 20;

/// What a look at a document reads, about.
const LOOK_BYTES: u64 = 500;

/// A document that somebody else changes each time is left as it is after this number of attempts.
const ATTEMPTS: usize = 8;

static DOCUMENTS: Access = Access::of_the_server("changing names in documents");

/// Documents' fields of names.
pub(crate) struct Documents;

impl NameKeeper for Documents {
    fn title(&self) -> &'static str {
        "documents"
    }

    fn change(&self, database: &OpenDatabase, order: &NameOrder<'_>, place: Option<&str>) -> Result<Piece> {
        let mut fields: Vec<&str> = ALWAYS.to_vec();
        fields.extend(order.fields.iter().map(String::as_str));
        match database.name() {
            DIRECTORY_DATABASE => fields.extend(OF_DIRECTORY),
            REPLICATOR_DATABASE => fields.extend(OF_REPLICATIONS),
            _ => {}
        }
        let is_meant = |name: &str| order.names.is_meant(name);
        let search = NamedSearch {
            fields: &fields,
            is_meant: &is_meant,
            found_max: FOUND_MAX,
            examined_max: EXAMINED_MAX,
        };
        let found = database.named_leaves(&search, place)?;
        let mut piece =
            Piece { next: found.next, bytes: found.examined as u64 * LOOK_BYTES, ..Piece::default() };
        // An edit of a leaf that lost could win; who settles the conflict decides.
        let (winners, losers): (Vec<NamedLeaf>, Vec<NamedLeaf>) =
            found.leaves.into_iter().partition(|leaf| leaf.is_winner);
        piece.left += losers.len() as u64;
        let ids = winners.into_iter().map(|leaf| leaf.id).collect();
        change_documents(database, (&fields, order), ids, &mut piece)?;
        Ok(piece)
    }
}

/// Changes the documents with these ids, in batches.
fn change_documents(
    database: &OpenDatabase,
    what: (&[&str], &NameOrder<'_>),
    mut ids: Vec<String>,
    piece: &mut Piece,
) -> Result<()> {
    for _ in 0..ATTEMPTS {
        let mut again = Vec::new();
        let mut batch: Vec<(String, Edit)> = Vec::new();
        let mut bytes = 0;
        for id in std::mem::take(&mut ids) {
            let Some(edit) = edit_of(database, &id, what)? else { continue };
            bytes += edit.json.len();
            batch.push((id, edit));
            if bytes >= BATCH_BYTES {
                write(database, std::mem::take(&mut batch), piece, &mut again)?;
                bytes = 0;
            }
        }
        write(database, batch, piece, &mut again)?;
        if again.is_empty() {
            return Ok(());
        }
        ids = again;
    }
    for id in &ids {
        leave(database, id, &DatabaseError::Conflict, piece);
    }
    Ok(())
}

/// Writes edits; the documents that somebody else has changed meanwhile are put into `again`.
fn write(
    database: &OpenDatabase,
    batch: Vec<(String, Edit)>,
    piece: &mut Piece,
    again: &mut Vec<String>,
) -> Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let (ids, edits): (Vec<String>, Vec<Edit>) = batch.into_iter().unzip();
    piece.bytes += edits.iter().map(|edit| edit.json.len() as u64).sum::<u64>();
    let results = database.update_in_parts(edits, EditMode::Interactive, &DOCUMENTS)?.wait()?;
    for (result, id) in results.into_iter().zip(ids) {
        match result {
            Ok(_) => piece.changed += 1,
            Err(DatabaseError::Conflict) => again.push(id),
            Err(error) if error.is_of_the_server() => return Err(error),
            Err(error) => leave(database, &id, &error, piece),
        }
    }
    Ok(())
}

fn leave(database: &Database, id: &str, error: &DatabaseError, piece: &mut Piece) {
    piece.left += 1;
    tracing::warn!(database = database.name(), id, %error, "a document keeps a name that has changed");
}

/// The document with the names changed; `None` where it is gone, or has none of them any more.
fn edit_of(
    database: &OpenDatabase,
    id: &str,
    (fields, order): (&[&str], &NameOrder<'_>),
) -> Result<Option<Edit>> {
    let found = match database.read(id, &ReadOptions::default(), &DOCUMENTS) {
        Ok(found) => found,
        Err(DatabaseError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let unreadable = |error: serde_json::Error| DatabaseError::Internal { reason: error.to_string() };
    let mut document: RawDocument = serde_json::from_str(&found.json).map_err(unreadable)?;
    let mut is_changed = false;
    for field in fields {
        let Some(value) = document.get(field) else { continue };
        if let Some(changed) = order.names.changed(&value, *field == READERS) {
            document.replace(field, &changed).map_err(unreadable)?;
            is_changed = true;
        }
    }
    if !is_changed {
        return Ok(None);
    }
    let json = serde_json::to_string(&document).map_err(unreadable)?;
    // Nothing of it is news to those who have read it.
    Ok(Some(Edit { json: json.into(), keeps_marks: true, ..Edit::default() }))
}

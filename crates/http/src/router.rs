//! From a path to what it names.

use std::borrow::Cow;

use crate::encoding::decode;
use crate::error::Result;

/// What a path names. Texts are decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    Root,
    Server(ServerPage),
    Database(Cow<'a, str>),
    Special(Cow<'a, str>, Special),
    Document {
        database: Cow<'a, str>,
        id: String,
    },
    Attachment {
        database: Cow<'a, str>,
        id: String,
        name: String,
    },
    Local {
        database: Cow<'a, str>,
        id: String,
    },
    View {
        database: Cow<'a, str>,
        design: Cow<'a, str>,
        view: Cow<'a, str>,
        queries: bool,
    },
    /// One index, below `_index`; `design` is the id with `_design/`.
    MangoIndex {
        database: Cow<'a, str>,
        design: String,
        kind: Cow<'a, str>,
        name: Cow<'a, str>,
    },
    /// The indexes of one design document, to be compacted.
    CompactIndexes {
        database: Cow<'a, str>,
        design: Cow<'a, str>,
    },
    DesignInfo {
        database: Cow<'a, str>,
        design: Cow<'a, str>,
    },
    Folders(Cow<'a, str>),
    Folder {
        database: Cow<'a, str>,
        name: Cow<'a, str>,
        page: FolderPage,
    },
    Unread {
        database: Cow<'a, str>,
        changes: bool,
    },
    /// `_show`, `_list`, `_update`, `_rewrite` and the like below a design document.
    DesignFunction(Cow<'a, str>),
    /// Something below a database that begins with an underscore and is nothing we know.
    UnknownSpecial(Cow<'a, str>),
}

/// The pages of the server itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerPage {
    Up,
    AllDatabases,
    DatabasesInfo,
    Uuids,
    Session,
    Statistics,
    Prometheus,
    ActiveTasks,
    Console,
    Membership,
    Replicate,
}

/// What a folder shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FolderPage {
    Rows,
    Members,
    Changes,
}

/// What a database has beside documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    AllDocuments { queries: bool },
    DesignDocuments { queries: bool },
    LocalDocuments { queries: bool },
    BulkDocuments,
    BulkGet,
    RevisionsDifference,
    MissingRevisions,
    Changes,
    RevisionLimit,
    Security,
    AccessList,
    Properties,
    Compact,
    ViewCleanup,
    EnsureFullCommit,
    Purge,
    PurgedInfos,
    PurgedInfosLimit,
    Find,
    Index,
    DeleteIndexes,
    Explain,
}

impl Target<'_> {
    /// The database that it is in, if it is in one.
    pub(crate) fn database(&self) -> Option<&str> {
        match self {
            Self::Root | Self::Server(_) | Self::DesignFunction(_) | Self::UnknownSpecial(_) => None,
            Self::Database(database)
            | Self::Special(database, _)
            | Self::Document { database, .. }
            | Self::Attachment { database, .. }
            | Self::Local { database, .. }
            | Self::View { database, .. }
            | Self::MangoIndex { database, .. }
            | Self::CompactIndexes { database, .. }
            | Self::DesignInfo { database, .. }
            | Self::Folders(database)
            | Self::Folder { database, .. }
            | Self::Unread { database, .. } => Some(database),
        }
    }
}

/// Takes a path apart. Empty segments do not count, as in CouchDB.
///
/// # Errors
/// 400 where a segment is not UTF-8 once decoded.
pub(crate) fn parse(path: &str) -> Result<Target<'_>> {
    let mut segments = path.split('/').filter(|segment| !segment.is_empty());
    let Some(first) = segments.next() else { return Ok(Target::Root) };
    let first = decode(first)?;
    if first.starts_with('_') || first == "metrics" {
        let rest: Vec<&str> = segments.clone().collect();
        if let Some(page) = server_page(&first, &rest) {
            return Ok(Target::Server(page));
        }
    }
    let rest = segments.map(decode).collect::<Result<Vec<_>>>()?;
    Ok(below_database(first, &rest))
}

fn server_page(first: &str, rest: &[&str]) -> Option<ServerPage> {
    let alone = match first {
        "_up" => Some(ServerPage::Up),
        "_all_dbs" => Some(ServerPage::AllDatabases),
        "_dbs_info" => Some(ServerPage::DatabasesInfo),
        "_uuids" => Some(ServerPage::Uuids),
        "_session" => Some(ServerPage::Session),
        "_stats" => Some(ServerPage::Statistics),
        "metrics" => Some(ServerPage::Prometheus),
        "_active_tasks" => Some(ServerPage::ActiveTasks),
        "_console" => Some(ServerPage::Console),
        "_membership" => Some(ServerPage::Membership),
        "_replicate" => Some(ServerPage::Replicate),
        _ => None,
    };
    match (first, rest) {
        ("_node", [_, "_stats"]) => Some(ServerPage::Statistics),
        ("_node", [_, "_prometheus"]) => Some(ServerPage::Prometheus),
        (_, []) => alone,
        _ => None,
    }
}

fn below_database<'a>(database: Cow<'a, str>, rest: &[Cow<'a, str>]) -> Target<'a> {
    let Some((first, after)) = rest.split_first() else { return Target::Database(database) };
    match first.as_ref() {
        "_local" => local(database, after),
        "_design" => match after.split_first() {
            Some((name, below)) => below_design(database, name, below),
            None => Target::UnknownSpecial(first.clone()),
        },
        "_folder" => folder(database, after),
        "_unread" => match after {
            [] => Target::Unread { database, changes: false },
            [only] if only == "_changes" => Target::Unread { database, changes: true },
            _ => Target::UnknownSpecial(first.clone()),
        },
        name if name.starts_with("_local/") && after.is_empty() => {
            Target::Local { database, id: name.to_owned() }
        }
        name if name.starts_with("_design/") => {
            let design = Cow::Owned(name.trim_start_matches("_design/").to_owned());
            below_design(database, &design, after)
        }
        name if name.starts_with('_') => match (special(name, after), name) {
            (Some(special), _) => Target::Special(database, special),
            (None, "_index") => below_index(database, after),
            (None, "_compact") => below_compact(database, after),
            (None, _) => Target::UnknownSpecial(first.clone()),
        },
        id if after.is_empty() => Target::Document { database, id: id.to_owned() },
        id => Target::Attachment { database, id: id.to_owned(), name: after.join("/") },
    }
}

fn folder<'a>(database: Cow<'a, str>, after: &[Cow<'a, str>]) -> Target<'a> {
    let Some((name, below)) = after.split_first() else { return Target::Folders(database) };
    let words: Vec<&str> = below.iter().map(AsRef::as_ref).collect();
    let page = match words.as_slice() {
        [] => FolderPage::Rows,
        ["_members"] => FolderPage::Members,
        ["_changes"] => FolderPage::Changes,
        _ => return Target::UnknownSpecial(Cow::Borrowed("_folder")),
    };
    Target::Folder { database, name: name.clone(), page }
}

fn local<'a>(database: Cow<'a, str>, after: &[Cow<'a, str>]) -> Target<'a> {
    if after.is_empty() {
        return Target::UnknownSpecial(Cow::Borrowed("_local"));
    }
    Target::Local { database, id: format!("_local/{}", after.join("/")) }
}

fn below_design<'a>(database: Cow<'a, str>, name: &Cow<'a, str>, below: &[Cow<'a, str>]) -> Target<'a> {
    let words: Vec<&str> = below.iter().map(AsRef::as_ref).collect();
    let view = |queries| Target::View {
        database: database.clone(),
        design: name.clone(),
        view: below.get(1).cloned().unwrap_or_default(),
        queries,
    };
    match words.as_slice() {
        [] => Target::Document { database, id: format!("_design/{name}") },
        ["_view", _] => view(false),
        ["_view", _, "queries"] => view(true),
        ["_info"] => Target::DesignInfo { database, design: name.clone() },
        [function, ..] if function.starts_with('_') => {
            Target::DesignFunction(Cow::Owned((*function).to_owned()))
        }
        _ => Target::Attachment { database, id: format!("_design/{name}"), name: below.join("/") },
    }
}

/// `{design}/{type}/{name}`, the design document with `_design/` before it or without.
fn below_index<'a>(database: Cow<'a, str>, below: &[Cow<'a, str>]) -> Target<'a> {
    let below = match below {
        [prefix, rest @ ..] if prefix == "_design" => rest,
        other => other,
    };
    let [design, kind, name] = below else { return Target::UnknownSpecial(Cow::Borrowed("_index")) };
    let design = scrinium_mango::design_id(design).into_owned();
    Target::MangoIndex { database, design, kind: kind.clone(), name: name.clone() }
}

fn below_compact<'a>(database: Cow<'a, str>, below: &[Cow<'a, str>]) -> Target<'a> {
    match below {
        [design] => Target::CompactIndexes { database, design: design.clone() },
        _ => Target::UnknownSpecial(Cow::Borrowed("_compact")),
    }
}

fn special(name: &str, after: &[Cow<'_, str>]) -> Option<Special> {
    let queries = match after {
        [] => false,
        [only] if only == "queries" => true,
        [only] if name == "_index" && only == "_bulk_delete" => return Some(Special::DeleteIndexes),
        _ => return None,
    };
    let rows = match name {
        "_all_docs" => Some(Special::AllDocuments { queries }),
        "_design_docs" => Some(Special::DesignDocuments { queries }),
        "_local_docs" => Some(Special::LocalDocuments { queries }),
        _ => None,
    };
    if rows.is_some() || queries {
        return rows;
    }
    Some(match name {
        "_bulk_docs" => Special::BulkDocuments,
        "_bulk_get" => Special::BulkGet,
        "_revs_diff" => Special::RevisionsDifference,
        "_missing_revs" => Special::MissingRevisions,
        "_changes" => Special::Changes,
        "_revs_limit" => Special::RevisionLimit,
        "_security" => Special::Security,
        "_acl" => Special::AccessList,
        "_properties" => Special::Properties,
        "_compact" => Special::Compact,
        "_view_cleanup" => Special::ViewCleanup,
        "_ensure_full_commit" => Special::EnsureFullCommit,
        "_purge" => Special::Purge,
        "_purged_infos" => Special::PurgedInfos,
        "_purged_infos_limit" => Special::PurgedInfosLimit,
        "_find" => Special::Find,
        "_index" => Special::Index,
        "_explain" => Special::Explain,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded_after_the_path_is_cut() {
        let target = parse("/mail%2Fuser/a%2Fb").unwrap();
        assert_eq!(target, Target::Document { database: "mail/user".into(), id: "a/b".into() });
        let target = parse("//db/id/folder/picture%20one.png").unwrap();
        let expected = Target::Attachment {
            database: "db".into(),
            id: "id".into(),
            name: "folder/picture one.png".into(),
        };
        assert_eq!(target, expected);
        let design = Target::Document { database: "db".into(), id: "_design/x".into() };
        assert_eq!(parse("/db/_design%2Fx").unwrap(), design);
        assert_eq!(parse("/db/_design/x/").unwrap(), design);
        assert_eq!(parse("/../x").unwrap(), Target::Document { database: "..".into(), id: "x".into() });
        let index = Target::MangoIndex {
            database: "db".into(),
            design: "_design/x".into(),
            kind: "json".into(),
            name: "n/m".into(),
        };
        for path in ["x/json", "_design/x/json", "_design%2Fx/json"] {
            assert_eq!(parse(&format!("/db/_index/{path}/n%2Fm")).unwrap(), index);
        }
        assert!(parse("/db/%ff").is_err());
    }
}

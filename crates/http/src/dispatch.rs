//! From what is asked for, and the method, to the one who answers.

use http::{Method, Response};

use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::Body;
use crate::router::{FolderPage, ServerPage, Special, Target};
use crate::view::Listing;
use crate::{
    access_list, attachment, bulk, changes, compact, copy, databases, design, document, find, folder,
    indexes, server_pages, session, settings, unread, view, write,
};

type Answer = Result<Response<Body>>;

/// Answers. `context.method` is GET for HEAD too.
pub(crate) async fn dispatch(context: &Context, target: Target<'_>, body: &mut RequestBody) -> Answer {
    match target {
        // The two that are asked most are not boxed.
        Target::Document { database, id } => match context.method {
            Method::GET => document::get(context, &database, &id).await,
            Method::PUT => write::put(context, &database, &id, body).await,
            _ => Box::pin(other_document(context, &database, &id)).await,
        },
        other => Box::pin(dispatch_other(context, other, body)).await,
    }
}

async fn other_document(context: &Context, database: &str, id: &str) -> Answer {
    match context.method.as_str() {
        "DELETE" => write::delete(context, database, id).await,
        "COPY" => copy::copy(context, database, id).await,
        _ => Err(HttpError::method_not_allowed("DELETE,GET,HEAD,POST,PUT,COPY")),
    }
}

async fn dispatch_other(context: &Context, target: Target<'_>, body: &mut RequestBody) -> Answer {
    match target {
        Target::Root => match context.method {
            Method::GET => Ok(server_pages::welcome(context)),
            _ => Err(HttpError::method_not_allowed("GET,HEAD")),
        },
        Target::Server(page) => server_page(context, page, body).await,
        Target::Database(name) => match context.method {
            Method::GET => databases::info(context, &name).await,
            Method::PUT => databases::create(context, &name).await,
            Method::DELETE => databases::delete(context, &name).await,
            Method::POST => write::post(context, &name, body).await,
            _ => Err(HttpError::method_not_allowed("DELETE,GET,HEAD,POST,PUT")),
        },
        Target::Special(database, special) => special_page(context, &database, special, body).await,
        Target::Document { .. } => Err(HttpError::not_found("missing")),
        Target::Attachment { database, id, name } => match context.method {
            Method::GET => attachment::get(context, &database, &id, &name).await,
            Method::PUT => attachment::put(context, &database, &id, &name, body).await,
            Method::DELETE => attachment::delete(context, &database, &id, &name).await,
            _ => Err(HttpError::method_not_allowed("DELETE,GET,HEAD,PUT")),
        },
        Target::Local { database, id } => match context.method.as_str() {
            "GET" => document::get_local(context, &database, &id).await,
            "PUT" => write::put_local(context, &database, &id, body).await,
            "DELETE" => write::delete_local(context, &database, &id).await,
            "COPY" => copy::copy(context, &database, &id).await,
            _ => Err(HttpError::method_not_allowed("DELETE,GET,HEAD,POST,PUT,COPY")),
        },
        Target::View { database, design, view, queries } => {
            let listing = Listing::View { design: design.into_owned(), view: view.into_owned() };
            rows(context, &database, listing, queries, body).await
        }
        Target::MangoIndex { database, design, kind, name } => match context.method {
            Method::DELETE => indexes::delete(context, &database, design, &kind, &name).await,
            _ => Err(HttpError::method_not_allowed("DELETE")),
        },
        Target::CompactIndexes { database, design } => match context.method {
            Method::POST => compact::indexes(context, &database, &design).await,
            _ => Err(HttpError::method_not_allowed("POST")),
        },
        Target::DesignInfo { database, design } => match context.method {
            Method::GET => design::info(context, &database, &design).await,
            _ => Err(HttpError::method_not_allowed("GET")),
        },
        Target::DesignFunction(name) => design::unknown_function(&name),
        Target::Folders(database) => match context.method {
            Method::GET => folder::list(context, &database).await,
            _ => Err(HttpError::method_not_allowed("GET,HEAD")),
        },
        Target::Folder { database, name, page } => folder_page(context, &database, &name, page, body).await,
        Target::Unread { database, changes } => match (context.method.as_str(), changes) {
            ("GET", false) => unread::counts(context, &database).await,
            ("POST", false) => unread::mark(context, &database, body).await,
            ("GET", true) => unread::changes(context, &database).await,
            (_, false) => Err(HttpError::method_not_allowed("GET,HEAD,POST")),
            (_, true) => Err(HttpError::method_not_allowed("GET,HEAD")),
        },
        Target::UnknownSpecial(name) => Err(unknown_special(context, &name)),
    }
}

async fn folder_page(
    context: &Context,
    database: &str,
    name: &str,
    page: FolderPage,
    body: &mut RequestBody,
) -> Answer {
    match (page, context.method.as_str()) {
        (FolderPage::Rows, "GET") => {
            let listing = Listing::Folder { name: name.to_owned(), person: context.identity.shared_name() };
            view::rows(context, database, listing, None).await
        }
        (FolderPage::Rows, "PUT") => folder::define(context, database, name, body).await,
        (FolderPage::Rows, "POST") => folder::change(context, database, name, body).await,
        (FolderPage::Rows, "DELETE") => folder::remove(context, database, name).await,
        (FolderPage::Members, "GET") => folder::members(context, database, name).await,
        (FolderPage::Changes, "GET") => folder::changes(context, database, name).await,
        (FolderPage::Rows, _) => Err(HttpError::method_not_allowed("DELETE,GET,HEAD,POST,PUT")),
        _ => Err(HttpError::method_not_allowed("GET,HEAD")),
    }
}

/// CouchDB tells a writer that the id is reserved, and a reader only that nothing is there.
fn unknown_special(context: &Context, name: &str) -> HttpError {
    match scrinium_document::validate_id(name) {
        Err(error) if context.method == Method::PUT => error.into(),
        _ => HttpError::not_found("missing"),
    }
}

async fn server_page(context: &Context, page: ServerPage, body: &mut RequestBody) -> Answer {
    let allow = match page {
        ServerPage::DatabasesInfo => "GET,HEAD,POST",
        ServerPage::Session => "GET,HEAD,POST,DELETE",
        ServerPage::Console | ServerPage::Replicate => "POST",
        _ => "GET,HEAD",
    };
    match (page, context.method.as_str()) {
        (ServerPage::Up, "GET") => Ok(server_pages::up()),
        (ServerPage::AllDatabases, "GET") => databases::all(context).await,
        (ServerPage::DatabasesInfo, "GET") => databases::infos(context, None).await,
        (ServerPage::DatabasesInfo, "POST") => databases::infos(context, Some(body)).await,
        (ServerPage::Uuids, "GET") => server_pages::uuids(context),
        (ServerPage::Session, "GET") => Ok(session::show(context)),
        (ServerPage::Session, "POST") => session::open(context, body).await,
        (ServerPage::Session, "DELETE") => session::close(context).await,
        (ServerPage::Statistics, "GET") => server_pages::statistics(context).await,
        (ServerPage::Prometheus, "GET") => server_pages::prometheus(context).await,
        (ServerPage::ActiveTasks, "GET") => server_pages::active_tasks(context).await,
        (ServerPage::Membership, "GET") => server_pages::membership(context),
        (ServerPage::Console, "POST") => server_pages::console(context, body).await,
        (ServerPage::Replicate, "POST") => Err(HttpError::not_implemented(
            "This server does not start replications itself; a client or another server can replicate with it.",
        )),
        _ => Err(HttpError::method_not_allowed(allow)),
    }
}

async fn special_page(context: &Context, database: &str, special: Special, body: &mut RequestBody) -> Answer {
    let allow = match special {
        Special::Changes => "GET,POST,HEAD",
        Special::AccessList => "DELETE,GET,PUT",
        Special::PurgedInfos => "GET",
        Special::RevisionLimit | Special::Security | Special::Properties | Special::PurgedInfosLimit => {
            "PUT,GET"
        }
        Special::Index => "GET,POST",
        _ => "POST",
    };
    match (special, context.method.as_str()) {
        (Special::AllDocuments { queries }, _) => rows(context, database, Listing::All, queries, body).await,
        (Special::DesignDocuments { queries }, _) => {
            rows(context, database, Listing::Design, queries, body).await
        }
        (Special::LocalDocuments { queries }, _) => {
            rows(context, database, Listing::Local, queries, body).await
        }
        (Special::BulkDocuments, "POST") => bulk::documents(context, database, body).await,
        (Special::BulkGet, "POST") => bulk::get(context, database, body).await,
        (Special::RevisionsDifference, "POST") => bulk::revisions_difference(context, database, body).await,
        (Special::MissingRevisions, "POST") => bulk::missing_revisions(context, database, body).await,
        (Special::Changes, "GET") => changes::changes(context, database, None).await,
        (Special::Changes, "POST") => changes::changes(context, database, Some(body)).await,
        (Special::RevisionLimit, "GET") => settings::revision_limit(context, database).await,
        (Special::RevisionLimit, "PUT") => settings::set_revision_limit(context, database, body).await,
        (Special::Security, "GET") => settings::security(context, database).await,
        (Special::Security, "PUT") => settings::set_security(context, database, body).await,
        (Special::Properties, "GET") => settings::properties(context, database).await,
        (Special::Properties, "PUT") => settings::set_properties(context, database, body).await,
        (Special::AccessList, "GET") => access_list::get(context, database).await,
        (Special::AccessList, "PUT") => access_list::put(context, database, body).await,
        (Special::AccessList, "DELETE") => access_list::delete(context, database).await,
        (Special::Compact, "POST") => compact::database(context, database).await,
        (Special::ViewCleanup, "POST") => settings::view_cleanup(context, database).await,
        (Special::EnsureFullCommit, "POST") => settings::ensure_full_commit(context, database).await,
        (Special::PurgedInfosLimit, "GET") => compact::purged_infos_limit(context, database).await,
        (Special::PurgedInfos, "GET") => compact::purged_infos(context, database).await,
        (Special::Purge, "POST") => {
            let reason = "Purging by hand is not offered: a superseded body is not kept, and compaction purges tombstones that are old enough (compact.purge_after).";
            settings::not_offered(context, database, reason).await
        }
        (Special::Find, "POST") => find::find(context, database, body).await,
        (Special::Explain, "POST") => find::explain(context, database, body).await,
        (Special::Index, "GET") => indexes::list(context, database).await,
        (Special::Index, "POST") => indexes::create(context, database, body).await,
        (Special::DeleteIndexes, "POST") => indexes::delete_several(context, database, body).await,
        _ => Err(HttpError::method_not_allowed(allow)),
    }
}

async fn rows(
    context: &Context,
    database: &str,
    listing: Listing,
    queries: bool,
    body: &mut RequestBody,
) -> Answer {
    match (context.method.as_str(), queries) {
        ("GET", false) => view::rows(context, database, listing, None).await,
        ("POST", false) => view::rows(context, database, listing, Some(body)).await,
        ("POST", true) => view::queries(context, database, listing, body).await,
        (_, false) => Err(HttpError::method_not_allowed("GET,HEAD,POST")),
        (_, true) => Err(HttpError::method_not_allowed("POST")),
    }
}

//! The table of routes.

use std::future::ready;

use scrinium_database::Level;

use crate::error::HttpError;
use crate::mail_rules::MailRulesOf;
use crate::operations::Operation;
use crate::routes::{ANY_METHOD, BodyLimit, Handler, Limits, MethodRoute, Need, Route};
use crate::view::{self, Listing};
use crate::{
    access_list, acme, attachment, bulk, bulk_get, changes, compact, configuration, copy, credentials,
    database_updates, databases, dav, design, document, domain_check, find, folder, handler, held, held_mail,
    indexes, mail_rules, mail_setup, message_parts, openapi, people_search, person_feed, provider_sign_in,
    replication, server_pages, session, settings, text_search, transaction, unread, web_pages, write,
};

const ADMINISTRATOR: Need = Need::Administrator;
const VIEWER: Need = Need::Viewer;
const ANONYMOUS: Need = Need::Anonymous;
const PERSON: Need = Need::Person;
const DEPOSITOR: Need = Need::Database(Level::Depositor);
const READER: Need = Need::Database(Level::Reader);
const AUTHOR: Need = Need::Database(Level::Author);
const EDITOR: Need = Need::Database(Level::Editor);
const DESIGNER: Need = Need::Database(Level::Designer);
const MANAGER: Need = Need::Database(Level::Manager);

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;

const NOTHING: Limits = Limits { body: BodyLimit::Nothing, gzip: false, elements: 0, seconds: 10 };
/// A name and a password, or a command line. Never compressed: a log-in comes from anybody.
const LINE: Limits = Limits { body: BodyLimit::Bytes(4 * KB), gzip: false, elements: 100, seconds: 10 };
/// What Outlook posts to find its server, which has some hundred bytes.
const AUTODISCOVER: Limits =
    Limits { body: BodyLimit::Bytes(16 * KB), gzip: false, elements: 0, seconds: 10 };
/// What an authenticator has made, with certificates of its maker.
const CREDENTIAL: Limits =
    Limits { body: BodyLimit::Bytes(64 * KB), gzip: false, elements: 1_000, seconds: 10 };
/// A hundred rules with their formulas, or all scripts of a person.
const RULES: Limits = Limits { body: BodyLimit::Bytes(512 * KB), gzip: false, elements: 5_000, seconds: 60 };
const SETTING: Limits = Limits { body: BodyLimit::Bytes(64 * KB), gzip: true, elements: 5_000, seconds: 60 };
/// As large as the largest access control list.
const ACCESS: Limits = Limits { body: BodyLimit::Bytes(2 * MB), gzip: true, elements: 100_000, seconds: 60 };
const QUERY: Limits = Limits { body: BodyLimit::Bytes(MB), gzip: true, elements: 50_000, seconds: 60 };
/// Ids, keys or revisions: replicators send some 100 to 10,000 at a time, a folder takes 100,000.
const LIST: Limits = Limits { body: BodyLimit::Bytes(16 * MB), gzip: true, elements: 400_000, seconds: 60 };
const DOCUMENT: Limits = Limits { body: BodyLimit::Document, gzip: true, elements: 0, seconds: 60 };
const PLAIN_DOCUMENT: Limits =
    Limits { body: BodyLimit::PlainDocument, gzip: true, elements: 0, seconds: 60 };
/// Many documents; as many as this.
const BULK: Limits = Limits { body: BodyLimit::Port, gzip: true, elements: 100_000, seconds: 60 };
/// Documents that are stored together, and conditions.
const TRANSACTION: Limits =
    Limits { body: BodyLimit::Bytes(16 * MB), gzip: true, elements: 400_000, seconds: 60 };
/// What an update function gets as text.
const HANDLED: Limits = Limits { body: BodyLimit::Bytes(2 * MB), gzip: true, elements: 0, seconds: 60 };
/// What a calendar program asks: XML, which has limits of its own.
const DAV_QUERY: Limits = Limits { body: BodyLimit::Bytes(MB), gzip: true, elements: 0, seconds: 60 };
/// A calendar entry or a card.
const DAV_RESOURCE: Limits = Limits { body: BodyLimit::Bytes(10 * MB), gzip: true, elements: 0, seconds: 60 };
const ATTACHMENT: Limits = Limits { body: BodyLimit::Attachment, gzip: true, elements: 0, seconds: 60 };

const NONE: &[&str] = &[];
const NAMES: &[&str] =
    &["startkey", "start_key", "endkey", "end_key", "key", "inclusive_end", "descending", "skip", "limit"];
const ROWS: &[&str] = &[
    "key",
    "startkey",
    "start_key",
    "endkey",
    "end_key",
    "startkey_docid",
    "start_key_doc_id",
    "endkey_docid",
    "end_key_doc_id",
    "keys",
    "limit",
    "skip",
    "start",
    "find",
    "at",
    "next",
    "from",
    "resort",
    "resort_order",
    "descending",
    "inclusive_end",
    "include_docs",
    "conflicts",
    "attachments",
    "update_seq",
    "reduce",
    "group",
    "group_level",
    "update",
    "stale",
    "categories",
    "level",
    "expand",
    "collapse",
];
/// What is asked of an index of words.
const WORDS: &[&str] = &[
    "q",
    "query",
    "limit",
    "sort",
    "bookmark",
    "include_docs",
    "snippets",
    "exact_total",
    "all_words",
    "update",
    "counts",
    "ranges",
    "top_n",
];
const READ: &[&str] = &[
    "rev",
    "revs",
    "revs_info",
    "conflicts",
    "deleted_conflicts",
    "local_seq",
    "latest",
    "attachments",
    "atts_since",
    "meta",
    "open_revs",
];
const PERSONS: &[&str] = &["person"];
const MAIL_ADDRESS: &[&str] = &["emailaddress"];
/// With the letters that Outlook writes, and in small ones.
const AUTODISCOVER_PLACE: &[&str] = &["Email", "email", "Protocol", "protocol"];
const WRITE: &[&str] = &["rev", "new_edits", "folder", "read_by"];
const CHANGES: &[&str] = &[
    "since",
    "last-event-id",
    "descending",
    "limit",
    "include_docs",
    "conflicts",
    "attachments",
    "style",
    "feed",
    "filter",
    "view",
    "doc_ids",
    "heartbeat",
    "timeout",
];

const STREAM: &[&str] = &["databases", "heartbeat", "timeout"];
const EVENTS: &[&str] = &["since", "last-event-id", "descending", "limit", "feed", "heartbeat", "timeout"];

/// Reads.
const fn get(
    operation: Operation,
    need: Need,
    parameters: &'static [&'static str],
    handler: Handler,
) -> MethodRoute {
    MethodRoute { method: "GET", operation, need, limits: NOTHING, parameters, writes: false, handler }
}

/// Reads what a body asks for.
const fn ask(
    operation: Operation,
    need: Need,
    limits: Limits,
    parameters: &'static [&'static str],
    handler: Handler,
) -> MethodRoute {
    MethodRoute { method: "POST", operation, need, limits, parameters, writes: false, handler }
}

/// Changes something.
const fn act(
    method: &'static str,
    operation: Operation,
    need: Need,
    limits: Limits,
    parameters: &'static [&'static str],
    handler: Handler,
) -> MethodRoute {
    MethodRoute { method, operation, need, limits, parameters, writes: true, handler }
}

/// Rows, by GET, and by POST with parameters in the body.
const fn rows(operation: Operation, by_get: Handler, by_post: Handler) -> [MethodRoute; 2] {
    [get(operation, READER, ROWS, by_get), ask(Operation::ReadEntries, READER, LIST, ROWS, by_post)]
}

/// Several pages of rows.
const fn queries(handler: Handler) -> [MethodRoute; 1] {
    [ask(Operation::ReadEntries, READER, LIST, ROWS, handler)]
}

/// What a calendar program asks by a body.
const fn dav_query(method: &'static str, operation: Operation, handler: Handler) -> MethodRoute {
    MethodRoute {
        method,
        operation,
        need: PERSON,
        limits: DAV_QUERY,
        parameters: NONE,
        writes: false,
        handler,
    }
}

/// All that can be done with calendars, address books, files and what is in them.
static DAV_METHODS: [MethodRoute; 14] = [
    act("OPTIONS", Operation::Other, PERSON, NOTHING, NONE, |c, b| Box::pin(dav::answer(c, b))),
    get(Operation::OpenNote, PERSON, NONE, |c, b| Box::pin(dav::answer(c, b))),
    dav_query("PROPFIND", Operation::ReadEntries, |c, b| Box::pin(dav::answer(c, b))),
    dav_query("REPORT", Operation::Search, |c, b| Box::pin(dav::answer(c, b))),
    dav_query("POST", Operation::Search, |c, b| Box::pin(dav::answer(c, b))),
    act("PUT", Operation::UpdateNote, PERSON, DAV_RESOURCE, NONE, |c, b| Box::pin(dav::answer(c, b))),
    act("DELETE", Operation::DeleteNote, PERSON, NOTHING, NONE, |c, b| Box::pin(dav::answer(c, b))),
    act("PROPPATCH", Operation::FolderDefine, PERSON, DAV_QUERY, NONE, |c, b| Box::pin(dav::answer(c, b))),
    act("MKCOL", Operation::FolderDefine, PERSON, DAV_QUERY, NONE, |c, b| Box::pin(dav::answer(c, b))),
    act("MKCALENDAR", Operation::FolderDefine, PERSON, DAV_QUERY, NONE, |c, b| Box::pin(dav::answer(c, b))),
    act("COPY", Operation::UpdateNote, PERSON, NOTHING, NONE, |c, b| Box::pin(dav::answer(c, b))),
    act("MOVE", Operation::FolderMove, PERSON, NOTHING, NONE, |c, b| Box::pin(dav::answer(c, b))),
    act("LOCK", Operation::UpdateNote, PERSON, DAV_QUERY, NONE, |c, b| Box::pin(dav::answer(c, b))),
    act("UNLOCK", Operation::UpdateNote, PERSON, NOTHING, NONE, |c, b| Box::pin(dav::answer(c, b))),
];

/// All routes of the interface. The first whose pattern fits an address is the one that answers.
#[must_use]
pub fn routes() -> &'static [Route] {
    ROUTES
}

static ROUTES: &[Route] = &[
    Route {
        path: "/",
        methods: &[
            get(Operation::Other, ANONYMOUS, NONE, |c, _| Box::pin(ready(Ok(server_pages::welcome(c))))),
            dav_query("PROPFIND", Operation::ReadEntries, |c, b| Box::pin(dav::answer(c, b))),
        ],
    },
    Route { path: "/_dav", methods: &DAV_METHODS },
    Route { path: "/_dav/{dav_path...}", methods: &DAV_METHODS },
    Route {
        path: "/_published/{link...}",
        methods: &[get(Operation::OpenNote, ANONYMOUS, NONE, |c, _| Box::pin(dav::published(c)))],
    },
    Route {
        path: "/.well-known/caldav",
        methods: &[act(ANY_METHOD, Operation::Other, ANONYMOUS, NOTHING, NONE, |_, _| {
            Box::pin(ready(Ok(dav::well_known())))
        })],
    },
    Route {
        path: "/.well-known/carddav",
        methods: &[act(ANY_METHOD, Operation::Other, ANONYMOUS, NOTHING, NONE, |_, _| {
            Box::pin(ready(Ok(dav::well_known())))
        })],
    },
    Route {
        path: "/_up",
        methods: &[get(Operation::Other, ANONYMOUS, NONE, |c, _| Box::pin(ready(Ok(server_pages::up(c)))))],
    },
    Route {
        path: "/_session",
        methods: &[
            get(Operation::Other, ANONYMOUS, &["basic"], |c, _| Box::pin(ready(session::show(c)))),
            act("POST", Operation::Other, ANONYMOUS, LINE, &["next"], |c, b| Box::pin(session::open(c, b))),
            act("DELETE", Operation::Other, ANONYMOUS, NOTHING, NONE, |c, _| Box::pin(session::close(c))),
        ],
    },
    Route {
        path: "/_session/passkey_options",
        methods: &[ask(Operation::Other, ANONYMOUS, LINE, NONE, |c, b| {
            Box::pin(credentials::passkey_options(c, b))
        })],
    },
    Route {
        path: "/_session/provider",
        methods: &[get(Operation::Other, ANONYMOUS, &["next"], |c, _| Box::pin(provider_sign_in::begin(c)))],
    },
    Route {
        path: "/_session/provider/callback",
        methods: &[get(Operation::Other, ANONYMOUS, &["code", "state", "iss", "error"], |c, _| {
            Box::pin(provider_sign_in::end(c))
        })],
    },
    Route {
        path: "/_session/totp",
        methods: &[
            act("POST", Operation::Other, ANONYMOUS, LINE, NONE, |c, b| {
                Box::pin(credentials::begin_first_totp(c, b))
            }),
            act("PUT", Operation::Other, ANONYMOUS, LINE, NONE, |c, b| {
                Box::pin(credentials::confirm_first_totp(c, b))
            }),
        ],
    },
    Route {
        path: "/.well-known/autoconfig/mail/config-v1.1.xml",
        methods: &[get(Operation::Other, ANONYMOUS, MAIL_ADDRESS, |c, _| {
            Box::pin(ready(mail_setup::automatic_configuration(c)))
        })],
    },
    Route {
        path: "/mail/config-v1.1.xml",
        methods: &[get(Operation::Other, ANONYMOUS, MAIL_ADDRESS, |c, _| {
            Box::pin(ready(mail_setup::automatic_configuration(c)))
        })],
    },
    Route {
        path: "/.well-known/acme-challenge/{token}",
        methods: &[get(Operation::Other, ANONYMOUS, NONE, |c, _| Box::pin(ready(acme::challenge(c))))],
    },
    Route {
        path: "/.well-known/mta-sts.txt",
        methods: &[get(Operation::Other, ANONYMOUS, NONE, |c, _| Box::pin(ready(mail_setup::sts_policy(c))))],
    },
    Route {
        path: "/autodiscover/autodiscover.xml",
        methods: &[ask(Operation::Other, ANONYMOUS, AUTODISCOVER, NONE, |c, b| {
            Box::pin(mail_setup::autodiscover(c, b))
        })],
    },
    // Outlook writes it in either way; no database has a name with capital letters.
    Route {
        path: "/Autodiscover/Autodiscover.xml",
        methods: &[ask(Operation::Other, ANONYMOUS, AUTODISCOVER, NONE, |c, b| {
            Box::pin(mail_setup::autodiscover(c, b))
        })],
    },
    Route {
        path: "/autodiscover/autodiscover.json",
        methods: &[get(Operation::Other, ANONYMOUS, AUTODISCOVER_PLACE, |c, _| {
            Box::pin(ready(mail_setup::autodiscover_place(c)))
        })],
    },
    Route {
        path: "/autodiscover/autodiscover.json/v1.0/{email}",
        methods: &[get(Operation::Other, ANONYMOUS, AUTODISCOVER_PLACE, |c, _| {
            Box::pin(ready(mail_setup::autodiscover_place(c)))
        })],
    },
    Route {
        path: "/_mail_setup/profile.mobileconfig",
        methods: &[get(Operation::Other, ANONYMOUS, MAIL_ADDRESS, |c, _| {
            Box::pin(ready(mail_setup::mobile_profile(c)))
        })],
    },
    Route {
        path: "/_credentials",
        methods: &[get(Operation::Other, PERSON, PERSONS, |c, _| Box::pin(credentials::list(c)))],
    },
    Route {
        path: "/_credentials/app_passwords",
        methods: &[act("POST", Operation::Other, PERSON, LINE, PERSONS, |c, b| {
            Box::pin(credentials::add_app_password(c, b))
        })],
    },
    Route {
        path: "/_credentials/app_passwords/{id}",
        methods: &[
            act("PUT", Operation::Other, PERSON, LINE, PERSONS, |c, b| {
                Box::pin(credentials::rename_app_password(c, b))
            }),
            act("DELETE", Operation::Other, PERSON, NOTHING, PERSONS, |c, _| {
                Box::pin(credentials::revoke_app_password(c))
            }),
        ],
    },
    Route {
        path: "/_credentials/totp",
        methods: &[
            act("POST", Operation::Other, PERSON, NOTHING, PERSONS, |c, _| {
                Box::pin(credentials::begin_totp(c))
            }),
            act("PUT", Operation::Other, PERSON, LINE, PERSONS, |c, b| {
                Box::pin(credentials::confirm_totp(c, b))
            }),
            act("DELETE", Operation::Other, PERSON, NOTHING, PERSONS, |c, _| {
                Box::pin(credentials::remove_totp(c))
            }),
        ],
    },
    Route {
        path: "/_credentials/recovery_codes",
        methods: &[act("POST", Operation::Other, PERSON, NOTHING, PERSONS, |c, _| {
            Box::pin(credentials::renew_recovery_codes(c))
        })],
    },
    Route {
        path: "/_credentials/passkey_options",
        methods: &[act("POST", Operation::Other, PERSON, NOTHING, PERSONS, |c, _| {
            Box::pin(credentials::begin_passkey(c))
        })],
    },
    Route {
        path: "/_credentials/passkeys",
        methods: &[act("POST", Operation::Other, PERSON, CREDENTIAL, PERSONS, |c, b| {
            Box::pin(credentials::add_passkey(c, b))
        })],
    },
    Route {
        path: "/_credentials/passkeys/{id}",
        methods: &[act("DELETE", Operation::Other, PERSON, NOTHING, PERSONS, |c, _| {
            Box::pin(credentials::remove_passkey(c))
        })],
    },
    Route {
        path: "/_credentials/sessions",
        methods: &[
            get(Operation::Other, PERSON, PERSONS, |c, _| Box::pin(credentials::list_sessions(c))),
            act("DELETE", Operation::Other, PERSON, NOTHING, PERSONS, |c, _| {
                Box::pin(credentials::end_other_sessions(c))
            }),
        ],
    },
    Route {
        path: "/_credentials/sessions/{id}",
        methods: &[act("DELETE", Operation::Other, PERSON, NOTHING, PERSONS, |c, _| {
            Box::pin(credentials::end_session(c))
        })],
    },
    Route {
        path: "/_credentials/links/{id}",
        methods: &[
            act("PUT", Operation::Other, PERSON, NOTHING, PERSONS, |c, _| {
                Box::pin(credentials::link_account(c))
            }),
            act("DELETE", Operation::Other, PERSON, NOTHING, PERSONS, |c, _| {
                Box::pin(credentials::unlink_account(c))
            }),
        ],
    },
    Route {
        path: "/_all_dbs",
        methods: &[get(Operation::Other, ADMINISTRATOR, NAMES, |c, _| Box::pin(databases::all(c)))],
    },
    Route {
        path: "/_db_updates",
        methods: &[get(Operation::Other, PERSON, EVENTS, |c, _| Box::pin(database_updates::updates(c)))],
    },
    Route {
        path: "/_dbs_info",
        methods: &[
            get(Operation::Other, ADMINISTRATOR, NAMES, |c, _| Box::pin(databases::all_infos(c))),
            ask(Operation::Other, PERSON, SETTING, NONE, |c, b| Box::pin(databases::infos(c, b))),
        ],
    },
    Route {
        path: "/_transaction",
        methods: &[act("POST", Operation::UpdateNotes, PERSON, TRANSACTION, NONE, |c, b| {
            Box::pin(transaction::store(c, b))
        })],
    },
    Route {
        path: "/_uuids",
        methods: &[get(Operation::Other, PERSON, &["count"], |c, _| Box::pin(ready(server_pages::uuids(c))))],
    },
    Route {
        path: "/_stats",
        methods: &[get(Operation::Other, VIEWER, NONE, |c, _| Box::pin(server_pages::statistics(c)))],
    },
    Route {
        path: "/_node/{node}/_stats",
        methods: &[get(Operation::Other, VIEWER, NONE, |c, _| Box::pin(server_pages::statistics(c)))],
    },
    Route {
        path: "/metrics",
        methods: &[get(Operation::Other, VIEWER, NONE, |c, _| Box::pin(server_pages::prometheus(c)))],
    },
    Route {
        path: "/_node/{node}/_prometheus",
        methods: &[get(Operation::Other, VIEWER, NONE, |c, _| Box::pin(server_pages::prometheus(c)))],
    },
    Route {
        path: "/_node/{node}/_config",
        methods: &[get(Operation::Other, ADMINISTRATOR, NONE, |c, _| Box::pin(configuration::show(c)))],
    },
    Route {
        path: "/_node/{node}/_config/{section}",
        methods: &[get(Operation::Other, ADMINISTRATOR, NONE, |c, _| Box::pin(configuration::show(c)))],
    },
    Route {
        path: "/_node/{node}/_config/{section}/{key}",
        methods: &[
            act("DELETE", Operation::Other, ADMINISTRATOR, NOTHING, NONE, |c, _| {
                Box::pin(configuration::remove(c))
            }),
            get(Operation::Other, ADMINISTRATOR, NONE, |c, _| Box::pin(configuration::show(c))),
            act("PUT", Operation::Other, ADMINISTRATOR, LINE, NONE, |c, b| {
                Box::pin(configuration::set(c, b))
            }),
        ],
    },
    Route {
        path: "/_active_tasks",
        methods: &[get(Operation::Other, VIEWER, NONE, |c, _| Box::pin(server_pages::active_tasks(c)))],
    },
    Route {
        path: "/_membership",
        methods: &[get(Operation::Other, VIEWER, NONE, |c, _| {
            Box::pin(ready(Ok(server_pages::membership(c))))
        })],
    },
    Route {
        path: "/_openapi.json",
        methods: &[get(Operation::Other, PERSON, NONE, |_, _| Box::pin(ready(Ok(openapi::show()))))],
    },
    Route {
        path: "/_nouveau_analyze",
        methods: &[ask(Operation::Other, PERSON, SETTING, NONE, |c, b| Box::pin(text_search::analyze(c, b)))],
    },
    Route {
        path: "/_console",
        methods: &[act("POST", Operation::Other, VIEWER, LINE, NONE, |c, b| {
            Box::pin(server_pages::console(c, b))
        })],
    },
    Route {
        path: "/_feed",
        methods: &[get(Operation::Other, PERSON, STREAM, |c, _| Box::pin(person_feed::open(c)))],
    },
    Route {
        path: "/_domain_check/{domain}",
        methods: &[get(Operation::Other, ADMINISTRATOR, NONE, |c, _| Box::pin(domain_check::check(c)))],
    },
    Route {
        path: "/_held_mail/{id}",
        methods: &[act("DELETE", Operation::Other, PERSON, NOTHING, NONE, |c, _| {
            Box::pin(held_mail::take_back(c))
        })],
    },
    Route {
        path: "/_people",
        methods: &[get(Operation::Other, PERSON, &["q", "kind", "site", "capacity", "limit"], |c, _| {
            Box::pin(people_search::find(c))
        })],
    },
    Route {
        path: "/_mail_rules",
        methods: &[
            get(Operation::Other, PERSON, NONE, |c, _| Box::pin(mail_rules::get(c, MailRulesOf::Own))),
            act("PUT", Operation::Other, PERSON, RULES, NONE, |c, b| {
                Box::pin(mail_rules::put(c, b, MailRulesOf::Own))
            }),
        ],
    },
    Route {
        path: "/_mail_rules/server",
        methods: &[
            get(Operation::Other, ADMINISTRATOR, NONE, |c, _| {
                Box::pin(mail_rules::get(c, MailRulesOf::Server))
            }),
            act("PUT", Operation::Other, ADMINISTRATOR, RULES, NONE, |c, b| {
                Box::pin(mail_rules::put(c, b, MailRulesOf::Server))
            }),
        ],
    },
    Route {
        path: "/_mail_scripts",
        methods: &[
            get(Operation::Other, PERSON, NONE, |c, _| Box::pin(mail_rules::get(c, MailRulesOf::Scripts))),
            act("PUT", Operation::Other, PERSON, RULES, NONE, |c, b| {
                Box::pin(mail_rules::put(c, b, MailRulesOf::Scripts))
            }),
        ],
    },
    Route {
        path: "/_replicate",
        methods: &[act("POST", Operation::Other, PERSON, LIST, NONE, |c, b| {
            Box::pin(replication::replicate(c, b))
        })],
    },
    Route {
        path: "/_scheduler/jobs",
        methods: &[get(Operation::Other, ADMINISTRATOR, &["skip", "limit"], |c, _| {
            Box::pin(ready(replication::jobs(c)))
        })],
    },
    Route {
        path: "/_scheduler/jobs/{job}",
        methods: &[get(Operation::Other, ADMINISTRATOR, NONE, |c, _| Box::pin(ready(replication::job(c))))],
    },
    Route {
        path: "/_scheduler/docs",
        methods: &[get(Operation::Other, ADMINISTRATOR, &["skip", "limit", "states"], |c, _| {
            Box::pin(ready(replication::documents(c)))
        })],
    },
    Route {
        path: "/_scheduler/docs/{replicator}",
        methods: &[get(Operation::Other, ADMINISTRATOR, &["skip", "limit", "states"], |c, _| {
            Box::pin(ready(replication::documents_of(c)))
        })],
    },
    Route {
        path: "/_scheduler/docs/{replicator}/{order}",
        methods: &[get(Operation::Other, ADMINISTRATOR, NONE, |c, _| Box::pin(replication::document(c)))],
    },
    Route {
        path: "/_utils",
        methods: &[get(Operation::Other, ANONYMOUS, NONE, |c, _| Box::pin(ready(web_pages::first(c))))],
    },
    Route {
        path: "/_utils/{file...}",
        methods: &[get(Operation::Other, ANONYMOUS, NONE, |c, _| Box::pin(ready(web_pages::file(c))))],
    },
    Route {
        path: "/_app",
        methods: &[get(Operation::Other, ANONYMOUS, NONE, |c, _| Box::pin(ready(web_pages::client(c))))],
    },
    Route {
        path: "/_app/{file...}",
        methods: &[get(Operation::Other, ANONYMOUS, NONE, |c, _| Box::pin(ready(web_pages::client_file(c))))],
    },
    Route {
        path: "/{db}",
        methods: &[
            act("DELETE", Operation::DeleteDatabase, ADMINISTRATOR, NOTHING, NONE, |c, _| {
                Box::pin(databases::delete(c))
            }),
            get(Operation::OpenDatabase, READER, NONE, |c, _| Box::pin(databases::info(c))),
            act("POST", Operation::UpdateNote, DEPOSITOR, DOCUMENT, WRITE, |c, b| {
                Box::pin(write::post(c, b))
            }),
            act(
                "PUT",
                Operation::CreateDatabase,
                ADMINISTRATOR,
                NOTHING,
                &["owner", "volume", "partitioned"],
                |c, _| Box::pin(databases::create(c)),
            ),
        ],
    },
    Route {
        path: "/{db}/_all_docs",
        methods: &rows(
            Operation::ReadEntries,
            |c, _| Box::pin(view::rows(c, Listing::All, None)),
            |c, b| Box::pin(view::rows(c, Listing::All, Some(b))),
        ),
    },
    Route {
        path: "/{db}/_all_docs/queries",
        methods: &queries(|c, b| Box::pin(view::queries(c, Listing::All, b))),
    },
    Route {
        path: "/{db}/_design_docs",
        methods: &rows(
            Operation::ReadEntries,
            |c, _| Box::pin(view::rows(c, Listing::Design, None)),
            |c, b| Box::pin(view::rows(c, Listing::Design, Some(b))),
        ),
    },
    Route {
        path: "/{db}/_design_docs/queries",
        methods: &queries(|c, b| Box::pin(view::queries(c, Listing::Design, b))),
    },
    Route {
        path: "/{db}/_local_docs",
        methods: &rows(
            Operation::ReadEntries,
            |c, _| Box::pin(view::rows(c, Listing::Local, None)),
            |c, b| Box::pin(view::rows(c, Listing::Local, Some(b))),
        ),
    },
    Route {
        path: "/{db}/_local_docs/queries",
        methods: &queries(|c, b| Box::pin(view::queries(c, Listing::Local, b))),
    },
    Route {
        path: "/{db}/_bulk_docs",
        methods: &[act("POST", Operation::UpdateNotes, DEPOSITOR, BULK, &["folder", "read_by"], |c, b| {
            Box::pin(bulk::documents(c, b))
        })],
    },
    Route {
        path: "/{db}/_bulk_get",
        methods: &[ask(Operation::OpenNotes, READER, LIST, READ, |c, b| Box::pin(bulk_get::get(c, b)))],
    },
    Route {
        path: "/{db}/_revs_diff",
        methods: &[ask(Operation::Other, READER, LIST, NONE, |c, b| {
            Box::pin(bulk::revisions_difference(c, b))
        })],
    },
    Route {
        path: "/{db}/_missing_revs",
        methods: &[ask(Operation::Other, READER, LIST, NONE, |c, b| Box::pin(bulk::missing_revisions(c, b)))],
    },
    Route {
        path: "/{db}/_changes",
        methods: &[
            get(Operation::ModifiedNotes, READER, CHANGES, |c, _| Box::pin(changes::changes(c, None))),
            ask(Operation::ModifiedNotes, READER, LIST, CHANGES, |c, b| {
                Box::pin(changes::changes(c, Some(b)))
            }),
        ],
    },
    Route {
        path: "/{db}/_revs_limit",
        methods: &[
            act("PUT", Operation::Other, MANAGER, SETTING, NONE, |c, b| {
                Box::pin(settings::set_revision_limit(c, b))
            }),
            get(Operation::Other, READER, NONE, |c, _| Box::pin(settings::revision_limit(c))),
        ],
    },
    Route {
        path: "/{db}/_security",
        methods: &[
            act("PUT", Operation::Other, MANAGER, ACCESS, NONE, |c, b| {
                Box::pin(settings::set_security(c, b))
            }),
            get(Operation::Other, READER, NONE, |c, _| Box::pin(settings::security(c))),
        ],
    },
    Route {
        path: "/{db}/_acl",
        methods: &[
            // What it hides would be open to all members.
            act("DELETE", Operation::Other, ADMINISTRATOR, NOTHING, NONE, |c, _| {
                Box::pin(access_list::delete(c))
            }),
            get(Operation::Other, READER, NONE, |c, _| Box::pin(access_list::get(c))),
            act("PUT", Operation::Other, MANAGER, ACCESS, NONE, |c, b| Box::pin(access_list::put(c, b))),
        ],
    },
    Route {
        path: "/{db}/_properties",
        methods: &[
            // What is set here is felt by the users of other databases too.
            act("PUT", Operation::Other, ADMINISTRATOR, SETTING, NONE, |c, b| {
                Box::pin(settings::set_properties(c, b))
            }),
            get(Operation::Other, READER, NONE, |c, _| Box::pin(settings::properties(c))),
        ],
    },
    Route {
        path: "/{db}/_compact",
        methods: &[act("POST", Operation::Other, MANAGER, NOTHING, NONE, |c, _| {
            Box::pin(compact::database(c))
        })],
    },
    Route {
        path: "/{db}/_compact/{ddoc}",
        methods: &[act("POST", Operation::Other, MANAGER, NOTHING, NONE, |c, _| {
            Box::pin(compact::indexes(c))
        })],
    },
    Route {
        path: "/{db}/_view_cleanup",
        methods: &[act("POST", Operation::Other, MANAGER, NOTHING, NONE, |c, _| {
            Box::pin(settings::view_cleanup(c))
        })],
    },
    Route {
        path: "/{db}/_ensure_full_commit",
        methods: &[ask(Operation::Other, READER, NOTHING, NONE, |c, _| {
            Box::pin(settings::ensure_full_commit(c))
        })],
    },
    Route {
        path: "/{db}/_purge",
        methods: &[act("POST", Operation::Other, ADMINISTRATOR, LIST, NONE, |c, b| {
            Box::pin(compact::purge(c, b))
        })],
    },
    Route {
        path: "/{db}/_held",
        // What it shows may be hidden from everybody else, and was deleted.
        methods: &[get(Operation::Other, ADMINISTRATOR, &["id", "rev", "limit", "attachments"], |c, _| {
            Box::pin(held::get(c))
        })],
    },
    Route {
        path: "/{db}/_purged_infos",
        methods: &[get(Operation::Other, MANAGER, NONE, |c, _| Box::pin(compact::purged_infos(c)))],
    },
    Route {
        path: "/{db}/_purged_infos_limit",
        methods: &[
            act("PUT", Operation::Other, MANAGER, SETTING, NONE, |c, b| {
                Box::pin(compact::set_purged_infos_limit(c, b))
            }),
            get(Operation::Other, READER, NONE, |c, _| Box::pin(compact::purged_infos_limit(c))),
        ],
    },
    Route {
        path: "/{db}/_find",
        methods: &[ask(Operation::Search, READER, QUERY, NONE, |c, b| Box::pin(find::find(c, b)))],
    },
    Route {
        path: "/{db}/_fulltext",
        methods: &[
            get(Operation::Search, READER, WORDS, |c, _| Box::pin(text_search::of_documents(c, None))),
            ask(Operation::Search, READER, QUERY, WORDS, |c, b| {
                Box::pin(text_search::of_documents(c, Some(b)))
            }),
        ],
    },
    Route {
        path: "/{db}/_fulltext_info",
        methods: &[get(Operation::Other, READER, NONE, |c, _| Box::pin(text_search::documents_info(c)))],
    },
    Route {
        path: "/{db}/_nouveau_cleanup",
        methods: &[act("POST", Operation::Other, MANAGER, NOTHING, NONE, |c, _| {
            Box::pin(settings::view_cleanup(c))
        })],
    },
    Route {
        path: "/{db}/_explain",
        methods: &[ask(Operation::Other, READER, QUERY, NONE, |c, b| Box::pin(find::explain(c, b)))],
    },
    Route {
        path: "/{db}/_index",
        methods: &[
            get(Operation::Other, READER, &["skip", "limit"], |c, _| Box::pin(indexes::list(c))),
            act("POST", Operation::DesignNote, DESIGNER, QUERY, NONE, |c, b| Box::pin(indexes::create(c, b))),
        ],
    },
    Route {
        path: "/{db}/_index/_bulk_delete",
        methods: &[act("POST", Operation::DesignNote, DESIGNER, SETTING, NONE, |c, b| {
            Box::pin(indexes::delete_several(c, b))
        })],
    },
    Route {
        path: "/{db}/_index/_design/{index_ddoc}/{type}/{name}",
        methods: &[act("DELETE", Operation::DesignNote, DESIGNER, NOTHING, NONE, |c, _| {
            Box::pin(indexes::delete(c))
        })],
    },
    Route {
        path: "/{db}/_index/{index_ddoc}/{type}/{name}",
        methods: &[act("DELETE", Operation::DesignNote, DESIGNER, NOTHING, NONE, |c, _| {
            Box::pin(indexes::delete(c))
        })],
    },
    Route {
        path: "/{db}/_folder",
        methods: &[get(Operation::FolderList, READER, NONE, |c, _| Box::pin(folder::list(c)))],
    },
    Route {
        path: "/{db}/_folder/{folder}",
        methods: &[
            act("DELETE", Operation::FolderDelete, EDITOR, NOTHING, NONE, |c, _| Box::pin(folder::remove(c))),
            get(Operation::OpenCollection, READER, ROWS, |c, _| Box::pin(view::folder_rows(c))),
            act("POST", Operation::FolderMove, AUTHOR, LIST, NONE, |c, b| Box::pin(folder::change(c, b))),
            act("PUT", Operation::FolderDefine, EDITOR, SETTING, NONE, |c, b| Box::pin(folder::define(c, b))),
        ],
    },
    Route {
        path: "/{db}/_folder/{folder}/_members",
        methods: &[get(Operation::FolderChanges, READER, &["since_uid", "limit"], |c, _| {
            Box::pin(folder::members(c))
        })],
    },
    Route {
        path: "/{db}/_folder/{folder}/_changes",
        methods: &[get(Operation::FolderChanges, READER, &["since", "limit"], |c, _| {
            Box::pin(folder::changes(c))
        })],
    },
    Route {
        path: "/{db}/_unread",
        methods: &[
            get(Operation::UnreadTable, READER, NONE, |c, _| Box::pin(unread::counts(c))),
            act("POST", Operation::ReceiveUnread, READER, LIST, NONE, |c, b| Box::pin(unread::mark(c, b))),
        ],
    },
    Route {
        path: "/{db}/_unread/_changes",
        methods: &[get(Operation::UnreadTable, READER, &["since", "limit"], |c, _| {
            Box::pin(unread::changes(c))
        })],
    },
    Route {
        path: "/{db}/_local/{localid}",
        methods: &[
            act("DELETE", Operation::ReplicationHistory, READER, NOTHING, &["rev"], |c, _| {
                Box::pin(write::delete_local(c))
            }),
            get(Operation::ReplicationHistory, READER, NONE, |c, _| Box::pin(document::get_local(c))),
            act("PUT", Operation::ReplicationHistory, READER, PLAIN_DOCUMENT, &["rev"], |c, b| {
                Box::pin(write::put_local(c, b))
            }),
            act("COPY", Operation::UpdateNote, DEPOSITOR, NOTHING, WRITE, |c, _| Box::pin(copy::copy(c))),
        ],
    },
    Route {
        path: "/{db}/_design/{ddoc}",
        methods: &[
            act("DELETE", Operation::DesignNote, DESIGNER, NOTHING, WRITE, |c, _| Box::pin(write::delete(c))),
            get(Operation::DesignNote, READER, READ, |c, _| Box::pin(document::get(c))),
            act("PUT", Operation::DesignNote, DESIGNER, DOCUMENT, WRITE, |c, b| Box::pin(write::put(c, b))),
            act("COPY", Operation::UpdateNote, DEPOSITOR, NOTHING, WRITE, |c, _| Box::pin(copy::copy(c))),
        ],
    },
    Route {
        path: "/{db}/_design/{ddoc}/_view/{view}",
        methods: &rows(
            Operation::OpenCollection,
            |c, _| Box::pin(view::view_rows(c, None)),
            |c, b| Box::pin(view::view_rows(c, Some(b))),
        ),
    },
    Route {
        path: "/{db}/_design/{ddoc}/_view/{view}/queries",
        methods: &queries(|c, b| Box::pin(view::view_queries(c, b))),
    },
    Route {
        path: "/{db}/_design/{ddoc}/_info",
        methods: &[get(Operation::Other, READER, NONE, |c, _| Box::pin(design::info(c)))],
    },
    Route {
        path: "/{db}/_design/{ddoc}/_nouveau/{textindex}",
        methods: &[
            get(Operation::Search, READER, WORDS, |c, _| Box::pin(text_search::of_design(c, None))),
            ask(Operation::Search, READER, QUERY, WORDS, |c, b| Box::pin(text_search::of_design(c, Some(b)))),
        ],
    },
    Route {
        path: "/{db}/_design/{ddoc}/_nouveau_info/{textindex}",
        methods: &[get(Operation::Other, READER, NONE, |c, _| Box::pin(text_search::design_info(c)))],
    },
    Route {
        path: "/{db}/_design/{ddoc}/_update/{handler}",
        methods: &[
            act("POST", Operation::UpdateNote, READER, HANDLED, NONE, |c, b| Box::pin(handler::run(c, b))),
            act("PUT", Operation::UpdateNote, READER, HANDLED, NONE, |c, b| Box::pin(handler::run(c, b))),
        ],
    },
    Route {
        path: "/{db}/_design/{ddoc}/_update/{handler}/{target...}",
        methods: &[
            act("POST", Operation::UpdateNote, READER, HANDLED, NONE, |c, b| Box::pin(handler::run(c, b))),
            act("PUT", Operation::UpdateNote, READER, HANDLED, NONE, |c, b| Box::pin(handler::run(c, b))),
        ],
    },
    Route {
        path: "/{db}/_design/{ddoc}/{function...}",
        methods: &[act(ANY_METHOD, Operation::Other, PERSON, NOTHING, NONE, |c, _| {
            Box::pin(ready(design::unknown_function(c)))
        })],
    },
    Route {
        path: "/{db}/_design/{ddoc}/{attname...}",
        methods: &[
            act("DELETE", Operation::WriteObject, DESIGNER, NOTHING, &["rev"], |c, _| {
                Box::pin(attachment::delete(c))
            }),
            get(Operation::ReadObject, READER, &["rev"], |c, _| Box::pin(attachment::get(c))),
            act("PUT", Operation::WriteObject, DESIGNER, ATTACHMENT, WRITE, |c, b| {
                Box::pin(attachment::put(c, b))
            }),
        ],
    },
    Route {
        path: "/{db}/{special...}",
        methods: &[act(ANY_METHOD, Operation::Other, PERSON, NOTHING, NONE, |c, _| {
            Box::pin(ready(Err::<_, HttpError>(design::unknown_special(c))))
        })],
    },
    Route {
        path: "/{db}/{docid}",
        methods: &[
            act("DELETE", Operation::DeleteNote, DEPOSITOR, NOTHING, WRITE, |c, _| {
                Box::pin(write::delete(c))
            }),
            get(Operation::OpenNote, READER, READ, |c, _| Box::pin(document::get(c))),
            act("PUT", Operation::UpdateNote, DEPOSITOR, DOCUMENT, WRITE, |c, b| Box::pin(write::put(c, b))),
            act("COPY", Operation::UpdateNote, DEPOSITOR, NOTHING, WRITE, |c, _| Box::pin(copy::copy(c))),
        ],
    },
    Route {
        path: "/{db}/{docid}/_message",
        methods: &[get(Operation::ReadObject, READER, NONE, |c, _| Box::pin(message_parts::outline(c)))],
    },
    Route {
        path: "/{db}/{docid}/_body",
        methods: &[get(Operation::ReadObject, READER, &["pictures"], |c, _| {
            Box::pin(message_parts::body(c))
        })],
    },
    Route {
        path: "/{db}/{docid}/_file/{number}",
        methods: &[get(Operation::ReadObject, READER, NONE, |c, _| Box::pin(message_parts::file(c)))],
    },
    Route {
        path: "/{db}/{docid}/{attname...}",
        methods: &[
            act("DELETE", Operation::WriteObject, DEPOSITOR, NOTHING, &["rev"], |c, _| {
                Box::pin(attachment::delete(c))
            }),
            get(Operation::ReadObject, READER, &["rev"], |c, _| Box::pin(attachment::get(c))),
            act("PUT", Operation::WriteObject, DEPOSITOR, ATTACHMENT, WRITE, |c, b| {
                Box::pin(attachment::put(c, b))
            }),
        ],
    },
];

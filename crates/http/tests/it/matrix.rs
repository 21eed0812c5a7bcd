//! Every route, for everybody, with every parameter: what somebody may not read is in no answer.
//!
//! A new route fails here until [`LISTED`] has it, and a parameter until [`values_of`] knows what to give it.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::common::Server;

/// What nobody but ada and the administrator may come to see: in bodies, names of attachments and their contents.
const SECRET: &str = "rosebud";

/// The secret as it goes over the wire in base64, and what the ids, the revisions and the digests of what is hidden hold.
const TRACES: [&str; 5] = [SECRET, "cm9zZWJ1ZA", "hid-", "fadefade", "Cbtjv3Y1+c/VDwIuejsN"];

const HIDDEN: &str = "2-fadefadefadefadefadefadefadefade";
const LOW: &str = "2-00000000000000000000000000000000";
const HIGH: &str = "2-ffffffffffffffffffffffffffffffff";

/// Documents that are there for nobody else: hidden ones, one with a conflict that was settled, a tombstone.
const HIDDEN_IDS: [&str; 3] = ["hid-s", "hid-c", "hid-t"];

/// One that everybody reads, one of which the winner is hidden, and one of which another leaf is.
const SHOWN_IDS: [&str; 3] = ["open", "half-w", "half-l"];

const LEVELS: [&str; 8] = ["", "no_access", "depositor", "reader", "author", "editor", "designer", "manager"];

/// People who are more than anybody elsewhere, with the level that they have by `default` in a database, or by their group.
const OTHERS: [(&str, &str, &str); 4] = [
    // Who looks on what administrators do has nothing in a database by it.
    ("viewer", "no_access", ""),
    // Who administers a domain is not reached by the default of others, and has what the domain has.
    ("dora", "editor", ""),
    ("dora", "no_access", "*/acme.example"),
    // Whom somebody lets change their mail does not come to what `Readers` hide in it.
    ("deputy", "no_access", "mail/ada (editors)"),
];

/// All routes that are asked here. Those of the server as a whole name no document.
const LISTED: &[&str] = &[
    "/",
    "/_dav",
    "/_dav/{dav_path...}",
    "/_published/{link...}",
    "/.well-known/caldav",
    "/.well-known/carddav",
    "/_up",
    "/_session",
    "/_session/passkey_options",
    "/_session/provider",
    "/_session/provider/callback",
    "/_session/totp",
    "/.well-known/autoconfig/mail/config-v1.1.xml",
    "/mail/config-v1.1.xml",
    "/.well-known/acme-challenge/{token}",
    "/.well-known/mta-sts.txt",
    "/autodiscover/autodiscover.xml",
    "/Autodiscover/Autodiscover.xml",
    "/autodiscover/autodiscover.json",
    "/autodiscover/autodiscover.json/v1.0/{email}",
    "/_mail_setup/profile.mobileconfig",
    "/_credentials",
    "/_credentials/app_passwords",
    "/_credentials/app_passwords/{id}",
    "/_credentials/totp",
    "/_credentials/recovery_codes",
    "/_credentials/passkey_options",
    "/_credentials/passkeys",
    "/_credentials/passkeys/{id}",
    "/_credentials/sessions",
    "/_credentials/sessions/{id}",
    "/_credentials/links/{id}",
    "/_all_dbs",
    "/_db_updates",
    "/_dbs_info",
    "/_transaction",
    "/_uuids",
    "/_stats",
    "/_node/{node}/_stats",
    "/metrics",
    "/_node/{node}/_prometheus",
    "/_node/{node}/_config",
    "/_node/{node}/_config/{section}",
    "/_node/{node}/_config/{section}/{key}",
    "/_active_tasks",
    "/_membership",
    "/_openapi.json",
    "/_nouveau_analyze",
    "/_console",
    "/_feed",
    "/_domain_check/{domain}",
    "/_held_mail/{id}",
    "/_people",
    "/_mail_rules",
    "/_mail_rules/server",
    "/_mail_scripts",
    "/_replicate",
    "/_scheduler/jobs",
    "/_scheduler/jobs/{job}",
    "/_scheduler/docs",
    "/_scheduler/docs/{replicator}",
    "/_scheduler/docs/{replicator}/{order}",
    "/_utils",
    "/_utils/{file...}",
    "/_app",
    "/_app/{file...}",
    "/{db}",
    "/{db}/_all_docs",
    "/{db}/_all_docs/queries",
    "/{db}/_design_docs",
    "/{db}/_design_docs/queries",
    "/{db}/_local_docs",
    "/{db}/_local_docs/queries",
    "/{db}/_bulk_docs",
    "/{db}/_bulk_get",
    "/{db}/_revs_diff",
    "/{db}/_missing_revs",
    "/{db}/_changes",
    "/{db}/_revs_limit",
    "/{db}/_security",
    "/{db}/_acl",
    "/{db}/_properties",
    "/{db}/_compact",
    "/{db}/_compact/{ddoc}",
    "/{db}/_view_cleanup",
    "/{db}/_ensure_full_commit",
    "/{db}/_purge",
    "/{db}/_held",
    "/{db}/_purged_infos",
    "/{db}/_purged_infos_limit",
    "/{db}/_find",
    "/{db}/_fulltext",
    "/{db}/_fulltext_info",
    "/{db}/_nouveau_cleanup",
    "/{db}/_explain",
    "/{db}/_index",
    "/{db}/_index/_bulk_delete",
    "/{db}/_index/_design/{index_ddoc}/{type}/{name}",
    "/{db}/_index/{index_ddoc}/{type}/{name}",
    "/{db}/_folder",
    "/{db}/_folder/{folder}",
    "/{db}/_folder/{folder}/_members",
    "/{db}/_folder/{folder}/_changes",
    "/{db}/_unread",
    "/{db}/_unread/_changes",
    "/{db}/_local/{localid}",
    "/{db}/_design/{ddoc}",
    "/{db}/_design/{ddoc}/_view/{view}",
    "/{db}/_design/{ddoc}/_view/{view}/queries",
    "/{db}/_design/{ddoc}/_info",
    "/{db}/_design/{ddoc}/_nouveau/{textindex}",
    "/{db}/_design/{ddoc}/_nouveau_info/{textindex}",
    "/{db}/_design/{ddoc}/_update/{handler}",
    "/{db}/_design/{ddoc}/_update/{handler}/{target...}",
    "/{db}/_design/{ddoc}/{function...}",
    "/{db}/_design/{ddoc}/{attname...}",
    "/{db}/{special...}",
    "/{db}/{docid}",
    "/{db}/{docid}/_message",
    "/{db}/{docid}/_body",
    "/{db}/{docid}/_file/{number}",
    "/{db}/{docid}/{attname...}",
];

/// What goes into the place of each part of an address.
fn parts_of(part: &str) -> Vec<String> {
    let parts: &[&str] = match part {
        "{node}" => &["_local"],
        "{section}" => &["http"],
        "{key}" => &["listen"],
        "{job}" => &["0123456789abcdef0123456789abcdef"],
        "{replicator}" => &["_replicator", "db"],
        "{order}" => &["hid-s"],
        // What keeps calendars has a matrix of its own.
        "{dav_path...}" => &["calendars/ada/calendar/hid-s"],
        "{link...}" => &["ada/hid-s.ics"],
        "{file...}" => &["index.html", "db/hid-s"],
        "{id}" => &["k3f9"],
        "{token}" => &["token-of-nobody"],
        "{email}" => &["ada@acme.example"],
        "{domain}" => &["acme.example"],
        "{db}" => &["db"],
        "{ddoc}" => &["f", "j"],
        "{index_ddoc}" => &["m"],
        "{type}" => &["json"],
        "{name}" | "{view}" | "{textindex}" => &["words"],
        "{folder}" => &["Inbox"],
        "{localid}" => &["x"],
        "{handler}" => &["echo", "store"],
        "{target...}" => &["hid-s", "hid-c", "half-w"],
        "{function...}" => &["_show/x/hid-s"],
        "{number}" => &["0"],
        "{attname...}" => &["rosebud.txt"],
        "{special...}" => &["_nothing"],
        "{docid}" => &["hid-s", "hid-c", "hid-t", "open", "half-w", "half-l"],
        text => {
            assert!(!text.starts_with('{'), "the matrix does not know what {text} of an address may be");
            return vec![text.to_owned()];
        }
    };
    parts.iter().map(|part| (*part).to_owned()).collect()
}

fn addresses_of(path: &str, database: &str) -> Vec<String> {
    let mut addresses = vec![String::new()];
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let parts = if part == "{db}" { vec![database.to_owned()] } else { parts_of(part) };
        let further =
            |address: &String| parts.iter().map(|part| format!("{address}/{part}")).collect::<Vec<_>>();
        addresses = addresses.iter().flat_map(further).collect();
    }
    addresses
}

/// One address of a route.
pub(crate) fn address_of(path: &str, database: &str) -> String {
    addresses_of(path, database).swap_remove(0)
}

/// What is tried of a query parameter.
fn values_of(parameter: &str) -> &'static [&'static str] {
    match parameter {
        "id" => &["hid-s"],
        "rev" => &["2-fadefadefadefadefadefadefadefade", "2-00000000000000000000000000000000"],
        "atts_since" => &["[\"2-00000000000000000000000000000000\"]", "[]"],
        "open_revs" => &["all", "[\"2-fadefadefadefadefadefadefadefade\"]"],
        "style" => &["all_docs"],
        "databases" => &["[\"db\",\"none\"]"],
        "feed" => &["longpoll", "continuous", "eventsource"],
        "filter" => &["_doc_ids", "_design", "_view", "_selector", "j/all", "j/told"],
        "view" => &["j/words", "f/words"],
        "doc_ids" => &["[\"hid-s\",\"hid-c\",\"half-w\"]"],
        "since" | "since_uid" | "last-event-id" => &["0", "now"],
        "timeout" | "heartbeat" => &["1"],
        "keys" => &["[\"hid-s\",\"hid-c\",\"hid-t\",\"half-w\"]"],
        "key" | "startkey" | "start_key" | "endkey" | "end_key" => &["\"hid-s\"", "\"rosebud\""],
        "startkey_docid" | "start_key_doc_id" | "endkey_docid" | "end_key_doc_id" | "at" => {
            &["hid-s", "half-w"]
        }
        "find" | "start" => &["rosebud", "1"],
        // What is hidden is named by its beginning alone, so that no answer repeats it.
        "q" | "query" => &["rose* OR open", "word:rose*", "hid*"],
        "sort" => &["-word", "relevance"],
        "bookmark" => &["x"],
        "counts" => &["[\"word\"]"],
        "ranges" => &["{\"word\":[{\"label\":\"all\"}]}"],
        "limit" | "top_n" | "skip" | "level" | "group_level" | "count" | "capacity" => &["1"],
        "new_edits" | "inclusive_end" | "reduce" => &["false"],
        "update" => &["false", "lazy"],
        "stale" => &["ok"],
        "expand" | "collapse" => &["[\"rosebud\"]", "[\"open\"]"],
        "resort" => &["word"],
        "resort_order" => &["desc"],
        "from" | "code" | "state" | "iss" | "error" => &["x"],
        "next" => &["true", "/db"],
        "emailaddress" | "Email" | "email" => &["ada@acme.example", "nobody@acme.example"],
        "Protocol" | "protocol" => &["AutodiscoverV1", "x"],
        "folder" => &["Inbox"],
        "read_by" | "person" => &["bob", "ada"],
        "volume" | "owner" | "site" => &["x"],
        "kind" => &["room"],
        "batch" => &["ok"],
        "w" => &["1"],
        "partitioned" => &["true", "x"],
        "states" => &["running", "failed,completed"],
        "revs" | "revs_info" | "conflicts" | "deleted_conflicts" | "local_seq" | "latest" | "attachments"
        | "meta" | "descending" | "include_docs" | "update_seq" | "group" | "categories" | "basic"
        | "pictures" | "snippets" | "exact_total" | "all_words" => &["true"],
        other => panic!("the matrix does not know what the parameter {other} may be"),
    }
}

/// Which of a route's parameters go together without excluding each other.
const TOGETHER: [&str; 14] = [
    "revs",
    "revs_info",
    "conflicts",
    "deleted_conflicts",
    "local_seq",
    "latest",
    "attachments",
    "meta",
    "include_docs",
    "style",
    "descending",
    "update_seq",
    "open_revs",
    "categories",
];

fn queries_of(parameters: &[&str], all: bool) -> Vec<String> {
    let encoded = |name: &str, value: &str| {
        let value: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
        format!("{name}={value}")
    };
    let mut queries = vec![String::new()];
    let together: Vec<String> = TOGETHER
        .iter()
        .filter(|name| parameters.contains(name))
        .map(|name| encoded(name, values_of(name)[0]))
        .collect();
    queries.push(format!("?{}", together.join("&")));
    for name in parameters.iter().filter(|_| all) {
        for value in values_of(name) {
            let also = match *name {
                // A feed that waits ends soon.
                "databases" => "&timeout=1",
                "feed" => "&timeout=1&include_docs=true&style=all_docs",
                "filter" => "&include_docs=true&style=all_docs&view=j%2Fwords",
                "rev" => "&attachments=true&latest=true",
                "q" => "&include_docs=true&snippets=true&exact_total=true",
                _ => "",
            };
            queries.push(format!("?{}{also}", encoded(name, value)));
        }
    }
    if parameters.contains(&"q") {
        // Nothing is answered that looks for nothing.
        let words = |query: &String| {
            format!("{query}{}q=rose%2A%20OR%20open", if query.is_empty() { "?" } else { "&" })
        };
        let asked: Vec<String> = queries.iter().filter(|query| !query.contains("q=")).map(words).collect();
        queries.extend(asked);
    }
    queries
}

/// Bodies of a request to a route.
#[allow(clippy::too_many_lines, reason = "one arm a route")]
fn bodies_of(method: &str, path: &str) -> Vec<Value> {
    let ids = || HIDDEN_IDS.iter().chain(&SHOWN_IDS);
    let stub = json!({"rosebud.txt": {"stub": true}});
    let document = |id: &str, revision: Option<&str>| {
        let mut json = json!({"_id": id, "mine": true, "_attachments": stub});
        if let Some(revision) = revision {
            json["_rev"] = revision.into();
        }
        json
    };
    let page = json!({"include_docs": true, "conflicts": true, "attachments": true});
    match (method, path) {
        ("GET" | "DELETE" | "COPY", _) => vec![Value::Null],
        (_, "/" | "/_dav" | "/_dav/{dav_path...}") => vec![Value::Null],
        (_, "/.well-known/caldav" | "/.well-known/carddav") => vec![Value::Null],
        (_, "/_dbs_info") => vec![json!({"keys": ["db", "none"]})],
        (_, "/_transaction") => {
            // As the databases are called in the tests, so that one of them is meant.
            let databases = LEVELS.map(|level| match level {
                "" => "db-anonymous".to_owned(),
                level => format!("db-{}", level.replace('_', "-")),
            });
            let edit = |database: &String, doc: Value| {
                json!({"conditions": [{"db": database, "id": "hid-s", "exists": true}],
                    "edits": [{"db": database, "doc": doc}]})
            };
            let selector = |database: &String| {
                json!({"conditions": [{"db": database, "id": "hid-s", "selector": {"word": "rosebud"}}],
                    "edits": [{"db": database, "doc": {"_id": "mine"}}]})
            };
            let bodies = databases.iter().flat_map(|database| {
                [
                    edit(database, document("hid-s", Some(HIDDEN))),
                    selector(database),
                    json!({"edits": [{"db": database, "doc": document("hid-s", None)}]}),
                    json!({"edits": [{"db": database, "doc": document("hid-t", None)}]}),
                ]
            });
            bodies.collect()
        }
        (_, "/_session") => vec![json!({"name": "bob", "password": "secret"})],
        (_, "/_node/{node}/_config/{section}/{key}") => vec![json!("x")],
        (
            _,
            "/_session/passkey_options" | "/_credentials/recovery_codes" | "/_credentials/passkey_options",
        ) => {
            vec![json!({}), json!({"step": "AAAA"})]
        }
        (_, path) if path == "/_session/totp" || path.starts_with("/_credentials") => vec![
            json!({"name": "phone", "protocols": ["mail"], "begun": "AAAA", "code": "123456", "step": "AAAA"}),
            json!({"name": "key", "challenge": "AAAA", "passkey": {"rawId": "AAAA", "type": "public-key"}}),
            json!({"protocols": 5}),
        ],
        (_, "/_console") => vec![json!({"command": "show who"})],
        (_, "/_nouveau_analyze") => vec![json!({"analyzer": "standard", "text": "roses"})],
        // Into a database of their own, or into the same one.
        (_, "/_replicate") => vec![
            json!({"source": "db", "target": "db-copied", "create_target": true}),
            json!({"source": "db", "target": "db-of-all", "continuous": true}),
            json!({"source": "db", "target": "db-of-all", "selector": {"word": {"$gt": null}}}),
            json!({"source": "http://127.0.0.1:1/db", "target": "db-of-all", "cancel": true}),
        ],
        (
            _,
            "/{db}/_compact" | "/{db}/_compact/{ddoc}" | "/{db}/_view_cleanup" | "/{db}/_nouveau_cleanup",
        ) => {
            vec![json!({})]
        }
        (_, "/_mail_rules" | "/_mail_rules/server") => vec![json!({"rules": []})],
        (_, "/_mail_scripts") => vec![json!({"active": "", "scripts": {}})],
        (_, "/{db}/_ensure_full_commit") => vec![json!({})],
        (_, "/{db}/_purge") => vec![json!({"hid-s": [HIDDEN], "half-w": [LOW]})],
        ("PUT", "/{db}") => vec![Value::Null],
        ("POST", "/{db}") => ids().map(|id| document(id, None)).collect(),
        (_, path) if path.ends_with("/queries") => {
            vec![json!({"queries": [{}, page, {"keys": HIDDEN_IDS}, {"key": SECRET}]})]
        }
        (
            _,
            "/{db}/_all_docs"
            | "/{db}/_design_docs"
            | "/{db}/_local_docs"
            | "/{db}/_design/{ddoc}/_view/{view}",
        ) => {
            vec![page, json!({"keys": HIDDEN_IDS, "include_docs": true}), json!({"keys": [SECRET, [SECRET]]})]
        }
        (_, "/{db}/_bulk_docs") => {
            let all: Vec<Value> = ids()
                .flat_map(|id| {
                    [None, Some(HIDDEN), Some(LOW), Some(HIGH)].map(|revision| document(id, revision))
                })
                .collect();
            let child = |id: &&str| {
                json!({"_id": id, "_rev": "3-ab", "_attachments": stub,
                    "_revisions": {"start": 3, "ids": ["ab", "fadefadefadefadefadefadefadefade"]}})
            };
            let brought: Vec<Value> = ids().map(child).collect();
            vec![json!({"docs": all}), json!({"docs": brought, "new_edits": false})]
        }
        (_, "/{db}/_bulk_get") => {
            let named = ids().flat_map(|id| [json!({"id": id}), json!({"id": id, "rev": HIDDEN})]);
            vec![json!({"docs": named.collect::<Vec<_>>()})]
        }
        (_, "/{db}/_revs_diff" | "/{db}/_missing_revs") => {
            let asked: serde_json::Map<String, Value> =
                ids().map(|id| ((*id).to_owned(), json!([HIDDEN, "9-aa"]))).collect();
            vec![Value::Object(asked)]
        }
        (_, "/{db}/_changes") => {
            vec![json!({"doc_ids": HIDDEN_IDS}), json!({"selector": {"word": {"$gt": null}}}), json!({})]
        }
        (_, "/{db}/_find" | "/{db}/_explain") => vec![
            json!({"selector": {"word": {"$gt": null}}, "conflicts": true, "execution_stats": true}),
            json!({"selector": {"_id": {"$gt": null}}, "fields": ["_id", "word", "_conflicts"]}),
            json!({"selector": {"mine": {"$exists": false}}}),
            json!({"selector": {"$text": "rose* OR open"}, "execution_stats": true}),
        ],
        (_, "/{db}/_fulltext" | "/{db}/_design/{ddoc}/_nouveau/{textindex}") => vec![
            json!({"q": "rose* OR open", "include_docs": true, "snippets": true, "exact_total": true, "counts": ["word"]}),
        ],
        (_, "/{db}/_index") => vec![json!({"index": {"fields": ["other"]}, "ddoc": "n", "name": "n"})],
        (_, "/{db}/_index/_bulk_delete") => vec![json!({"docids": ["_design/n"]})],
        (_, "/{db}/_revs_limit" | "/{db}/_purged_infos_limit") => vec![json!(1000)],
        (_, "/{db}/_security" | "/{db}/_properties") => vec![json!({})],
        // Nobody may hand over what they have not.
        (_, "/{db}/_acl") => vec![json!({"default": {"level": "manager"}})],
        ("POST", "/{db}/_folder/{folder}") => vec![json!({"add": HIDDEN_IDS}), json!({"remove": HIDDEN_IDS})],
        ("PUT", "/{db}/_folder/{folder}") => vec![json!({})],
        (_, "/{db}/_unread") => {
            vec![json!({"read": HIDDEN_IDS, "unread": SHOWN_IDS}), json!({"folder": "Inbox", "read": true})]
        }
        (_, "/{db}/_local/{localid}") => vec![json!({"mine": true})],
        (_, "/{db}/_design/{ddoc}") => vec![json!({"language": "formula", "views": {}})],
        (
            _,
            "/{db}/_design/{ddoc}/_update/{handler}" | "/{db}/_design/{ddoc}/_update/{handler}/{target...}",
        ) => {
            vec![json!({"_id": "hid-s"}), json!({"_id": "half-w", "_rev": HIDDEN})]
        }
        (_, "/{db}/_design/{ddoc}/{function...}" | "/{db}/{special...}") => vec![Value::Null],
        (_, "/{db}/{docid}/{attname...}" | "/{db}/_design/{ddoc}/{attname...}") => vec![json!("mine")],
        (_, "/autodiscover/autodiscover.xml" | "/Autodiscover/Autodiscover.xml") => vec![json!("no XML")],
        (_, "/{db}/{docid}") => {
            let mine = |revision: Option<&str>| {
                let mut json = document("x", revision);
                json.as_object_mut().unwrap().remove("_id");
                json
            };
            vec![mine(None), mine(Some(HIDDEN)), mine(Some(LOW)), mine(Some(HIGH))]
        }
        (method, path) => panic!("the matrix does not know what to send by {method} {path}"),
    }
}

/// A database in which bob has a level, with all kinds of documents.
async fn filled(server: &Server, database: &str, level: &str) {
    let entry = if level.is_empty() { "reader" } else { level };
    let list = json!({"default": {"level": "reader"},
        "entries": [{"name": "bob", "kind": "person", "level": entry}]});
    filled_for(server, database, list).await;
}

/// A database with a list in which ada reads.
async fn filled_for(server: &Server, database: &str, list: Value) {
    server.ask("PUT", &format!("/{database}"), ()).await.expect(201);
    server.ask("PUT", &format!("/{database}/_acl"), list).await.expect(201);
    server.ask("PUT", &format!("/{database}/_folder/Inbox"), json!({})).await.expect(201);
    let attachment = json!({"rosebud.txt": {"content_type": "text/plain", "data": "cm9zZWJ1ZA=="}});
    let secret = |id: &str| json!({"_id": id, "_rev": HIDDEN, "Readers": ["ada"], "word": SECRET, "_attachments": attachment});
    let open = |id: &str, revision: &str| json!({"_id": id, "_rev": revision, "word": "open"});
    let mut gone = secret("hid-t");
    gone["_deleted"] = true.into();
    let settled = json!({"_id": "hid-c", "_rev": "2-fadefadefadefadefadefadefadefadf", "_deleted": true});
    let documents = json!([
        secret("hid-s"),
        secret("hid-c"),
        settled,
        gone,
        open("open", LOW),
        secret("half-w"),
        open("half-w", LOW),
        secret("half-l"),
        open("half-l", HIGH),
    ]);
    let body = json!({"docs": documents, "new_edits": false});
    server.ask("POST", &format!("/{database}/_bulk_docs?folder=Inbox"), body).await.expect(201);
    let formula = json!({"language": "formula", "views": {"words": {"columns": [
        {"title": "word", "formula": "word", "category": true},
        {"title": "id", "formula": "@DocumentUniqueID", "sort": "asc", "resort": "both"}]}}});
    server.ask("PUT", &format!("/{database}/_design/f"), formula).await.expect(201);
    let script = "function (doc) { emit(doc.word, doc.word); }";
    let filters = json!({
        "all": "function (doc, req) { return true; }",
        // What a function is given comes to light where it fails.
        "told": "function (doc, req) { throw { forbidden: JSON.stringify([doc, req]) }; }",
    });
    let updates = json!({
        "echo": "function (doc, req) { return [null, JSON.stringify([doc, req])]; }",
        "store": "function (doc, req) { return [JSON.parse(req.body), JSON.stringify([doc, req])]; }",
    });
    let views = json!({"words": {"map": script, "reduce": "_count"}});
    let indexed = "function (doc) { index('text', 'default', doc.word, {store: true}); index('string', 'word', doc.word); }";
    let texts = json!({"words": {"index": indexed}});
    let script = json!({"views": views, "filters": filters, "updates": updates, "nouveau": texts});
    let kept = json!({"full_text": true});
    server.ask("PUT", &format!("/{database}/_properties"), kept).await.expect(200);
    server.ask("PUT", &format!("/{database}/_design/j"), script).await.expect(201);
    let index = json!({"index": {"fields": ["word"]}, "ddoc": "m", "name": "words"});
    server.ask("POST", &format!("/{database}/_index"), index).await.expect(200);
    // What somebody else has kept here for themselves.
    let kept = server.ask_as("ada", "PUT", &format!("/{database}/_local/x"), json!({"word": SECRET})).await;
    kept.expect(201);
}

/// Asks one route in all ways that it is listed for; gives how many answers held the secret.
async fn ask_all(
    server: &Server,
    (database, name): (&str, &str),
    route: &scrinium_http::Route,
    (writes, all): (bool, bool),
    found: &mut Vec<String>,
) {
    assert!(LISTED.contains(&route.path), "the matrix does not list the route {}", route.path);
    for method in route.methods.iter().filter(|method| method.writes == writes) {
        let verbs = if method.method == "*" { vec!["GET", "POST"] } else { vec![method.method] };
        for verb in verbs {
            for address in addresses_of(route.path, database) {
                for query in queries_of(method.parameters, all) {
                    for body in bodies_of(verb, route.path) {
                        let asked = format!("{verb} {address}{query} {body}");
                        let answer = match (verb, &body) {
                            ("COPY", _) => {
                                server
                                    .ask_as(
                                        name,
                                        verb,
                                        &format!("{address}{query}"),
                                        [("destination", "copied")],
                                    )
                                    .await
                            }
                            (_, Value::Null) => {
                                server.ask_as(name, verb, &format!("{address}{query}"), ()).await
                            }
                            (_, body) => {
                                server.ask_as(name, verb, &format!("{address}{query}"), body.clone()).await
                            }
                        };
                        check(&asked, &answer, found);
                    }
                }
            }
        }
    }
}

/// An answer may repeat what it was asked, and nothing else of what is hidden.
fn check(asked: &str, answer: &crate::common::Answer, found: &mut Vec<String>) {
    let told = format!("{:?} {}", answer.headers, answer.text());
    let decoded = percent_encoding::percent_decode_str(asked).decode_utf8_lossy().into_owned();
    for trace in TRACES {
        if told.contains(trace) && !decoded.contains(trace) {
            found.push(format!("{decoded}\n    tells {trace}: {} {told}", answer.status));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_route_tells_anybody_what_they_may_not_read() {
    let server = Server::start().await;
    let mut found = Vec::new();
    for level in LEVELS {
        let name = if level.is_empty() { "" } else { "bob" };
        let database = format!("db-{}", if level.is_empty() { "anonymous" } else { level }.replace('_', "-"));
        filled(&server, &database, level).await;
        let mut round = Vec::new();
        for writes in [false, true, false] {
            for route in scrinium_http::routes() {
                // The database and its list stay as they are until the end.
                if !(writes && matches!(route.path, "/{db}/_acl" | "/{db}" | "/_session")) {
                    ask_all(&server, (&database, name), route, (writes, !writes), &mut round).await;
                }
            }
        }
        found.extend(round.into_iter().map(|told| format!("{level}: {told}")));
    }
    for (number, (name, default, group)) in OTHERS.into_iter().enumerate() {
        let database = format!("db-{name}-{number}");
        let ada = json!({"name": "ada", "kind": "person", "level": "reader"});
        let entry = json!({"name": group, "kind": "group", "level": "editor"});
        let entries = if group.is_empty() { vec![ada] } else { vec![ada, entry] };
        filled_for(&server, &database, json!({"default": {"level": default}, "entries": entries})).await;
        let status = server.ask_as(name, "GET", &format!("/{database}/open"), ()).await.status;
        assert_eq!(status.is_success(), !group.is_empty(), "{name} {group}");
        let mut round = Vec::new();
        for (route, writes) in
            scrinium_http::routes().iter().flat_map(|route| [(route, false), (route, true)])
        {
            if !(writes && matches!(route.path, "/{db}/_acl" | "/{db}" | "/_session")) {
                ask_all(&server, (&database, name), route, (writes, false), &mut round).await;
            }
        }
        found.extend(round.into_iter().map(|told| format!("{name} {group}: {told}")));
    }
    assert!(
        found.is_empty(),
        "{} answers tell what is hidden:\n{}",
        found.len(),
        found[..found.len().min(12)].join("\n")
    );
}

/// What writing clients of CouchDB add to any request, whether the route knows it or not.
const WRITERS_ADD: [&str; 6] = ["rev", "new_edits", "batch", "w", "folder", "read_by"];

/// Where a COPY may want to go.
const DESTINATIONS: [&str; 8] = [
    "copied",
    "hid-s",
    "hid-s?rev=2-fadefadefadefadefadefadefadefade",
    "hid-t",
    "half-w?rev=2-00000000000000000000000000000000",
    "open?rev=2-00000000000000000000000000000000",
    "_design/copied",
    "_local/copied",
];

/// A query and headers to go with a request that writes.
type Variation = (String, Vec<(&'static str, String)>);

/// Each parameter and each header alone, with each value.
fn variations_of(method: &scrinium_http::MethodRoute, verb: &str) -> Vec<Variation> {
    let names: BTreeSet<&str> = method.parameters.iter().chain(&WRITERS_ADD).copied().collect();
    let mut variations: Vec<Variation> = Vec::new();
    for name in names {
        for value in values_of(name) {
            let value: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
            variations.push((format!("?{name}={value}"), Vec::new()));
        }
    }
    for revision in [HIDDEN, LOW] {
        variations.push((String::new(), vec![("if-match", format!("\"{revision}\""))]));
        variations.push((format!("?new_edits=false&rev={revision}"), Vec::new()));
    }
    variations.push((String::new(), vec![("x-couch-full-commit", "false".to_owned())]));
    if verb == "COPY" {
        variations.iter_mut().for_each(|(_, headers)| headers.push(("destination", "copied".to_owned())));
        for destination in DESTINATIONS {
            for query in ["", "?rev=2-fadefadefadefadefadefadefadefade", "?new_edits=false"] {
                variations.push((query.to_owned(), vec![("destination", destination.to_owned())]));
            }
        }
    }
    variations
}

/// Method, address with its query, headers and body of a request.
type VariedRequest = (&'static str, String, Vec<(&'static str, String)>, Value);

/// Requests of all writing routes with all that can be varied of them.
fn writes_of(database: &str) -> Vec<VariedRequest> {
    let mut requests = Vec::new();
    // A manager may hand the database to others: that is no leak.
    for route in scrinium_http::routes().iter().filter(|route| route.path != "/{db}/_acl") {
        for method in route.methods.iter().filter(|method| method.writes) {
            let verb = if method.method == "*" { "POST" } else { method.method };
            for address in addresses_of(route.path, database) {
                for (query, headers) in variations_of(method, verb) {
                    // One that names no revision, and one that names the hidden one.
                    for body in bodies_of(verb, route.path).into_iter().take(2) {
                        requests.push((verb, format!("{address}{query}"), headers.clone(), body));
                    }
                }
            }
        }
    }
    requests
}

/// What is hidden, as ada finds it.
async fn hidden_state(server: &Server, database: &str) -> Vec<String> {
    let mut state = Vec::new();
    for id in ["hid-s", "hid-c", "hid-t", "half-w", "half-l"] {
        let found =
            server.ask_as("ada", "GET", &format!("/{database}/{id}?rev={HIDDEN}&revs=true"), ()).await;
        state.push(format!("{} {}", found.status, found.text()));
    }
    state.push(server.ask_as("ada", "GET", &format!("/{database}/_local/x"), ()).await.expect(200).text());
    state
}

#[tokio::test(flavor = "multi_thread")]
async fn no_parameter_of_a_write_tells_or_changes_what_is_hidden() {
    let server = Server::start().await;
    for level in LEVELS {
        let name = if level.is_empty() { "" } else { "bob" };
        let database = format!("db-{}", if level.is_empty() { "anonymous" } else { level }.replace('_', "-"));
        filled(&server, &database, level).await;
        let before = hidden_state(&server, &database).await;
        let open = server.ask("GET", &format!("/{database}/open"), ()).await.expect(200).text();
        let mut found = Vec::new();
        for some in writes_of(&database).chunks(32) {
            let answers = some.iter().map(|(verb, address, headers, body)| {
                let mut headers: Vec<(&str, &str)> =
                    headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                headers.push(("content-type", "application/json"));
                let body = if body.is_null() { String::new() } else { body.to_string() };
                let server = &server;
                async move { server.ask_as(name, verb, address, (&headers[..], body)).await }
            });
            for ((verb, address, headers, body), answer) in some.iter().zip(join_all(answers).await) {
                assert!(
                    answer.status != 500,
                    "{level}: {verb} {address} {headers:?} {body}: {}",
                    answer.text()
                );
                check(&format!("{verb} {address} {headers:?} {body}"), &answer, &mut found);
            }
        }
        assert!(found.is_empty(), "{level}: {}", found[..found.len().min(12)].join("\n"));
        assert_eq!(hidden_state(&server, &database).await, before, "{level}");
        if matches!(level, "" | "no_access" | "depositor" | "reader" | "author") {
            let now = server.ask("GET", &format!("/{database}/open"), ()).await.expect(200).text();
            assert_eq!(now, open, "{level}");
        }
    }
}

/// The question is a good one: who may read everything finds it by nearly every route that reads documents.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_read_it_finds_it_by_the_same_routes() {
    let server = Server::start().await;
    filled(&server, "db", "reader").await;
    let mut finding = BTreeSet::new();
    for route in scrinium_http::routes() {
        let mut found = Vec::new();
        ask_all(&server, ("db", "ada"), route, (false, false), &mut found).await;
        if found.iter().any(|told| told.contains("tells rosebud") || told.contains("tells hid-")) {
            finding.insert(route.path);
        }
    }
    for path in [
        "/{db}/_all_docs",
        "/{db}/_bulk_get",
        "/{db}/_changes",
        "/{db}/_find",
        "/{db}/_fulltext",
        "/{db}/_design/{ddoc}/_nouveau/{textindex}",
        "/{db}/_folder/{folder}",
        "/{db}/_folder/{folder}/_members",
        "/{db}/_design/{ddoc}/_view/{view}",
        "/{db}/{docid}",
        "/{db}/_local/{localid}",
        "/{db}/_local_docs",
    ] {
        assert!(finding.contains(path), "{path} finds nothing: {finding:?}");
    }
}

//! Files of a person for programs that mount them: WebDAV, classes 1 and 2 (RFC 4918), below `/_dav/files/{person}/`.

mod locks;
mod nodes;
mod path;
mod properties;
mod transfer;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, LAST_MODIFIED};
use http::{Response, StatusCode};
use scrinium_database::{Edit, EditMode, Updated, new_id};
use scrinium_dav::answer::{Question, error, response};
use scrinium_dav::condition::{Verdict, check};
use scrinium_dav_wire::DAV;
use scrinium_dav_wire::header::{Depth, IfHeader, parse_lock_token, parse_timeout};
use scrinium_dav_wire::multistatus::{MultistatusWriter, PropertyStatus, ResourceResponse};
use scrinium_dav_wire::request::{PropFind, PropertyChange, PropertyUpdate};
use scrinium_dav_wire::xml::{Element, Name, XmlLimits};
use scrinium_http::{DavOutcome, DavRequest, DavStoring, DavUpdate};

use crate::home::Home;
use crate::propfind::ANSWER_BYTES_MAX;
use crate::refusal::{Refusal, Result, too_many};
use crate::service::{DavService, empty, set_tag};
pub(crate) use locks::Locks;
use locks::{Lock, OWNER_BYTES_MAX, Unlocked, holds, submitted, timeout_s};
use nodes::{
    FILE_BYTES_MAX, NewContent, Node, children, content, deletion, edit, find, folder, make, set_properties,
};
use path::FilePath;
use properties::{Told, http_date, is_protected, lock_discovery};

/// What is announced (RFC 4918, section 10.1).
const CLASSES: &str = "1, 2, 3";

const METHODS: &str = "OPTIONS, GET, HEAD, PUT, DELETE, PROPFIND, PROPPATCH, MKCOL, COPY, MOVE, LOCK, UNLOCK";

/// Deleted in one batch.
const DELETED_AT_ONCE: usize = 400;

/// A media type is not longer.
const MEDIA_TYPE_BYTES_MAX: usize = 200;

/// Whether a request is about files.
pub(crate) fn is_about_files(request: &DavRequest) -> bool {
    FilePath::is_meant(&request.path)
}

/// A request about a file or a collection of files.
struct FileRequest<'r> {
    path: FilePath,
    home: Home,
    request: &'r DavRequest,
    condition: Option<IfHeader>,
    now_ms: u64,
}

impl FileRequest<'_> {
    fn header(&self, name: &str) -> Option<&str> {
        self.request.headers.get(name).and_then(|value| value.to_str().ok())
    }

    fn depth(&self) -> Depth {
        self.header("depth").and_then(Depth::parse).unwrap_or(Depth::Infinity)
    }

    fn asker(&self) -> &str {
        self.request.identity.name().unwrap_or_default()
    }

    /// # Errors
    /// 404
    fn node(&self) -> Result<Node> {
        find(&self.home, &self.path)?.ok_or_else(Refusal::missing)
    }

    /// # Errors
    /// 412 if the resource is not as If-Match and If-None-Match want it.
    fn check_tags(&self, node: Option<&Node>, reads: bool) -> Result<Verdict> {
        let tag = node.map(|node| node.tag().unwrap_or_default());
        match check(self.header("if-match"), self.header("if-none-match"), tag, reads) {
            Verdict::Failed => Err(Refusal::condition_failed()),
            verdict => Ok(verdict),
        }
    }
}

fn answered(status: StatusCode) -> DavOutcome {
    DavOutcome::Answered(with_classes(empty(status)))
}

fn with_classes(mut response: Response<Bytes>) -> Response<Bytes> {
    response.headers_mut().insert(HeaderName::from_static("dav"), HeaderValue::from_static(CLASSES));
    response
}

fn xml(status: StatusCode, text: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, crate::refusal::XML);
    with_classes(response)
}

fn bad(reason: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, reason)
}

fn no_parent() -> Refusal {
    Refusal::new(StatusCode::CONFLICT, "The collection is not there; make it first.")
}

impl DavService {
    /// Answers a request about files.
    pub(crate) fn files(&self, request: &DavRequest) -> Result<DavOutcome> {
        let path = FilePath::parse(&request.path).ok_or_else(Refusal::missing)?;
        if request.method.as_str() == "OPTIONS" {
            let mut response = with_classes(empty(StatusCode::OK));
            response.headers_mut().insert(http::header::ALLOW, HeaderValue::from_static(METHODS));
            return Ok(DavOutcome::Answered(response));
        }
        let home = self.home(&path.person, &request.identity)?;
        let root = FilePath { person: path.person.clone(), names: Vec::new() };
        if home.is_owner && home.is_editor() && folder(&home, &root)?.is_none() {
            make(&home, &root)?;
        }
        let text = request.headers.get("if").map(|value| value.to_str().unwrap_or_default());
        let condition =
            text.map(|text| IfHeader::parse(text).ok_or_else(|| bad("The header If cannot be read.")));
        let asked =
            FileRequest { path, home, request, condition: condition.transpose()?, now_ms: self.now_ms() };
        self.check_condition(&asked)?;
        match request.method.as_str() {
            "GET" => Self::get_file(&asked),
            "PROPFIND" => self.find_file_properties(&asked),
            "PUT" => self.put_file(&asked),
            "DELETE" => self.delete_files(&asked),
            "MKCOL" => self.make_files(&asked),
            "PROPPATCH" => self.change_file_properties(&asked),
            "COPY" => self.copy_files(&asked),
            "MOVE" => self.move_files(&asked),
            "LOCK" => self.lock_file(&asked),
            "UNLOCK" => self.unlock_file(&asked),
            _ => Err(Refusal::not_allowed("The method is not known here.")),
        }
    }

    /// # Errors
    /// 412 if nothing of the header If is so.
    fn check_condition(&self, asked: &FileRequest<'_>) -> Result<()> {
        let Some(condition) = &asked.condition else { return Ok(()) };
        let tag_of = |path: &FilePath| -> Result<Option<String>> {
            if path.person != asked.path.person {
                return Ok(None);
            }
            Ok(find(&asked.home, path)?.and_then(|node| node.tag().map(str::to_owned)))
        };
        let is_so = holds(condition, &asked.path, (&self.locks, asked.now_ms), tag_of)?;
        if is_so { Ok(()) } else { Err(Refusal::condition_failed()) }
    }

    /// # Errors
    /// 423 if a lock holds for the resource, or what lies below it, whose token the client has not brought, or which is somebody else's.
    fn check_locks(&self, asked: &FileRequest<'_>, path: &FilePath, with_below: bool) -> Result<()> {
        let tokens = submitted(asked.condition.as_ref());
        let is_brought = |lock: &Lock| lock.holder == asked.asker() && tokens.contains(&lock.token.as_str());
        let own = self.locks.of(path, asked.now_ms);
        // Of shared locks one is enough.
        let in_the_way = if own.iter().any(is_brought) { None } else { own.first().cloned() };
        let below = if with_below { self.locks.below(path, asked.now_ms) } else { Vec::new() };
        match in_the_way.or_else(|| below.into_iter().find(|lock| !is_brought(lock))) {
            None => Ok(()),
            Some(lock) => {
                let href = Element::new(DAV, "href").with_text(&lock.path.href(false));
                let reason = "The resource is locked.";
                Err(Refusal::of_condition(StatusCode::LOCKED, (DAV, "lock-token-submitted"), reason)
                    .with(href))
            }
        }
    }

    /// The same for what comes or goes, which changes the collection that it lies in.
    fn check_locks_around(&self, asked: &FileRequest<'_>, path: &FilePath) -> Result<()> {
        if let Some((above, _)) = path.split() {
            self.check_locks(asked, &above, false)?;
        }
        self.check_locks(asked, path, true)
    }

    fn get_file(asked: &FileRequest<'_>) -> Result<DavOutcome> {
        let node = asked.node()?;
        let Node::File(file) = &node else {
            return Err(Refusal::not_allowed("A collection is read with PROPFIND."));
        };
        if asked.check_tags(Some(&node), true)? == Verdict::NotModified {
            let mut response = empty(StatusCode::NOT_MODIFIED);
            set_tag(&mut response, &file.revision);
            return Ok(DavOutcome::Answered(response));
        }
        let mut response = Response::new(Bytes::from(content(&asked.home, file)?));
        set_tag(&mut response, &file.revision);
        let headers = response.headers_mut();
        let kind = HeaderValue::try_from(file.content_type()).ok();
        let date = HeaderValue::try_from(http_date(file.times_ms()[1])).ok();
        for (name, value) in [(CONTENT_TYPE, kind), (LAST_MODIFIED, date)] {
            if let Some(value) = value {
                headers.insert(name, value);
            }
        }
        // Somebody's page is for no browser to run.
        headers.insert(
            http::header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'; sandbox"),
        );
        headers.insert(http::header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        Ok(DavOutcome::Answered(response))
    }

    fn find_file_properties(&self, asked: &FileRequest<'_>) -> Result<DavOutcome> {
        let question = Question::from(PropFind::parse(&asked.request.body, XmlLimits::default())?);
        let node = asked.node()?;
        let depth = asked.depth();
        if depth == Depth::Infinity && node.is_collection() {
            let reason = "Ask with the header Depth: 0 or 1.";
            return Err(Refusal::forbidden((DAV, "propfind-finite-depth"), reason));
        }
        let mut writer = MultistatusWriter::default();
        let mut push = |path: &FilePath, node: &Node| {
            if writer.bytes() >= ANSWER_BYTES_MAX {
                return Err(too_many());
            }
            let locks = self.locks.of(path, asked.now_ms);
            let told = Told {
                node,
                asker: asked.asker(),
                locks: &locks,
                now_ms: asked.now_ms,
                kept: node.properties(),
            };
            writer.push(&response(path.href(node.is_collection()), &question, &told, false));
            Ok(())
        };
        push(&asked.path, &node)?;
        if let (Node::Collection(info), Depth::One) = (&node, depth) {
            for (path, child) in children(&asked.home, &asked.path, info)? {
                push(&path, &child)?;
            }
        }
        Ok(DavOutcome::Answered(xml(StatusCode::MULTI_STATUS, writer.finish(None))))
    }

    fn put_file(&self, asked: &FileRequest<'_>) -> Result<DavOutcome> {
        asked.home.check_editor()?;
        let (above, name) =
            asked.path.split().ok_or_else(|| Refusal::not_allowed("This is a collection."))?;
        let folder = folder(&asked.home, &above)?.ok_or_else(no_parent)?;
        let node = find(&asked.home, &asked.path)?;
        let current = match &node {
            Some(Node::Collection(_)) => return Err(Refusal::not_allowed("This is a collection.")),
            Some(Node::File(file)) => Some(file),
            None => None,
        };
        asked.check_tags(node.as_ref(), false)?;
        match current {
            Some(_) => self.check_locks(asked, &asked.path, false)?,
            None => self.check_locks_around(asked, &asked.path)?,
        }
        if asked.request.body.len() as u64 > FILE_BYTES_MAX {
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "The file is too long."));
        }
        let kind = asked.header("content-type").filter(|kind| kind.len() <= MEDIA_TYPE_BYTES_MAX);
        let new = NewContent {
            bytes: &asked.request.body,
            content_type: kind.unwrap_or("application/octet-stream"),
        };
        let edit = edit(&asked.home, (&folder, name), current, &new, None)?;
        let status = if current.is_some() { StatusCode::NO_CONTENT } else { StatusCode::CREATED };
        let update = asked.home.database.update(vec![edit], EditMode::Interactive, &asked.home.access)?;
        let finish =
            Box::new(move |stored: scrinium_database::Result<Vec<scrinium_database::Result<Updated>>>| {
                let stored =
                    stored.and_then(|all| all.into_iter().collect::<scrinium_database::Result<Vec<_>>>());
                match stored {
                    Ok(_) => with_classes(empty(status)),
                    Err(error) => Refusal::from(error).into_response(),
                }
            });
        Ok(DavOutcome::Storing(DavStoring { update: DavUpdate::Alone(update), finish }))
    }

    fn delete_files(&self, asked: &FileRequest<'_>) -> Result<DavOutcome> {
        asked.home.check_editor()?;
        let node = asked.node()?;
        if asked.path.names.is_empty() {
            return Err(Refusal::forbidden((DAV, "need-privileges"), "This cannot be deleted."));
        }
        if node.is_collection() && asked.depth() != Depth::Infinity {
            return Err(bad("A collection is deleted with the header Depth: infinity."));
        }
        asked.check_tags(Some(&node), false)?;
        self.check_locks_around(asked, &asked.path)?;
        delete_tree(&asked.home, &asked.path, &node)?;
        self.locks.remove_all(&asked.path);
        Ok(answered(StatusCode::NO_CONTENT))
    }

    fn make_files(&self, asked: &FileRequest<'_>) -> Result<DavOutcome> {
        asked.home.check_editor()?;
        if !asked.request.body.is_empty() {
            return Err(Refusal::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "A collection of files is made without a body.",
            ));
        }
        if find(&asked.home, &asked.path)?.is_some() {
            return Err(Refusal::not_allowed("There is something under this path already."));
        }
        let (above, _) = asked.path.split().ok_or_else(Refusal::missing)?;
        folder(&asked.home, &above)?.ok_or_else(no_parent)?;
        self.check_locks_around(asked, &asked.path)?;
        make(&asked.home, &asked.path)?;
        Ok(answered(StatusCode::CREATED))
    }

    fn change_file_properties(&self, asked: &FileRequest<'_>) -> Result<DavOutcome> {
        let PropertyUpdate(changes) = PropertyUpdate::parse(&asked.request.body, XmlLimits::default())?;
        asked.home.check_editor()?;
        let node = asked.node()?;
        self.check_locks(asked, &asked.path, false)?;
        let names = |is_meant: &dyn Fn(&Name) -> bool| -> Vec<Element> {
            changes.iter().map(name_of).filter(|name| is_meant(name)).map(Element::named).collect()
        };
        let part = |status: StatusCode, properties, error| PropertyStatus {
            status: status.as_u16(),
            properties,
            error,
        };
        let refused = names(&is_protected);
        let parts = if refused.is_empty() {
            let mut kept = node.properties();
            for change in &changes {
                kept.retain(|property| property.name != *name_of(change));
                if let PropertyChange::Set(property) = change {
                    kept.push(property.clone());
                }
            }
            if let Some(edit) = set_properties(&asked.home, &node, &kept)? {
                store(&asked.home, vec![edit])?;
            }
            vec![part(StatusCode::OK, names(&|_| true), None)]
        } else {
            // All or nothing (RFC 4918, section 9.2).
            let condition = error((DAV, "cannot-modify-protected-property"));
            let others = names(&|name| !is_protected(name));
            let mut parts = vec![part(StatusCode::FORBIDDEN, refused, Some(condition))];
            if !others.is_empty() {
                parts.push(part(StatusCode::FAILED_DEPENDENCY, others, None));
            }
            parts
        };
        let mut writer = MultistatusWriter::default();
        let hrefs = vec![asked.path.href(node.is_collection())];
        writer.push(&ResourceResponse { hrefs, properties: parts, ..ResourceResponse::default() });
        Ok(DavOutcome::Answered(xml(StatusCode::MULTI_STATUS, writer.finish(None))))
    }

    fn lock_file(&self, asked: &FileRequest<'_>) -> Result<DavOutcome> {
        asked.home.check_editor()?;
        let timeout = timeout_s(&asked.header("timeout").map(parse_timeout).unwrap_or_default());
        if asked.request.body.trim_ascii().is_empty() {
            return self.refresh_lock(asked, timeout);
        }
        let info = Element::parse(&asked.request.body, XmlLimits::default())
            .map_err(scrinium_dav_wire::request::BodyError::Xml)?;
        let mut lock = lock_of(asked, &info, timeout)?;
        let node = find(&asked.home, &asked.path)?;
        // Nothing lies below a file.
        lock.is_deep &= node.as_ref().is_none_or(Node::is_collection);
        let (above, name) = match (&node, asked.path.split()) {
            (None, Some((above, name))) => (folder(&asked.home, &above)?.ok_or_else(no_parent)?, name),
            (None, None) => return Err(Refusal::missing()),
            (Some(_), _) => return self.locked(asked, &lock, StatusCode::OK, |_| Ok(())),
        };
        // A name that is locked is a file without bytes (RFC 4918, section 7.3).
        lock.is_deep = false;
        if let Some((above, _)) = asked.path.split() {
            self.check_locks(asked, &above, false)?;
        }
        self.locked(asked, &lock, StatusCode::CREATED, |home| {
            let new = NewContent { bytes: &[], content_type: "application/octet-stream" };
            store(home, vec![edit(home, (&above, name), None, &new, None)?])
        })
    }

    /// Adds a lock, and then does what it needs.
    fn locked(
        &self,
        asked: &FileRequest<'_>,
        lock: &Lock,
        status: StatusCode,
        then: impl FnOnce(&Home) -> Result<()>,
    ) -> Result<DavOutcome> {
        self.locks.add(lock, asked.now_ms).map_err(|unlocked| match unlocked {
            Unlocked::Conflict(path) => {
                let href = Element::new(DAV, "href").with_text(&path.href(false));
                let reason = "Another lock is in the way.";
                Refusal::of_condition(StatusCode::LOCKED, (DAV, "no-conflicting-lock"), reason).with(href)
            }
            Unlocked::TooMany => {
                Refusal::new(StatusCode::INSUFFICIENT_STORAGE, "There are too many locks; give some back.")
            }
        })?;
        if let Err(refusal) = then(&asked.home) {
            self.locks.remove(&lock.path.person, &lock.token);
            return Err(refusal);
        }
        Ok(DavOutcome::Answered(self.lock_answer(asked, status, Some(&lock.token))))
    }

    fn refresh_lock(&self, asked: &FileRequest<'_>, timeout: u32) -> Result<DavOutcome> {
        let tokens = submitted(asked.condition.as_ref());
        let held = self.locks.of(&asked.path, asked.now_ms);
        let own =
            held.iter().find(|lock| lock.holder == asked.asker() && tokens.contains(&lock.token.as_str()));
        let lock = own.and_then(|lock| self.locks.refresh(&asked.path, &lock.token, (timeout, asked.now_ms)));
        lock.ok_or_else(Refusal::condition_failed)?;
        Ok(DavOutcome::Answered(self.lock_answer(asked, StatusCode::OK, None)))
    }

    /// The locks of the resource as they are now (RFC 4918, section 9.10.1).
    fn lock_answer(
        &self,
        asked: &FileRequest<'_>,
        status: StatusCode,
        token: Option<&str>,
    ) -> Response<Bytes> {
        let locks = self.locks.of(&asked.path, asked.now_ms);
        let body = Element::new(DAV, "prop").with(lock_discovery(&locks, asked.now_ms));
        let mut response = xml(status, body.write());
        if let Some(value) = token.and_then(|token| HeaderValue::try_from(format!("<{token}>")).ok()) {
            response.headers_mut().insert(HeaderName::from_static("lock-token"), value);
        }
        response
    }

    fn unlock_file(&self, asked: &FileRequest<'_>) -> Result<DavOutcome> {
        asked.home.check_editor()?;
        let token = asked.header("lock-token").and_then(parse_lock_token);
        let token = token.ok_or_else(|| bad("The header Lock-Token names the lock."))?;
        let held = self.locks.of(&asked.path, asked.now_ms);
        let Some(lock) = held.iter().find(|lock| lock.token == token) else {
            let condition = (DAV, "lock-token-matches-request-uri");
            return Err(Refusal::of_condition(
                StatusCode::CONFLICT,
                condition,
                "There is no such lock here.",
            ));
        };
        // The owner of the files takes away anybody's lock.
        if lock.holder != asked.asker() && !asked.home.is_owner {
            return Err(Refusal::read_only());
        }
        self.locks.remove(&asked.path.person, token);
        Ok(answered(StatusCode::NO_CONTENT))
    }
}

fn name_of(change: &PropertyChange) -> &Name {
    match change {
        PropertyChange::Set(property) => &property.name,
        PropertyChange::Remove(name) => name,
    }
}

/// What LOCK asks for (RFC 4918, section 9.10).
fn lock_of(asked: &FileRequest<'_>, info: &Element, timeout_s: u32) -> Result<Lock> {
    let scope = info.child(DAV, "lockscope");
    let is_exclusive = scope.is_some_and(|scope| scope.child(DAV, "exclusive").is_some());
    let is_shared = scope.is_some_and(|scope| scope.child(DAV, "shared").is_some());
    let is_write = info.child(DAV, "locktype").is_some_and(|kind| kind.child(DAV, "write").is_some());
    if !info.is(DAV, "lockinfo") || !is_write || is_exclusive == is_shared {
        return Err(bad("A lock is for writing, exclusive or shared."));
    }
    let is_deep = match asked.header("depth").map_or(Some(Depth::Infinity), Depth::parse) {
        Some(Depth::Infinity) => true,
        Some(Depth::Zero) => false,
        _ => return Err(bad("A lock has the header Depth: 0 or infinity.")),
    };
    let owner = info.child(DAV, "owner").cloned();
    if owner.as_ref().is_some_and(|owner| owner.write().len() > OWNER_BYTES_MAX) {
        return Err(bad("The owner of a lock is too long."));
    }
    Ok(Lock {
        token: token(asked.now_ms),
        path: asked.path.clone(),
        is_deep,
        is_exclusive,
        holder: asked.asker().to_owned(),
        owner,
        expires_ms: asked.now_ms.saturating_add(u64::from(timeout_s) * 1_000),
    })
}

/// A new name of a lock, in the form of a UUID (RFC 4918, section 6.5).
fn token(now_ms: u64) -> String {
    let hash = blake3::hash(new_id(now_ms).as_bytes()).to_hex();
    let part = |from: usize, to: usize| hash.get(from..to).unwrap_or_default();
    format!("urn:uuid:{}-{}-4{}-8{}-{}", part(0, 8), part(8, 12), part(12, 15), part(15, 18), part(18, 30))
}

/// Stores edits, and waits until they are durable.
fn store(home: &Home, edits: Vec<Edit>) -> Result<()> {
    if edits.is_empty() {
        return Ok(());
    }
    let stored = home.database.update(edits, EditMode::Interactive, &home.access)?.wait()?;
    stored.into_iter().collect::<scrinium_database::Result<Vec<_>>>()?;
    Ok(())
}

/// Takes away a file, or a collection with all that is in it: first what is deepest, so that what is cut off leaves no file without its
/// collection.
fn delete_tree(home: &Home, path: &FilePath, node: &Node) -> Result<()> {
    let mut folders = Vec::new();
    let mut edits = Vec::new();
    let mut waiting = Vec::new();
    match node {
        Node::File(file) => return store(home, vec![deletion(file)]),
        Node::Collection(info) => waiting.push((path.clone(), info.clone())),
    }
    while let Some((path, info)) = waiting.pop() {
        for (child, node) in children(home, &path, &info)? {
            match node {
                Node::Collection(info) => waiting.push((child, info)),
                Node::File(file) => edits.push(deletion(&file)),
            }
            if edits.len() >= DELETED_AT_ONCE {
                store(home, std::mem::take(&mut edits))?;
            }
        }
        folders.push(info.name);
    }
    store(home, edits)?;
    // Those within others were found after them.
    for folder in folders.iter().rev() {
        home.database.drop_folder(folder)?;
    }
    Ok(())
}

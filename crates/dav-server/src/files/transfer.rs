//! COPY and MOVE of files (RFC 4918, sections 9.8 and 9.9).

use http::StatusCode;
use scrinium_database::{Edit, FolderInfo};
use scrinium_dav_wire::header::{Depth, parse_destination, parse_overwrite};
use scrinium_http::DavOutcome;

use super::nodes::{
    FileNode, NewContent, Node, RESOURCES_MAX, children, content, deletion, edit, find, folder, make,
};
use super::path::FilePath;
use super::{FileRequest, answered, bad, delete_tree, no_parent, store};
use crate::home::Home;
use crate::refusal::{Refusal, Result, too_many};
use crate::service::DavService;

/// Copied in one batch.
const BYTES_AT_ONCE: u64 = 16 << 20;
const FILES_AT_ONCE: usize = 200;

/// Where something goes.
struct Destination {
    home: Home,
    path: FilePath,
    /// The collection that it comes into.
    above: FolderInfo,
    /// What is there.
    current: Option<Node>,
}

impl Destination {
    fn status(&self) -> StatusCode {
        if self.current.is_some() { StatusCode::NO_CONTENT } else { StatusCode::CREATED }
    }

    fn name(&self) -> &str {
        self.path.names.last().map_or("", String::as_str)
    }

    /// What is there, if it is a file.
    fn file(&self) -> Option<&FileNode> {
        match &self.current {
            Some(Node::File(file)) => Some(file),
            _ => None,
        }
    }

    /// Takes away what is in the way of something else than a file for a file.
    fn clear(&self) -> Result<()> {
        self.current.as_ref().map_or(Ok(()), |node| delete_tree(&self.home, &self.path, node))
    }
}

impl DavService {
    pub(super) fn copy_files(&self, asked: &FileRequest<'_>) -> Result<DavOutcome> {
        let node = asked.node()?;
        let to = self.destination(asked)?;
        let is_deep = match asked.depth() {
            Depth::Infinity => true,
            Depth::Zero => false,
            Depth::One => return Err(bad("A collection is copied with the header Depth: 0 or infinity.")),
        };
        match &node {
            Node::File(file) => {
                // A collection in the way goes first.
                if to.file().is_none() {
                    to.clear()?;
                }
                store(&to.home, vec![copied(&asked.home, file, &to)?])?;
            }
            Node::Collection(info) => {
                to.clear()?;
                copy_tree((&asked.home, &asked.path, info), (&to.home, &to.path), is_deep)?;
            }
        }
        Ok(answered(to.status()))
    }

    pub(super) fn move_files(&self, asked: &FileRequest<'_>) -> Result<DavOutcome> {
        asked.home.check_editor()?;
        let node = asked.node()?;
        let to = self.destination(asked)?;
        if to.path.person != asked.path.person {
            let reason = "What is moved stays with its owner; copy it instead.";
            return Err(Refusal::new(StatusCode::FORBIDDEN, reason));
        }
        if asked.path.names.is_empty() {
            return Err(Refusal::new(StatusCode::FORBIDDEN, "This cannot be moved."));
        }
        if node.is_collection() && asked.depth() != Depth::Infinity {
            return Err(bad("A collection is moved with the header Depth: infinity."));
        }
        asked.check_tags(Some(&node), false)?;
        self.check_locks_around(asked, &asked.path)?;
        match &node {
            Node::File(file) => {
                if to.file().is_none() {
                    to.clear()?;
                }
                store(&to.home, vec![copied(&asked.home, file, &to)?, deletion(file)])?;
            }
            Node::Collection(info) => {
                to.clear()?;
                to.home.database.rename_folder(&info.name, &to.path.folder())?;
            }
        }
        self.locks.remove_all(&asked.path);
        Ok(answered(to.status()))
    }

    /// Where COPY and MOVE lead, if what is there may go.
    fn destination(&self, asked: &FileRequest<'_>) -> Result<Destination> {
        let wrong = || bad("The header Destination is no path of this server.");
        let (host, path) = asked.header("destination").and_then(parse_destination).ok_or_else(wrong)?;
        let own_host = asked.header("host");
        if host.is_some_and(|host| own_host.is_some_and(|own| !own.eq_ignore_ascii_case(host))) {
            let reason = "The header Destination names another server.";
            return Err(Refusal::new(StatusCode::BAD_GATEWAY, reason));
        }
        let elsewhere = || Refusal::new(StatusCode::FORBIDDEN, "This cannot be put there.");
        let path = FilePath::parse(path).ok_or_else(elsewhere)?;
        if asked.path.holds(&path) || path.holds(&asked.path) {
            let reason = "Source and destination are the same, or one lies in the other.";
            return Err(Refusal::new(StatusCode::FORBIDDEN, reason));
        }
        let home = self.home(&path.person, &asked.request.identity)?;
        home.check_editor()?;
        let (above, _) = path.split().ok_or_else(elsewhere)?;
        let above = folder(&home, &above)?.ok_or_else(no_parent)?;
        let current = find(&home, &path)?;
        let overwrite = asked.header("overwrite").map_or(Some(true), parse_overwrite);
        let overwrite = overwrite.ok_or_else(|| bad("The header Overwrite is T or F."))?;
        if current.is_some() && !overwrite {
            return Err(Refusal::condition_failed());
        }
        self.check_locks_around(asked, &path)?;
        Ok(Destination { home, path, above, current })
    }
}

/// A file once more, with what clients keep with it.
fn copied(home: &Home, file: &FileNode, to: &Destination) -> Result<Edit> {
    copy_of(home, file, (&to.home, &to.above, to.name()), to.file())
}

fn copy_of(
    home: &Home,
    file: &FileNode,
    (target, folder, name): (&Home, &FolderInfo, &str),
    current: Option<&FileNode>,
) -> Result<Edit> {
    let bytes = content(home, file)?;
    let new = NewContent { bytes: &bytes, content_type: file.content_type() };
    edit(target, (folder, name), current, &new, Some(&file.properties()))
}

/// A collection once more, with what is in it.
fn copy_tree(
    (home, path, info): (&Home, &FilePath, &FolderInfo),
    (target, to): (&Home, &FilePath),
    is_deep: bool,
) -> Result<()> {
    let mut waiting = vec![(path.clone(), info.clone(), to.clone())];
    let mut copied = 0;
    while let Some((path, info, to)) = waiting.pop() {
        let made = make(target, &to)?;
        if !info.properties.is_empty() {
            target.database.set_folder_properties(&made.name, &info.properties)?;
        }
        if !is_deep {
            return Ok(());
        }
        let (mut edits, mut bytes) = (Vec::new(), 0);
        for (child, node) in children(home, &path, &info)? {
            copied += 1;
            if copied > RESOURCES_MAX {
                return Err(too_many());
            }
            let Some(name) = child.names.last().cloned() else { continue };
            match node {
                Node::Collection(info) => {
                    let to = to.child(&name);
                    waiting.push((child, info, to));
                }
                Node::File(file) => {
                    bytes += file.bytes();
                    edits.push(copy_of(home, &file, (target, &made, &name), None)?);
                }
            }
            if edits.len() >= FILES_AT_ONCE || bytes >= BYTES_AT_ONCE {
                store(target, std::mem::take(&mut edits))?;
                bytes = 0;
            }
        }
        store(target, edits)?;
    }
    Ok(())
}

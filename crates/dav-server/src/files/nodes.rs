//! Files and their collections as they are stored: documents and folders of a person's mail database.
//!
//! A collection is a folder below `Files`. A file is a document of its folder; its id is made of the folder's number and its name, so
//! that it is found without a search, and two files of one name cannot both be stored.

use scrinium_database::{
    Access, DatabaseError, Edit, FolderChange, FolderInfo, NewAttachment, folder::name::SEPARATOR,
};
use scrinium_dav_wire::DAV;
use scrinium_dav_wire::xml::{Element, XmlLimits};
use serde_json::{Map, Value, json};

use super::path::FilePath;
use crate::document::{NAME, read};
use crate::home::Home;
use crate::refusal::{Refusal, Result, too_many};

/// The attachment with a file's bytes.
const CONTENT: &str = "file";

/// The field with what clients keep with a file: XML.
const PROPERTIES: &str = "$DavProperties";

const CREATED: &str = "Created";
const MODIFIED: &str = "Modified";

/// A file is not longer.
pub(super) const FILE_BYTES_MAX: u64 = 10 << 20;

/// What clients keep with a file or a collection.
const PROPERTIES_BYTES_MAX: usize = 64 << 10;

/// Resources of one collection, and of all that is copied or deleted at once.
pub(super) const RESOURCES_MAX: usize = 10_000;

/// Read of a file at a time.
const PIECE_BYTES: usize = 256 << 10;

static FILES: Access = Access::of_the_server("finding ids of files");

/// A file or a collection that is there.
pub(super) enum Node {
    Collection(FolderInfo),
    File(FileNode),
}

/// A file.
pub(super) struct FileNode {
    pub(super) id: String,
    /// Its revision, which is its tag.
    pub(super) revision: String,
    fields: Map<String, Value>,
}

impl FileNode {
    /// What clients keep with it.
    pub(super) fn properties(&self) -> Vec<Element> {
        let stored = self.fields.get(PROPERTIES).and_then(Value::as_str).unwrap_or_default();
        elements_in(stored.as_bytes())
    }

    pub(super) fn content_type(&self) -> &str {
        let text = self.content().and_then(|content| content.get("content_type")).and_then(Value::as_str);
        text.unwrap_or("application/octet-stream")
    }

    pub(super) fn bytes(&self) -> u64 {
        self.content().and_then(|content| content.get("length")).and_then(Value::as_u64).unwrap_or(0)
    }

    fn content(&self) -> Option<&Value> {
        self.fields.get("_attachments")?.get(CONTENT)
    }

    /// When it was made and changed, in milliseconds since 1970.
    pub(super) fn times_ms(&self) -> [u64; 2] {
        [CREATED, MODIFIED].map(|name| self.fields.get(name).and_then(Value::as_u64).unwrap_or(0))
    }

    fn name(&self) -> Option<&str> {
        self.fields.get(NAME).and_then(Value::as_str)
    }
}

impl Node {
    pub(super) const fn is_collection(&self) -> bool {
        matches!(self, Self::Collection(_))
    }

    pub(super) fn tag(&self) -> Option<&str> {
        match self {
            Self::Collection(_) => None,
            Self::File(file) => Some(&file.revision),
        }
    }

    /// What clients keep with it.
    pub(super) fn properties(&self) -> Vec<Element> {
        match self {
            Self::Collection(info) => elements_in(&info.properties),
            Self::File(file) => file.properties(),
        }
    }
}

fn elements_in(stored: &[u8]) -> Vec<Element> {
    let root = Element::parse(stored, XmlLimits::default()).ok();
    root.map(|root| root.elements().cloned().collect()).unwrap_or_default()
}

/// The id of a file in a folder.
fn id_of(folder: &FolderInfo, name: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&folder.number.to_be_bytes());
    hasher.update(name.as_bytes());
    let digest: String = hasher.finalize().to_hex().chars().take(32).collect();
    format!("file-{digest}")
}

fn written(properties: &[Element]) -> Result<String> {
    let text = Element::new(DAV, "prop").with_all(properties.iter().cloned()).write();
    if text.len() > PROPERTIES_BYTES_MAX {
        let reason = "The properties of a resource are too long together.";
        return Err(Refusal::new(http::StatusCode::INSUFFICIENT_STORAGE, reason));
    }
    Ok(text)
}

/// The folder of a collection, if that is there.
pub(super) fn folder(home: &Home, path: &FilePath) -> Result<Option<FolderInfo>> {
    let name = path.folder();
    match home.database.folder(&name, None) {
        // Names that differ in case alone are one folder's, but other paths.
        Ok(info) => Ok((info.name == name).then_some(info)),
        Err(DatabaseError::NotFound { .. } | DatabaseError::Invalid { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What lies under a path.
pub(super) fn find(home: &Home, path: &FilePath) -> Result<Option<Node>> {
    if let Some(info) = folder(home, path)? {
        return Ok(Some(Node::Collection(info)));
    }
    let Some((above, name)) = path.split() else { return Ok(None) };
    let Some(above) = folder(home, &above)? else { return Ok(None) };
    file(home, &above, name)
}

fn file(home: &Home, folder: &FolderInfo, name: &str) -> Result<Option<Node>> {
    let file = file_by_id(home, id_of(folder, name))?;
    Ok(file.filter(|file| file.name() == Some(name)).map(Node::File))
}

fn file_by_id(home: &Home, id: String) -> Result<Option<FileNode>> {
    let found = read(&home.database, &id, &home.access)?;
    Ok(found.map(|(revision, fields)| FileNode { id, revision, fields }))
}

/// What lies in a collection, by names; collections first.
pub(super) fn children(home: &Home, path: &FilePath, info: &FolderInfo) -> Result<Vec<(FilePath, Node)>> {
    let within = format!("{}{SEPARATOR}", info.name);
    let mut found = Vec::new();
    for folder in home.database.folders(None)? {
        let name = folder.name.strip_prefix(&within).filter(|name| !name.contains(SEPARATOR));
        if let Some(child) = name.map(|name| path.child(name)) {
            found.push((child, Node::Collection(folder)));
        }
    }
    let (snapshot, mut last) = (home.database.store().snapshot(), 0);
    loop {
        let members = home.database.members_at(&snapshot, info.number, last, 1_000)?;
        for (uid, member) in &members {
            last = *uid;
            let file = file_by_id(home, member.id.clone())?;
            // Another document that somebody has put there is no file.
            let own = file.filter(|file| file.name().is_some_and(|name| id_of(info, name) == file.id));
            if let Some((name, file)) = own.and_then(|file| Some((file.name()?.to_owned(), file))) {
                found.push((path.child(&name), Node::File(file)));
            }
        }
        if found.len() > RESOURCES_MAX {
            return Err(too_many());
        }
        if members.len() < 1_000 {
            return Ok(found);
        }
    }
}

/// The bytes of a file.
pub(super) fn content(home: &Home, file: &FileNode) -> Result<Vec<u8>> {
    if file.bytes() > FILE_BYTES_MAX {
        let reason = "The file is longer than those that are given out here.";
        return Err(Refusal::new(http::StatusCode::INSUFFICIENT_STORAGE, reason));
    }
    let attachment = match home.database.open_attachment(&file.id, CONTENT, None, &home.access) {
        Ok(attachment) => attachment,
        // Who was there is empty: the lock of a name makes such a one.
        Err(DatabaseError::NotFound { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut bytes = Vec::new();
    loop {
        let piece = attachment.read(bytes.len() as u64, PIECE_BYTES)?;
        if piece.is_empty() {
            return Ok(bytes);
        }
        bytes.extend_from_slice(&piece);
    }
}

/// What a file is to hold.
pub(super) struct NewContent<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) content_type: &'a str,
}

/// Stores a file under a name of a folder, in the place of the one that is there. `properties`: those of another one, for a copy.
pub(super) fn edit(
    home: &Home,
    (folder, name): (&FolderInfo, &str),
    current: Option<&FileNode>,
    new: &NewContent<'_>,
    properties: Option<&[Element]>,
) -> Result<Edit> {
    let now_ms = home.database.now_ms();
    let id = id_of(folder, name);
    let mut fields = current.map(|current| current.fields.clone()).unwrap_or_default();
    fields.retain(|name, _| !["_id", "_rev", "_attachments"].contains(&name.as_str()));
    fields.entry(CREATED).or_insert_with(|| Value::from(now_ms));
    fields.insert(MODIFIED.to_owned(), Value::from(now_ms));
    for (field, value) in [("Form", "File"), (NAME, name), ("Subject", name)] {
        fields.insert(field.to_owned(), Value::from(value));
    }
    if let Some(properties) = properties {
        fields.insert(PROPERTIES.to_owned(), Value::from(written(properties)?));
    }
    if current.is_none() && read(&home.database, &id, &FILES)?.is_some() {
        return Err(Refusal::read_only());
    }
    let content = home.database.store_content(new.bytes, new.content_type)?;
    Ok(Edit {
        id: Some(id),
        revision: current.map(|current| current.revision.clone()),
        json: Value::Object(fields).to_string().into(),
        attachments: vec![NewAttachment {
            name: CONTENT.to_owned(),
            content_type: new.content_type.to_owned(),
            content,
        }],
        folders: current
            .is_none()
            .then(|| FolderChange::Add { folder: folder.name.clone() })
            .into_iter()
            .collect(),
        editor: home.asker(),
        read_by: home.asker(),
        ..Edit::default()
    })
}

/// Takes a file away.
pub(super) fn deletion(file: &FileNode) -> Edit {
    Edit {
        id: Some(file.id.clone()),
        revision: Some(file.revision.clone()),
        json: json!({"_deleted": true}).to_string().into(),
        ..Edit::default()
    }
}

/// Keeps other properties with a resource.
pub(super) fn set_properties(home: &Home, node: &Node, properties: &[Element]) -> Result<Option<Edit>> {
    let text = written(properties)?;
    match node {
        Node::Collection(info) => {
            home.database.set_folder_properties(&info.name, text.as_bytes())?;
            Ok(None)
        }
        Node::File(file) => {
            let mut fields = file.fields.clone();
            fields.retain(|name, _| !["_id", "_rev"].contains(&name.as_str()));
            fields.insert(PROPERTIES.to_owned(), Value::from(text));
            Ok(Some(Edit {
                id: Some(file.id.clone()),
                revision: Some(file.revision.clone()),
                json: Value::Object(fields).to_string().into(),
                editor: home.asker(),
                ..Edit::default()
            }))
        }
    }
}

/// Makes a collection.
pub(super) fn make(home: &Home, path: &FilePath) -> Result<FolderInfo> {
    let name = path.folder();
    if scrinium_database::folder::name::validate(&name).is_err() {
        let reason =
            "Names of collections have no space at their ends, and 250 bytes together with those above.";
        return Err(Refusal::new(http::StatusCode::FORBIDDEN, reason));
    }
    if !home.database.define_folder(&name, None)? {
        let reason = "There is a collection whose name differs in case alone.";
        return Err(Refusal::new(http::StatusCode::FORBIDDEN, reason));
    }
    folder(home, path)?.ok_or_else(Refusal::missing)
}

//! The raw records of databases, for support: where they lie, what they hold, and what that means where it can be told.

use scrinium_catalog::Entry;
use scrinium_contents::hex;
use scrinium_contents::object::{ObjectState, called};
use scrinium_contents::record::{Placement, Record};
use scrinium_database::folder::record::{FolderRecord, FolderState, Mark, Membership, decode_count};
use scrinium_database::head::{ChangeRecord, Head};
use scrinium_database::header::Header;
use scrinium_database::keys;
use scrinium_database::leaf::Leaf;
use scrinium_document::FieldValue;
use scrinium_document::json::{stored_value, stored_value_of_bytes};
use scrinium_store::{Family, RawStore};
use serde_json::{Map, Value, json};

/// At most this many records are shown of one kind.
const SHOWN_MAX: usize = 1000;

/// One stored record.
#[derive(Clone, Debug, PartialEq)]
pub struct RawRecord {
    /// What it is.
    pub what: &'static str,
    /// The family that it lies in.
    pub family: Family,
    /// Its key.
    pub key: Vec<u8>,
    /// Its value; `Err`: why it cannot be read, `Ok(None)`: it is not there.
    pub value: Result<Option<Vec<u8>>, String>,
    /// What it means; `None` if that cannot be told.
    pub decoded: Option<Value>,
    /// The store's files that may have the key.
    pub files: Vec<String>,
}

impl RawRecord {
    /// BLAKE3 of the value, in hexadecimal; `None` if there is none to read.
    #[must_use]
    pub fn checksum(&self) -> Option<String> {
        let value = self.value.as_ref().ok()?.as_ref()?;
        Some(blake3::hash(value).to_hex().to_string())
    }

    /// The record for programs; the value in full if `whole`.
    #[must_use]
    pub fn to_json(&self, whole: bool) -> Value {
        let value = self.value.as_ref().ok().and_then(Option::as_ref);
        json!({
            "what": self.what,
            "family": self.family.name(),
            "key": hex(&self.key),
            "bytes": value.map(Vec::len),
            "blake3": self.checksum(),
            "error": self.value.as_ref().err(),
            "decoded": self.decoded,
            "files": self.files,
            "value": value.filter(|_| whole || self.decoded.is_none()).map(|value| hex(value)),
        })
    }
}

/// What looks into a store.
pub struct Inspection<'a> {
    raw: &'a RawStore,
    records: Vec<RawRecord>,
}

impl<'a> Inspection<'a> {
    /// All databases: their names and headers; and the stores of objects that their attachments are in.
    #[must_use]
    pub fn databases(raw: &'a RawStore) -> Vec<RawRecord> {
        let mut inspection = Self { raw, records: Vec::new() };
        let from = keys::database_by_name("");
        let to = keys::successor(&from);
        let mut numbers = Vec::new();
        inspection.range("database", Family::Meta, &from, &to, |key, value| {
            let Entry { number, volume } = Entry::decode(value)?;
            numbers.push(number);
            Some(json!({"name": keys::name_of(key)?, "number": number, "volume": volume}))
        });
        for number in numbers {
            inspection.one("header", Family::Meta, keys::header(number), header);
        }
        let (from, to) = keys::OBJECT_PLACE_RANGE;
        inspection.range("place of objects", Family::Meta, from, to, |key, value| {
            Some(json!({"place": number_of(key.get(1..)?)?, "is": json_of(value)?}))
        });
        inspection.records
    }

    /// The records of a database as a whole.
    #[must_use]
    pub fn database(raw: &'a RawStore, name: &str) -> Vec<RawRecord> {
        let mut inspection = Self { raw, records: Vec::new() };
        let Some(number) = inspection.number(name) else { return inspection.records };
        inspection.one("header", Family::Meta, keys::header(number), header);
        inspection.one("_security", Family::Meta, keys::security(number), json_of);
        inspection.one("access control list", Family::Meta, keys::access_list(number), json_of);
        let (from, to) = keys::kind_range(number, b'F');
        inspection.range("folder", Family::Point, &from, &to, |_, value| folder(value));
        let (from, to) = keys::kind_range(number, b'G');
        inspection.range("counts of a folder", Family::Point, &from, &to, |_, value| state(value));
        inspection.records
    }

    /// The records of one document.
    #[must_use]
    pub fn document(raw: &'a RawStore, name: &str, id: &str) -> Vec<RawRecord> {
        let mut inspection = Self { raw, records: Vec::new() };
        let Some(number) = inspection.number(name) else { return inspection.records };
        if scrinium_document::is_local(id) {
            inspection.one("local document", Family::Point, keys::local(number, id), |_| None);
            return inspection.records;
        }
        inspection.one("head", Family::Point, keys::head(number, id), head);
        let stored = raw.get(Family::Point, &keys::head(number, id)).ok().flatten();
        inspection.one("winner", Family::Scan, keys::winner(number, id), |value| leaf(id, value));
        let from = keys::losers(number, id);
        let to = keys::successor(&from);
        inspection.range("losing revision", Family::Scan, &from, &to, |_, value| leaf(id, value));
        let from = keys::earlier_of(number, id);
        let to = keys::successor(&from);
        inspection.range("earlier revision", Family::Scan, &from, &to, |_, value| leaf(id, value));
        if let Some(head) = stored.and_then(|stored| Head::decode(&stored)) {
            let key = keys::change(number, head.change_number);
            inspection.one("change", Family::Churn, key, change);
            for digest in &head.contents {
                let key = keys::reference(digest, number, id);
                inspection.one("reference", Family::Point, key, |_| Some(json!(hex(digest))));
                let key = keys::content(digest);
                inspection.one("content", Family::Blob, key, |value| content(digest, value));
                inspection.one("object", Family::Point, keys::object(digest), object);
            }
        }
        let from = keys::memberships(number, id);
        let to = keys::successor(&from);
        inspection.range("membership", Family::Point, &from, &to, |key, value| {
            let Membership { uid, change_number, added_change, flags } = Membership::decode(value)?;
            Some(json!({
                "folder": keys::folder_of(key)?,
                "uid": uid,
                "change": change_number,
                "added": added_change,
                "flags": flags,
            }))
        });
        let from = keys::marks(number, id);
        let to = keys::successor(&from);
        inspection.range("mark", Family::Point, &from, &to, |key, value| {
            let person = key.get(from.len()..).and_then(|person| std::str::from_utf8(person).ok())?;
            if person.is_empty() {
                return Some(json!({"marks": decode_count(value)?}));
            }
            let Mark { read, change_number } = Mark::decode(value)?;
            Some(json!({"person": person, "read": read, "change": change_number}))
        });
        inspection.records
    }

    fn number(&mut self, name: &str) -> Option<u32> {
        let key = keys::database_by_name(name);
        self.one("database", Family::Meta, key.clone(), |value| {
            let Entry { number, volume } = Entry::decode(value)?;
            Some(json!({"number": number, "volume": volume}))
        });
        let entry = self.raw.get(Family::Meta, &key).ok().flatten();
        entry.and_then(|entry| Entry::decode(&entry)).map(|entry| entry.number).or_else(|| self.called(name))
    }

    /// The number of the database of this name in the store of a volume, which has no catalogue.
    fn called(&self, name: &str) -> Option<u32> {
        let (from, to) = (keys::header(0), keys::NEXT_NUMBER);
        let mut found = None;
        let read = self.raw.each(Family::Meta, &from, to, |key, value| {
            let number = key.get(1..).and_then(number_of);
            found = number.filter(|_| Header::decode(value).is_some_and(|header| header.name == name));
            found.is_none()
        });
        read.ok().and(found)
    }

    fn one(
        &mut self,
        what: &'static str,
        family: Family,
        key: Vec<u8>,
        decode: impl FnOnce(&[u8]) -> Option<Value>,
    ) {
        let value = self.raw.get(family, &key);
        let decoded = value.as_ref().ok().and_then(Option::as_ref).and_then(|value| decode(value));
        let files = self.raw.files_with(family, &key);
        self.records.push(RawRecord { what, family, key, value, decoded, files });
    }

    fn range(
        &mut self,
        what: &'static str,
        family: Family,
        from: &[u8],
        to: &[u8],
        mut decode: impl FnMut(&[u8], &[u8]) -> Option<Value>,
    ) {
        let (raw, mut shown) = (self.raw, 0);
        let mut records = Vec::new();
        let read = raw.each(family, from, to, |key, value| {
            let (decoded, files) = (decode(key, value), raw.files_with(family, key));
            let value = Ok(Some(value.to_vec()));
            records.push(RawRecord { what, family, key: key.to_vec(), value, decoded, files });
            shown += 1;
            shown < SHOWN_MAX
        });
        self.records.append(&mut records);
        if let Err(error) = read {
            let files = raw.files_with(family, from);
            let (key, value) = (from.to_vec(), Err(error));
            self.records.push(RawRecord { what, family, key, value, decoded: None, files });
        }
    }
}

fn number_of(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_be_bytes)
}

fn json_of(value: &[u8]) -> Option<Value> {
    stored_value_of_bytes(value)
}

fn header(value: &[u8]) -> Option<Value> {
    let header = Header::decode(value)?;
    Some(json!({
        "name": header.name,
        "uuid": hex(&header.uuid),
        "created_ms": header.created_ms,
        "change_number": header.change_number,
        "documents": header.document_count,
        "deleted": header.deleted_count,
        "designs": header.design_count,
        "external_bytes": header.external_bytes,
        "revision_limit": header.revision_limit,
        "folders": header.folder_count,
        "last_folder": header.last_folder,
        "memberships": header.membership_count,
        "marks": header.mark_count,
    }))
}

fn folder(value: &[u8]) -> Option<Value> {
    let record = FolderRecord::decode(value)?;
    Some(json!({
        "number": record.number,
        "name": record.name,
        "uid_validity": record.uid_validity,
        "columns": record.columns,
        "kind": format!("{:?}", record.kind),
        "special_use": record.special_use.map(|special_use| format!("{special_use:?}")),
        "validity_epoch": record.validity_epoch,
        "properties_bytes": record.properties.len(),
    }))
}

fn state(value: &[u8]) -> Option<Value> {
    let state = FolderState::decode(value)?;
    Some(json!({
        "next_uid": state.next_uid,
        "total": state.total,
        "change": state.change_number,
        "deleted": state.deleted,
        "bytes": state.bytes,
        "deleted_bytes": state.deleted_bytes,
        "presented": state.presented,
        "flags_change": state.flags_change,
        "announced_uid": state.announced_uid,
        "left_to": state.left_to,
    }))
}

fn head(value: &[u8]) -> Option<Value> {
    let head = Head::decode(value)?;
    let leaves = head.tree.leaves().map(|leaf| {
        let path = head.tree.path(leaf.revision).unwrap_or_default();
        let path: Vec<String> = path.iter().map(ToString::to_string).collect();
        json!({"revision": leaf.revision.to_string(), "deleted": leaf.deleted, "path": path})
    });
    Some(json!({
        "change": head.change_number,
        "created_ms": head.created_ms,
        "external_bytes": head.external_bytes,
        "contents": head.contents.iter().map(|digest| hex(digest)).collect::<Vec<_>>(),
        "leaves": leaves.collect::<Vec<_>>(),
        "earlier": head.earlier.iter().map(|body| body.revision.to_string()).collect::<Vec<_>>(),
    }))
}

fn leaf(id: &str, value: &[u8]) -> Option<Value> {
    let leaf = Leaf::decode(id, value).ok()?;
    let mut fields = Map::new();
    for (name, value) in leaf.fields(id).ok()?.iter() {
        let value = match value {
            FieldValue::Json(json) => stored_value(json)?,
            FieldValue::Outside(outside) => {
                json!({"outside": hex(&outside.digest), "length": outside.length})
            }
        };
        fields.insert(name.to_owned(), value);
    }
    let attachments = leaf.attachments(id).ok()?;
    let attachments = attachments.into_iter().map(|attachment| {
        json!({
            "name": attachment.name,
            "content_type": attachment.content_type,
            "revpos": attachment.revpos,
            "length": attachment.length,
            "content": hex(&attachment.digest),
            "decoded_length": attachment.decoded_length,
            "digest": attachment.digest_text(),
        })
    });
    Some(json!({
        "revision": leaf.revision,
        "deleted": leaf.deleted,
        "created_ms": leaf.created_ms,
        "modified_ms": leaf.modified_ms,
        "attachments": attachments.collect::<Vec<_>>(),
        "fields": fields,
    }))
}

fn change(value: &[u8]) -> Option<Value> {
    let ChangeRecord { id, winner, deleted, several_leaves } = ChangeRecord::decode(value)?;
    Some(json!({"id": id, "winner": winner.to_string(), "deleted": deleted, "conflicts": several_leaves}))
}

fn object(value: &[u8]) -> Option<Value> {
    let ObjectState { object, length, created_ms, removed_ms } = ObjectState::decode(value)?;
    let removed_ms = Some(removed_ms).filter(|removed_ms| *removed_ms > 0);
    Some(json!({"place": object.place, "length": length, "created_ms": created_ms, "removed_ms": removed_ms}))
}

fn content(digest: &keys::Digest, value: &[u8]) -> Option<Value> {
    let Record { length, md5, placement } = Record::decode(value)?;
    let placement = match placement {
        Placement::Inline(_) => json!("in the record"),
        Placement::Upload { upload, piece_bytes } => json!({"upload": upload, "piece_bytes": piece_bytes}),
        Placement::Object(object) => json!({
            "object": called(digest, &object),
            "place": object.place,
            "bytes": object.stored_bytes,
        }),
    };
    Some(json!({"length": length, "md5": hex(&md5), "placement": placement}))
}

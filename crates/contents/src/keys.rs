//! Where contents are stored: one function for each kind of key. All kinds of keys of databases are in the table of the
//! crate `database`.
//!
//! | family | key | value |
//! |---|---|---|
//! | Meta | `11` number | what is known of the database with this number |
//! | Meta | `15` upload | an upload that no document refers to yet |
//! | Meta | `20` place | where objects are, [`crate::places::BucketPart`], as JSON |
//! | Meta | `21` | how far a move of contents had come, `bookmark`, as JSON |
//! | Point | `u32::MAX` `r` digest number id | the document refers to the content |
//! | Point | `u32::MAX` `g` digest | the content may have lost its last reference |
//! | Point | `u32::MAX` `o` digest | the object of a content, [`crate::object::ObjectState`] |
//! | Point | `u32::MAX` `q` time digest upload | the number of the place of an object that is to be looked at, and may have to go |
//! | Blob | `c` digest | [`crate::record`] |
//! | Blob | `u` upload chunk | a piece of a large content |

/// A content's BLAKE3 digest.
pub type Digest = [u8; 32];

/// In the place of a number: what all databases share.
pub const SHARED: u32 = u32::MAX;

/// A key that begins with the number of a database, and has `kind` behind it.
#[must_use]
pub fn with_number(number: u32, kind: u8, rest: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(5 + rest.len());
    key.extend_from_slice(&number.to_be_bytes());
    key.push(kind);
    key.extend_from_slice(rest);
    key
}

/// A key that begins with its kind.
#[must_use]
pub fn meta(kind: u8, rest: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + rest.len());
    key.push(kind);
    key.extend_from_slice(rest);
    key
}

/// What is known of a database as a whole; there while the database is.
#[must_use]
pub fn header(number: u32) -> Vec<u8> {
    meta(0x11, &number.to_be_bytes())
}

/// An upload that no document refers to yet.
#[must_use]
pub fn pending_upload(upload: u64) -> Vec<u8> {
    meta(0x15, &upload.to_be_bytes())
}

/// All keys of [`pending_upload`].
pub const PENDING_UPLOAD_RANGE: (&[u8], &[u8]) = (&[0x15], &[0x16]);

/// The document refers to the content.
#[must_use]
pub fn reference(digest: &Digest, number: u32, id: &str) -> Vec<u8> {
    let mut rest = Vec::with_capacity(36 + id.len());
    rest.extend_from_slice(digest);
    rest.extend_from_slice(&number.to_be_bytes());
    rest.extend_from_slice(id.as_bytes());
    with_number(SHARED, b'r', &rest)
}

/// All references to one content.
#[must_use]
pub fn reference_range(digest: &Digest) -> (Vec<u8>, Vec<u8>) {
    let from = with_number(SHARED, b'r', digest);
    let to = successor(&from);
    (from, to)
}

/// The content may have lost its last reference.
#[must_use]
pub fn collectable(digest: &Digest) -> Vec<u8> {
    with_number(SHARED, b'g', digest)
}

/// All contents that may have lost their last reference.
#[must_use]
pub fn collectable_range() -> (Vec<u8>, Vec<u8>) {
    (with_number(SHARED, b'g', &[]), with_number(SHARED, b'g' + 1, &[]))
}

/// The digest in a key of [`collectable`].
#[must_use]
pub fn digest_of(key: &[u8]) -> Option<Digest> {
    key.get(5..37).and_then(|bytes| bytes.try_into().ok())
}

/// The object of a content.
#[must_use]
pub fn object(digest: &Digest) -> Vec<u8> {
    with_number(SHARED, b'o', digest)
}

/// All objects, in the order of their digests.
#[must_use]
pub fn object_range() -> (Vec<u8>, Vec<u8>) {
    (with_number(SHARED, b'o', &[]), with_number(SHARED, b'o' + 1, &[]))
}

/// An object that is to be looked at so long after a time, in milliseconds since 1970.
#[must_use]
pub fn object_note(noted_ms: u64, digest: &Digest, upload: u64) -> Vec<u8> {
    let mut rest = Vec::with_capacity(48);
    rest.extend_from_slice(&noted_ms.to_be_bytes());
    rest.extend_from_slice(digest);
    rest.extend_from_slice(&upload.to_be_bytes());
    with_number(SHARED, b'q', &rest)
}

/// All keys of [`object_note`], the oldest first.
#[must_use]
pub fn object_note_range() -> (Vec<u8>, Vec<u8>) {
    (with_number(SHARED, b'q', &[]), with_number(SHARED, b'q' + 1, &[]))
}

/// The time, the digest and the upload in a key of [`object_note`].
#[must_use]
pub fn object_note_of(key: &[u8]) -> Option<(u64, Digest, u64)> {
    let (noted_ms, rest) = key.get(5..)?.split_first_chunk::<8>()?;
    let (digest, upload) = rest.split_first_chunk::<32>()?;
    Some((u64::from_be_bytes(*noted_ms), *digest, u64::from_be_bytes(upload.try_into().ok()?)))
}

/// Where objects are.
#[must_use]
pub fn object_place(place: u32) -> Vec<u8> {
    meta(0x20, &place.to_be_bytes())
}

/// All keys of [`object_place`].
pub const OBJECT_PLACE_RANGE: (&[u8], &[u8]) = (&[0x20], &[0x21]);

/// How far a move of contents had come.
pub const BOOKMARK: &[u8] = &[0x21];

/// How a content is stored.
#[must_use]
pub fn content(digest: &Digest) -> Vec<u8> {
    meta(b'c', digest)
}

/// A piece of a large content.
#[must_use]
pub fn chunk(upload: u64, number: u32) -> Vec<u8> {
    let mut rest = [0; 12];
    let (first, last) = rest.split_at_mut(8);
    first.copy_from_slice(&upload.to_be_bytes());
    last.copy_from_slice(&number.to_be_bytes());
    meta(b'u', &rest)
}

/// All pieces of one upload.
#[must_use]
pub fn chunk_range(upload: u64) -> (Vec<u8>, Vec<u8>) {
    (meta(b'u', &upload.to_be_bytes()), meta(b'u', &upload.saturating_add(1).to_be_bytes()))
}

/// All references of all databases.
#[must_use]
pub fn all_references() -> (Vec<u8>, Vec<u8>) {
    (with_number(SHARED, b'r', &[]), with_number(SHARED, b'r' + 1, &[]))
}

/// The digest, the number of the database and the id in a key of [`reference()`].
#[must_use]
pub fn reference_of(key: &[u8]) -> Option<(Digest, u32, &str)> {
    let number = key.get(37..41)?.try_into().ok()?;
    let id = std::str::from_utf8(key.get(41..)?).ok()?;
    Some((digest_of(key)?, u32::from_be_bytes(number), id))
}

/// The first key behind `key`.
#[must_use]
pub fn next(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// The first key after all that begin with `prefix`.
#[must_use]
pub fn successor(prefix: &[u8]) -> Vec<u8> {
    let mut key = prefix.to_vec();
    while let Some(last) = key.pop() {
        if last < u8::MAX {
            key.push(last + 1);
            break;
        }
    }
    key
}

//! What a run needs to know: the message, how it came, and what is around it. The caller brings all of it.

use std::borrow::Cow;
use std::sync::Arc;

use crate::program::Location;
use crate::script::Script;

/// A field of a header as it stands in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderField<'a> {
    /// The name without the colon.
    pub name: &'a [u8],
    /// What stands behind the colon, with its folds, without the end of its last line.
    pub value: &'a [u8],
}

/// What is made of a part for the test `body` (RFC 5173, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartForm {
    /// Its transfer encoding is undone, and text is UTF-8. Of a multipart, what stands before the first and behind the
    /// last part; of a message, its header.
    Content,
    /// What a person reads of it: of HTML, the text without markup.
    Text,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyPart<'a> {
    /// Such as `text/plain`, in lower case.
    pub content_type: Cow<'a, str>,
    /// What was asked for.
    pub text: Cow<'a, str>,
}

/// A message that a script looks at. Nothing of it needs to be copied.
pub trait Message {
    /// The size of the whole source.
    fn size_bytes(&self) -> u64;

    /// A field of the header by its number, from 0 at the top.
    fn field(&self, index: usize) -> Option<HeaderField<'_>>;

    /// The text of an unfolded value with its encoded words (RFC 2047) decoded.
    fn decode(&self, value: &[u8]) -> String;

    /// Everything behind the header, as it stands in the source.
    fn raw_body(&self) -> &[u8];

    /// A part by its number, from 0, each multipart before its parts.
    fn part(&self, index: usize, form: PartForm) -> Option<BodyPart<'_>>;
}

/// How a message came, and when.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// The envelope's sender; empty for none (`<>`).
    pub sender: &'a str,
    /// The envelope's recipient.
    pub recipient: &'a str,
    /// All addresses of the script's owner.
    pub own_addresses: &'a [&'a str],
    /// Seconds since 1970 in UTC.
    pub now_seconds: i64,
    /// The owner's zone, in seconds east of Greenwich.
    pub zone_seconds: i32,
    /// Items of `environment` (RFC 5183, section 4): `name`, `version`, `domain`, `host`, `location`, `phase`,
    /// `remote-host`, `remote-ip`, and those of the server's own. What is not here does not exist.
    pub environment: &'a [(&'a str, &'a str)],
    /// What stands between the name and the detail of an address (RFC 5233), such as `+`.
    pub separator: char,
}

/// What is around a message: mailboxes, other scripts, messages that were seen.
pub trait Host {
    /// Whether the owner may file into a mailbox that exists (RFC 5490, section 3.1).
    fn mailbox_exists(&self, _name: &str) -> bool {
        false
    }

    /// Whether the owner may file into a mailbox with a special use, such as `\Junk`: into this one, or into any
    /// (RFC 8579, section 3).
    fn has_special_use(&self, _mailbox: Option<&str>, _special_use: &str) -> bool {
        false
    }

    /// Whether there is a mailbox of an identifier (RFC 9042, section 3).
    fn mailbox_id_exists(&self, _id: &str) -> bool {
        false
    }

    /// A script that another one includes; `None` if there is none of this name, which is compared exactly.
    ///
    /// # Errors
    /// The script is wrong: what is wrong, in words.
    fn script(&self, _location: Location, _name: &str) -> Result<Option<Arc<Script>>, String> {
        Ok(None)
    }

    /// Whether a [`SeenMark`](crate::SeenMark) of this key was kept and has not expired (RFC 7352).
    fn was_seen(&self, _key: &str) -> bool {
        false
    }
}

/// Nothing is around the message.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHost;

impl Host for NoHost {}

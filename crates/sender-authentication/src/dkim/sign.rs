//! Signatures, made (RFC 6376 §5).

use crate::head::Head;
use crate::name::DomainName;

use super::canonical::BodyDigests;
use super::key::{KeyError, KeyKind, SigningKey};
use super::signature::Canonicalization;
use super::verify::{own_field, signed_fields};

/// Fields that are signed where they are there (RFC 6376 §5.4.1), each as often as it is there.
const SIGNED: [&str; 29] = [
    "from",
    "sender",
    "reply-to",
    "to",
    "cc",
    "subject",
    "date",
    "message-id",
    "in-reply-to",
    "references",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
    "content-disposition",
    "content-id",
    "content-description",
    "content-language",
    "auto-submitted",
    "resent-date",
    "resent-from",
    "resent-to",
    "resent-cc",
    "list-id",
    "list-help",
    "list-post",
    "list-owner",
    "list-archive",
    "list-subscribe",
    "list-unsubscribe",
];

/// Fields of which nobody may add another one (RFC 6376 §8.15): they are named once more than they are there.
const CLOSED: [&str; 7] = ["from", "reply-to", "to", "cc", "subject", "date", "content-type"];

/// Length of a line of the field.
const LINE_BYTES: usize = 76;

/// Why a message cannot be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// RFC 6376 §5.4: the From field has to be signed, and there is exactly one (RFC 5322 §3.6).
    #[error("a message that is signed has exactly one From field")]
    From,
    /// The head is larger than what is looked at.
    #[error("the header is too large to be signed")]
    Head,
    /// The key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Signs messages for a domain.
pub struct Signer {
    /// Who takes responsibility: `d=`.
    pub domain: DomainName,
    /// Where the key is: `s=`.
    pub selector: String,
    /// The key.
    pub key: SigningKey,
    /// After how many seconds the signature ends, if it does (`x=`).
    pub expires_after_seconds: Option<u64>,
}

impl Signer {
    /// The field that has to stand before the message, with its line end. Both forms are relaxed: many servers touch white space.
    ///
    /// # Errors
    /// [`SignError`]
    pub fn sign(
        &self,
        head: &Head<'_>,
        digests: &BodyDigests,
        now_seconds: u64,
    ) -> Result<String, SignError> {
        use base64::Engine as _;
        let base64 = base64::engine::general_purpose::STANDARD;
        if head.is_cut {
            return Err(SignError::Head);
        }
        if head.named("From").count() != 1 {
            return Err(SignError::From);
        }
        let form = Canonicalization::Relaxed;
        let names = signed_names(head);
        let algorithm = match self.key.kind() {
            KeyKind::Rsa => "rsa-sha256",
            KeyKind::Ed25519 => "ed25519-sha256",
        };
        let end = self.expires_after_seconds.map(|after| now_seconds.saturating_add(after));
        let mut folded = Folded::new("DKIM-Signature:");
        folded.tag(&format!(" v=1; a={algorithm}; c=relaxed/relaxed;"));
        folded.tag(&format!(" d={};", self.domain));
        folded.tag(&format!(" s={};", self.selector));
        folded.tag(&format!(" t={now_seconds};"));
        if let Some(end) = end {
            folded.tag(&format!(" x={end};"));
        }
        folded.list(" h=", &names);
        folded.letters(" bh=", &base64.encode(digests.of_form(form)), ";");
        folded.tag(" b=");
        let unsigned = format!("{}\r\n", folded.text);
        let own = Head::parse(unsigned.as_bytes());
        let mut data = signed_fields(head, &names, form);
        if let Some(own) = own.fields.first() {
            own_field(own, form, &mut data);
        }
        folded.letters("", &base64.encode(self.key.sign(&data)?), "");
        Ok(format!("{}\r\n", folded.text))
    }
}

fn signed_names(head: &Head<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for name in SIGNED {
        let times = head.named(name).count() + usize::from(CLOSED.contains(&name));
        names.extend(std::iter::repeat_n(name.to_owned(), times));
    }
    names
}

/// A field that is folded where it may be.
struct Folded {
    text: String,
    line_bytes: usize,
}

impl Folded {
    fn new(name: &str) -> Self {
        Self { text: name.to_owned(), line_bytes: name.len() }
    }

    /// A piece that begins with a space, at which a line may end.
    fn tag(&mut self, piece: &str) {
        if self.line_bytes + piece.len() > LINE_BYTES {
            self.text.push_str("\r\n");
            self.line_bytes = 0;
        }
        self.text.push_str(piece);
        self.line_bytes += piece.len();
    }

    fn list(&mut self, tag: &str, names: &[String]) {
        self.tag(tag);
        for (number, name) in names.iter().enumerate() {
            let sign = if number + 1 == names.len() { ";" } else { ":" };
            if self.line_bytes + name.len() + 1 > LINE_BYTES {
                self.text.push_str("\r\n ");
                self.line_bytes = 1;
            }
            self.text.push_str(name);
            self.text.push_str(sign);
            self.line_bytes += name.len() + 1;
        }
    }

    /// Letters between which white space may stand.
    fn letters(&mut self, tag: &str, letters: &str, end: &str) {
        if !tag.is_empty() {
            self.tag(tag);
        }
        for letter in letters.chars().chain(end.chars()) {
            if self.line_bytes >= LINE_BYTES {
                self.text.push_str("\r\n ");
                self.line_bytes = 1;
            }
            self.text.push(letter);
            self.line_bytes += 1;
        }
    }
}

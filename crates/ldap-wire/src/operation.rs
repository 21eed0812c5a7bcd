//! Requests and responses (RFC 4511, sections 4.2 to 4.13).

use std::fmt;

use crate::entry::Entry;
use crate::filter::Filter;
use crate::message::MessageId;
use crate::result::LdapResult;

/// What a message asks or answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Who the client is.
    Bind(BindRequest),
    /// The answer to [`Operation::Bind`].
    BindResponse(BindResponse),
    /// The client goes; there is no answer.
    Unbind,
    /// What entries are there.
    Search(SearchRequest),
    /// An entry that was found.
    SearchEntry(Entry),
    /// URLs where the search goes on.
    SearchReference(Vec<String>),
    /// All that was found has been sent.
    SearchDone(LdapResult),
    /// Change an entry.
    Modify(ModifyRequest),
    /// The answer to [`Operation::Modify`].
    ModifyResponse(LdapResult),
    /// Make an entry.
    Add(Entry),
    /// The answer to [`Operation::Add`].
    AddResponse(LdapResult),
    /// Delete the entry with this name.
    Delete(String),
    /// The answer to [`Operation::Delete`].
    DeleteResponse(LdapResult),
    /// Rename or move an entry.
    ModifyName(ModifyNameRequest),
    /// The answer to [`Operation::ModifyName`].
    ModifyNameResponse(LdapResult),
    /// Whether an entry has a value.
    Compare(CompareRequest),
    /// The answer to [`Operation::Compare`].
    CompareResponse(LdapResult),
    /// Nobody waits for the operation with this number any more; there is no answer.
    Abandon(MessageId),
    /// An operation of an extension.
    Extended(ExtendedRequest),
    /// The answer to [`Operation::Extended`].
    ExtendedResponse(ExtendedResponse),
    /// A part of an answer, in an extension's form (section 4.13).
    Intermediate(IntermediateResponse),
}

/// A kind of request that has an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// [`Operation::Bind`]
    Bind,
    /// [`Operation::Search`]
    Search,
    /// [`Operation::Modify`]
    Modify,
    /// [`Operation::Add`]
    Add,
    /// [`Operation::Delete`]
    Delete,
    /// [`Operation::ModifyName`]
    ModifyName,
    /// [`Operation::Compare`]
    Compare,
    /// [`Operation::Extended`]
    Extended,
}

impl RequestKind {
    /// The response that ends such an operation with this result.
    #[must_use]
    pub fn response(self, result: LdapResult) -> Operation {
        match self {
            Self::Bind => Operation::BindResponse(BindResponse { result, server_credentials: None }),
            Self::Search => Operation::SearchDone(result),
            Self::Modify => Operation::ModifyResponse(result),
            Self::Add => Operation::AddResponse(result),
            Self::Delete => Operation::DeleteResponse(result),
            Self::ModifyName => Operation::ModifyNameResponse(result),
            Self::Compare => Operation::CompareResponse(result),
            Self::Extended => {
                Operation::ExtendedResponse(ExtendedResponse { result, name: None, value: None })
            }
        }
    }

    /// Whether such a request changes entries, which a server that only reads refuses by `unwillingToPerform`.
    #[must_use]
    pub fn changes_entries(self) -> bool {
        matches!(self, Self::Modify | Self::Add | Self::Delete | Self::ModifyName)
    }
}

impl Operation {
    /// The kind of request it is; `None` for responses, and for requests without an answer.
    #[must_use]
    pub fn request_kind(&self) -> Option<RequestKind> {
        Some(match self {
            Self::Bind(_) => RequestKind::Bind,
            Self::Search(_) => RequestKind::Search,
            Self::Modify(_) => RequestKind::Modify,
            Self::Add(_) => RequestKind::Add,
            Self::Delete(_) => RequestKind::Delete,
            Self::ModifyName(_) => RequestKind::ModifyName,
            Self::Compare(_) => RequestKind::Compare,
            Self::Extended(_) => RequestKind::Extended,
            _ => return None,
        })
    }

    /// Whether a client sends it.
    #[must_use]
    pub fn is_request(&self) -> bool {
        self.request_kind().is_some() || matches!(self, Self::Unbind | Self::Abandon(_))
    }

    /// The result in it, if it ends an operation.
    #[must_use]
    pub fn result(&self) -> Option<&LdapResult> {
        match self {
            Self::BindResponse(BindResponse { result, .. })
            | Self::ExtendedResponse(ExtendedResponse { result, .. })
            | Self::SearchDone(result)
            | Self::ModifyResponse(result)
            | Self::AddResponse(result)
            | Self::DeleteResponse(result)
            | Self::ModifyNameResponse(result)
            | Self::CompareResponse(result) => Some(result),
            _ => None,
        }
    }
}

/// Bytes that no log may show.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(pub Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(..)")
    }
}

/// A bind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindRequest {
    /// 3; other versions are answered by `protocolError`.
    pub version: u8,
    /// The name of who binds. Clients send DNs, and some a log-in name or an address.
    pub name: String,
    /// The proof.
    pub authentication: Authentication,
}

/// How a client shows who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// A password. An empty one shows nothing: it is refused, or makes the client anonymous if the name is empty, too
    /// (RFC 4513, section 5.1).
    Simple(Secret),
    /// A step of SASL.
    Sasl {
        /// The mechanism.
        mechanism: String,
        /// What the client says in it.
        credentials: Option<Secret>,
    },
    /// A way that is not in the standard, such as Microsoft's "Sicily"; answered by `authMethodNotSupported`.
    Other {
        /// Its tag.
        tag: u8,
        /// What it holds.
        value: Secret,
    },
}

/// The answer to a bind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindResponse {
    /// `saslBindInProgress` asks for a further step.
    pub result: LdapResult,
    /// What the server says in SASL.
    pub server_credentials: Option<Vec<u8>>,
}

/// How far a search goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The base alone.
    Base,
    /// What is directly below the base.
    OneLevel,
    /// The base and all below it.
    Subtree,
    /// All below the base, without it (draft-sermersheim-ldap-subordinate-scope, in OpenLDAP).
    Subordinates,
}

/// When aliases are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DereferenceAliases {
    /// Never.
    Never,
    /// Below the base.
    InSearching,
    /// To find the base.
    FindingBase,
    /// Always.
    Always,
}

/// A search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchRequest {
    /// The name of the entry where it begins.
    pub base: String,
    /// How far it goes.
    pub scope: Scope,
    /// When aliases are followed.
    pub aliases: DereferenceAliases,
    /// Most entries; 0 asks for no limit.
    pub size_limit: u32,
    /// Most time, in seconds; 0 asks for no limit.
    pub time_limit_s: u32,
    /// Attributes without their values.
    pub types_only: bool,
    /// What entries.
    pub filter: Filter,
    /// What attributes of them; none means all that users write.
    pub attributes: Vec<String>,
}

/// A value and the attribute it is asserted of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assertion {
    /// The attribute, perhaps with options: `cn;lang-de`.
    pub attribute: String,
    /// The value.
    pub value: Vec<u8>,
}

/// A compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompareRequest {
    /// The entry's name.
    pub name: String,
    /// The value that it may have.
    pub assertion: Assertion,
}

/// What happens with an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModifyAction {
    /// Values come.
    Add,
    /// Values go, or all if there are none.
    Delete,
    /// These values take the place of all others.
    Replace,
    /// The value, a number, grows by this one (RFC 4525).
    Increment,
}

/// A change of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModifyRequest {
    /// The entry's name.
    pub name: String,
    /// The changes, in order; all or none are made.
    pub changes: Vec<(ModifyAction, crate::entry::Attribute)>,
}

/// An entry gets another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModifyNameRequest {
    /// The entry's name.
    pub name: String,
    /// Its new name below the entry it stands under.
    pub new_rdn: String,
    /// Whether the values of the old name go.
    pub delete_old_rdn: bool,
    /// The entry that it will stand under, if it moves.
    pub new_superior: Option<String>,
}

/// An extended request.
#[derive(Clone, PartialEq, Eq)]
pub struct ExtendedRequest {
    /// What is asked, as an OID.
    pub name: String,
    /// In the extension's form. It may hold passwords, so that no log shows it.
    pub value: Option<Vec<u8>>,
}

impl fmt::Debug for ExtendedRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.value.as_ref().map(Vec::len);
        formatter.debug_struct("ExtendedRequest").field("name", &self.name).field("bytes", &bytes).finish()
    }
}

/// An extended response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtendedResponse {
    /// How it ended.
    pub result: LdapResult,
    /// What it is, as an OID.
    pub name: Option<String>,
    /// In the extension's form.
    pub value: Option<Vec<u8>>,
}

/// An intermediate response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntermediateResponse {
    /// What it is, as an OID.
    pub name: Option<String>,
    /// In the extension's form.
    pub value: Option<Vec<u8>>,
}

//! Results of operations (RFC 4511, section 4.1.9 and appendix A).

use std::fmt;

use crate::ber::{ENUMERATED, OCTET_STRING, Reader, Writer, context_constructed};
use crate::limits::{Budget, Fault};

/// The number of a result, from 0 to 2³¹-1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResultCode(u32);

macro_rules! result_codes {
    ($($constant:ident $number:literal $name:literal $text:literal;)*) => {
        impl ResultCode {
            $(#[doc = concat!("`", $name, "`: ", $text, ".")] pub const $constant: Self = Self($number);)*

            /// Its name in the standard, if it has one.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self.0 { $($number => Some($name),)* _ => None }
            }

            /// What it says, for people.
            #[must_use]
            pub fn meaning(self) -> Option<&'static str> {
                match self.0 { $($number => Some($text),)* _ => None }
            }
        }
    };
}

result_codes! {
    SUCCESS 0 "success" "the operation is done";
    OPERATIONS_ERROR 1 "operationsError" "the operation does not fit those before it";
    PROTOCOL_ERROR 2 "protocolError" "the request does not follow the protocol";
    TIME_LIMIT_EXCEEDED 3 "timeLimitExceeded" "the search took longer than it may";
    SIZE_LIMIT_EXCEEDED 4 "sizeLimitExceeded" "more entries match than may be sent";
    COMPARE_FALSE 5 "compareFalse" "the value is another one";
    COMPARE_TRUE 6 "compareTrue" "the value is the same";
    AUTH_METHOD_NOT_SUPPORTED 7 "authMethodNotSupported" "this way to say who one is does not exist here";
    STRONGER_AUTH_REQUIRED 8 "strongerAuthRequired" "a better proof of who asks is needed";
    REFERRAL 10 "referral" "another server has it";
    ADMIN_LIMIT_EXCEEDED 11 "adminLimitExceeded" "a limit of the server was met";
    UNAVAILABLE_CRITICAL_EXTENSION 12 "unavailableCriticalExtension" "a critical control is not served";
    CONFIDENTIALITY_REQUIRED 13 "confidentialityRequired" "the connection must be encrypted first";
    SASL_BIND_IN_PROGRESS 14 "saslBindInProgress" "the exchange goes on";
    NO_SUCH_ATTRIBUTE 16 "noSuchAttribute" "the entry has no such attribute or value";
    UNDEFINED_ATTRIBUTE_TYPE 17 "undefinedAttributeType" "no such attribute is known";
    INAPPROPRIATE_MATCHING 18 "inappropriateMatching" "the attribute is not compared in this way";
    CONSTRAINT_VIOLATION 19 "constraintViolation" "the value breaks a rule";
    ATTRIBUTE_OR_VALUE_EXISTS 20 "attributeOrValueExists" "the attribute or value is there already";
    INVALID_ATTRIBUTE_SYNTAX 21 "invalidAttributeSyntax" "the value has the wrong form";
    NO_SUCH_OBJECT 32 "noSuchObject" "no entry has this name";
    ALIAS_PROBLEM 33 "aliasProblem" "an alias leads nowhere";
    INVALID_DN_SYNTAX 34 "invalidDNSyntax" "this is not a distinguished name";
    ALIAS_DEREFERENCING_PROBLEM 36 "aliasDereferencingProblem" "an alias may not be followed";
    INAPPROPRIATE_AUTHENTICATION 48 "inappropriateAuthentication" "this proof does not fit the entry";
    INVALID_CREDENTIALS 49 "invalidCredentials" "the name or the proof is wrong";
    INSUFFICIENT_ACCESS_RIGHTS 50 "insufficientAccessRights" "the rights for this are missing";
    BUSY 51 "busy" "the server has too much to do; try again later";
    UNAVAILABLE 52 "unavailable" "the server is stopping or starting";
    UNWILLING_TO_PERFORM 53 "unwillingToPerform" "the server does not do this";
    LOOP_DETECT 54 "loopDetect" "a reference leads back to itself";
    NAMING_VIOLATION 64 "namingViolation" "the name breaks a rule";
    OBJECT_CLASS_VIOLATION 65 "objectClassViolation" "the entry breaks a rule of its classes";
    NOT_ALLOWED_ON_NON_LEAF 66 "notAllowedOnNonLeaf" "entries are below this one";
    NOT_ALLOWED_ON_RDN 67 "notAllowedOnRDN" "the value is a part of the entry's name";
    ENTRY_ALREADY_EXISTS 68 "entryAlreadyExists" "an entry has this name already";
    OBJECT_CLASS_MODS_PROHIBITED 69 "objectClassModsProhibited" "the class cannot change";
    AFFECTS_MULTIPLE_DSAS 71 "affectsMultipleDSAs" "several servers would have to change";
    OTHER 80 "other" "something else went wrong";
    CANCELED 118 "canceled" "the operation was cancelled";
    NO_SUCH_OPERATION 119 "noSuchOperation" "no operation with this number is running";
    TOO_LATE 120 "tooLate" "the operation cannot be cancelled any more";
    CANNOT_CANCEL 121 "cannotCancel" "operations of this kind cannot be cancelled";
    SYNC_REFRESH_REQUIRED 4096 "e-syncRefreshRequired" "the state is too old; start from the beginning";
}

impl ResultCode {
    /// The code with this number, which is at most 2³¹-1.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        i32::try_from(number).is_ok().then_some(Self(number))
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for ResultCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(formatter, "{name} ({})", self.0),
            None => write!(formatter, "result {}", self.0),
        }
    }
}

impl fmt::Debug for ResultCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LdapResult {
    /// The result.
    pub code: ResultCode,
    /// With `noSuchObject` and its kin: the name of the last entry on the way that exists.
    pub matched_name: String,
    /// Words for the one who reads the client's log.
    pub message: String,
    /// With `referral`: URLs of servers that have it. Empty with every other code.
    pub referrals: Vec<String>,
}

impl LdapResult {
    /// A result with this code and these words.
    #[must_use]
    pub fn new(code: ResultCode, message: &str) -> Self {
        Self { code, matched_name: String::new(), message: message.to_owned(), referrals: Vec::new() }
    }

    /// The operation is done.
    #[must_use]
    pub fn success() -> Self {
        Self::new(ResultCode::SUCCESS, "")
    }

    /// Whether the operation is done.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.code == ResultCode::SUCCESS
    }

    pub(crate) fn read(reader: &mut Reader<'_>, budget: &mut Budget) -> Result<Self, Fault> {
        let code = ResultCode(reader.enumerated()?);
        let matched_name = reader.text()?;
        // Words for people: bytes in them that are no UTF-8 must not make an answer unreadable.
        let message = String::from_utf8_lossy(reader.expect(OCTET_STRING)?).into_owned();
        let referrals = match reader.optional(context_constructed(3))? {
            Some(contents) => Reader::new(contents).list(budget, Reader::text)?,
            None => Vec::new(),
        };
        Ok(Self { code, matched_name, message, referrals })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.integer(ENUMERATED, i64::from(self.code.0));
        writer.text(&self.matched_name);
        writer.text(&self.message);
        if !self.referrals.is_empty() {
            writer.nested(context_constructed(3), |inside| {
                self.referrals.iter().for_each(|url| inside.text(url));
            });
        }
    }
}

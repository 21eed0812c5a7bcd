//! Controls (RFC 4511, section 4.1.11), and those that address books use.

use crate::ber::{BOOLEAN, ENUMERATED, INTEGER, OCTET_STRING, Reader, SEQUENCE, Writer, context, integer};
use crate::limits::{Budget, Fault, MessageLimits};
use crate::operation_read::optional_boolean;
use crate::operation_write::write_true;
use crate::result::ResultCode;

/// Results in pages (RFC 2696).
pub const PAGED_RESULTS: &str = "1.2.840.113556.1.4.319";
/// Results in an order (RFC 2891), as a request.
pub const SORT_REQUEST: &str = "1.2.840.113556.1.4.473";
/// Results in an order, as the answer.
pub const SORT_RESPONSE: &str = "1.2.840.113556.1.4.474";
/// A part of a sorted list (draft-ietf-ldapext-ldapv3-vlv).
pub const VIRTUAL_LIST: &str = "2.16.840.1.113730.3.4.9";
/// References are entries (RFC 3296).
pub const MANAGE_DSA_IT: &str = "2.16.840.1.113730.3.4.2";
/// Asks for the identity in the answer to a bind (RFC 3829).
pub const AUTHORIZATION_IDENTITY_REQUEST: &str = "2.16.840.1.113730.3.4.16";
/// The identity, as the answer.
pub const AUTHORIZATION_IDENTITY_RESPONSE: &str = "2.16.840.1.113730.3.4.15";
/// In the name of another one (RFC 4370).
pub const PROXIED_AUTHORIZATION: &str = "2.16.840.1.113730.3.4.18";
/// Only if a filter matches (RFC 4528).
pub const ASSERTION: &str = "1.3.6.1.1.12";
/// Active Directory's: deleted entries are found, too.
pub const SHOW_DELETED: &str = "1.2.840.113556.1.4.417";

/// A control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// What it is.
    pub oid: String,
    /// Whether the operation fails, by `unavailableCriticalExtension`, where the control is not served.
    pub is_critical: bool,
    /// In the control's own form.
    pub value: Option<Vec<u8>>,
}

impl Control {
    /// A control with a value.
    #[must_use]
    pub fn new(oid: &str, is_critical: bool, value: Option<Vec<u8>>) -> Self {
        Self { oid: oid.to_owned(), is_critical, value }
    }

    pub(crate) fn read(list: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut inside = list.inside(SEQUENCE)?;
        Ok(Self {
            oid: inside.text()?,
            is_critical: optional_boolean(&mut inside, BOOLEAN)?,
            value: inside.optional(OCTET_STRING)?.map(<[u8]>::to_vec),
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.nested(SEQUENCE, |inside| {
            inside.text(&self.oid);
            write_true(inside, BOOLEAN, self.is_critical);
            inside.optional(OCTET_STRING, self.value.as_deref());
        });
    }

    fn contents(&self) -> Result<Reader<'_>, Fault> {
        let value = self.value.as_deref().ok_or(Fault::Value("a control without a value"))?;
        Reader::new(value).inside(SEQUENCE)
    }
}

/// The value of [`PAGED_RESULTS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagedResults {
    /// In a request: entries of a page. In an answer: about how many there are, or 0.
    pub size: u32,
    /// Where the next page begins, for the server alone; empty at the first request and in the last answer.
    pub cookie: Vec<u8>,
}

impl PagedResults {
    /// Reads the control's value.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn parse(control: &Control) -> Result<Self, Fault> {
        let mut inside = control.contents()?;
        Ok(Self { size: inside.number()?, cookie: inside.octets()? })
    }

    /// The control.
    #[must_use]
    pub fn control(&self, is_critical: bool) -> Control {
        let mut writer = Writer::default();
        writer.nested(SEQUENCE, |inside| {
            inside.integer(INTEGER, i64::from(self.size));
            inside.octets(&self.cookie);
        });
        Control::new(PAGED_RESULTS, is_critical, Some(writer.into_bytes()))
    }
}

/// One key of [`SORT_REQUEST`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// The attribute.
    pub attribute: String,
    /// The rule by which values are compared, if not the attribute's own.
    pub rule: Option<String>,
    /// The largest first.
    pub is_reversed: bool,
}

impl SortKey {
    /// Reads the control's value: at most 16 keys.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn parse_list(control: &Control) -> Result<Vec<Self>, Fault> {
        let mut budget = Budget::new(MessageLimits { items: 16, ..MessageLimits::ANONYMOUS });
        control.contents()?.list(&mut budget, |list| {
            let mut inside = list.inside(SEQUENCE)?;
            Ok(Self {
                attribute: inside.text()?,
                rule: inside.optional(context(0))?.map(crate::ber::text).transpose()?,
                is_reversed: optional_boolean(&mut inside, context(1))?,
            })
        })
    }

    /// The control.
    #[must_use]
    pub fn control(keys: &[Self], is_critical: bool) -> Control {
        let mut writer = Writer::default();
        writer.nested(SEQUENCE, |list| {
            for key in keys {
                list.nested(SEQUENCE, |inside| {
                    inside.text(&key.attribute);
                    inside.optional(context(0), key.rule.as_deref().map(str::as_bytes));
                    write_true(inside, context(1), key.is_reversed);
                });
            }
        });
        Control::new(SORT_REQUEST, is_critical, Some(writer.into_bytes()))
    }
}

/// The value of [`SORT_RESPONSE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortResponse {
    /// Whether entries come in order; `unwillingToPerform` where a server does not sort.
    pub code: ResultCode,
    /// The first attribute that could not be sorted by.
    pub attribute: Option<String>,
}

impl SortResponse {
    /// Reads the control's value.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn parse(control: &Control) -> Result<Self, Fault> {
        let mut inside = control.contents()?;
        let number = u32::try_from(integer(inside.expect(ENUMERATED)?)?).map_err(|_| Fault::Integer)?;
        let code = ResultCode::from_number(number).ok_or(Fault::Integer)?;
        Ok(Self { code, attribute: inside.optional(context(0))?.map(crate::ber::text).transpose()? })
    }

    /// The control.
    #[must_use]
    pub fn control(&self) -> Control {
        let mut writer = Writer::default();
        writer.nested(SEQUENCE, |inside| {
            inside.integer(ENUMERATED, i64::from(self.code.number()));
            inside.optional(context(0), self.attribute.as_deref().map(str::as_bytes));
        });
        Control::new(SORT_RESPONSE, false, Some(writer.into_bytes()))
    }
}

//! ENVELOPE and BODYSTRUCTURE (RFC 9051, section 7.5.2). They are written whole: clients show messages wrongly where
//! extension data is missing.

use crate::argument::Arguments;
use crate::command::CommandFault;
use crate::value::Value;

/// Parts in parts.
const DEPTH_MAX: usize = 32;

type Outcome<T> = Result<T, CommandFault>;
type Text = Option<Vec<u8>>;
type Parameters = Vec<(Vec<u8>, Vec<u8>)>;

/// An address, or the beginning or end of a group: one without a host begins a group, which its mailbox names; one
/// without both ends it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Address {
    pub name: Text,
    /// A source route; nobody has one any more.
    pub route: Text,
    pub mailbox: Text,
    pub host: Text,
}

/// The header of a message, as far as lists of messages show it. Nothing is NIL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Envelope {
    pub date: Text,
    pub subject: Text,
    pub from: Vec<Address>,
    pub sender: Vec<Address>,
    pub reply_to: Vec<Address>,
    pub to: Vec<Address>,
    pub cc: Vec<Address>,
    pub bcc: Vec<Address>,
    pub in_reply_to: Text,
    pub message_id: Text,
}

impl Envelope {
    pub(crate) fn read(value: &Value, arguments: &Arguments<'_>) -> Outcome<Self> {
        let values = value.list().ok_or(CommandFault::Syntax)?;
        let mut list = Arguments::new(values, arguments.names);
        let envelope = Self {
            date: nstring(&mut list)?,
            subject: nstring(&mut list)?,
            from: addresses(&mut list)?,
            sender: addresses(&mut list)?,
            reply_to: addresses(&mut list)?,
            to: addresses(&mut list)?,
            cc: addresses(&mut list)?,
            bcc: addresses(&mut list)?,
            in_reply_to: nstring(&mut list)?,
            message_id: nstring(&mut list)?,
        };
        list.end()?;
        Ok(envelope)
    }

    pub(crate) fn value(&self) -> Value {
        let text = |text: &Text| Value::nstring(text.as_deref());
        Value::List(vec![
            text(&self.date),
            text(&self.subject),
            addresses_value(&self.from),
            addresses_value(&self.sender),
            addresses_value(&self.reply_to),
            addresses_value(&self.to),
            addresses_value(&self.cc),
            addresses_value(&self.bcc),
            text(&self.in_reply_to),
            text(&self.message_id),
        ])
    }
}

fn nstring(list: &mut Arguments<'_>) -> Outcome<Text> {
    let value = list.next()?;
    if value.is_nil() {
        Ok(None)
    } else {
        value.bytes().map(|bytes| Some(bytes.to_vec())).ok_or(CommandFault::Syntax)
    }
}

fn string(list: &mut Arguments<'_>) -> Outcome<Vec<u8>> {
    list.bytes().map(<[u8]>::to_vec)
}

fn addresses(list: &mut Arguments<'_>) -> Outcome<Vec<Address>> {
    let value = list.next()?;
    if value.is_nil() {
        return Ok(Vec::new());
    }
    let mut list = Arguments::new(value.list().ok_or(CommandFault::Syntax)?, list.names);
    let mut addresses = Vec::new();
    while !list.is_empty() {
        let mut parts = list.list()?;
        let address = Address {
            name: nstring(&mut parts)?,
            route: nstring(&mut parts)?,
            mailbox: nstring(&mut parts)?,
            host: nstring(&mut parts)?,
        };
        parts.end()?;
        addresses.push(address);
    }
    Ok(addresses)
}

fn addresses_value(addresses: &[Address]) -> Value {
    if addresses.is_empty() {
        return Value::nil();
    }
    let one = |address: &Address| {
        let parts = [&address.name, &address.route, &address.mailbox, &address.host];
        Value::List(parts.iter().map(|part| Value::nstring(part.as_deref())).collect())
    };
    // Without spaces between them (RFC 9051, section 9, `env-from`).
    Value::List(vec![Value::Run(addresses.iter().map(one).collect())])
}

/// What kind of part it is, beyond its media type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinglePart {
    /// Text, with its lines.
    Text(u64),
    /// A message, with its envelope, structure and lines.
    Message(Box<(Envelope, BodyStructure)>, u64),
    /// Anything else.
    Other,
}

/// What each part has that is not made of parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct PartBasics {
    pub media_type: Vec<u8>,
    pub subtype: Vec<u8>,
    pub parameters: Parameters,
    pub id: Text,
    pub description: Text,
    pub encoding: Vec<u8>,
    /// Of the part as it is sent, not decoded.
    pub octets: u64,
}

/// Content-Disposition: the word and its parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Disposition {
    pub kind: Vec<u8>,
    pub parameters: Parameters,
}

/// Extension data, which BODY leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct PartExtension {
    pub disposition: Option<Disposition>,
    pub languages: Vec<Vec<u8>>,
    pub location: Text,
}

/// How a message is made of parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyStructure {
    /// A part of its own; with its Content-MD5 and extension data in BODYSTRUCTURE.
    Single(PartBasics, SinglePart, Option<(Text, PartExtension)>),
    /// Parts, at least one, and their subtype; with parameters and extension data in BODYSTRUCTURE.
    Multipart(Vec<BodyStructure>, Vec<u8>, Option<(Parameters, PartExtension)>),
}

impl BodyStructure {
    pub(crate) fn read(value: &Value, arguments: &Arguments<'_>) -> Outcome<Self> {
        Self::read_at(value, arguments, 0)
    }

    fn read_at(value: &Value, arguments: &Arguments<'_>, depth: usize) -> Outcome<Self> {
        if depth > DEPTH_MAX {
            return Err(CommandFault::TooDeep);
        }
        let mut list = Arguments::new(value.list().ok_or(CommandFault::Syntax)?, arguments.names);
        if list.peek().is_some_and(|first| first.list().is_some()) {
            let mut parts = Vec::new();
            while list.peek().is_some_and(|next| next.list().is_some()) {
                parts.push(Self::read_at(list.next()?, arguments, depth + 1)?);
            }
            let subtype = string(&mut list)?;
            let extension = if list.is_empty() {
                None
            } else {
                Some((parameters(list.next()?, arguments)?, PartExtension::read(&mut list)?))
            };
            return Ok(Self::Multipart(parts, subtype, extension));
        }
        let basics = PartBasics {
            media_type: string(&mut list)?,
            subtype: string(&mut list)?,
            parameters: parameters(list.next()?, arguments)?,
            id: nstring(&mut list)?,
            description: nstring(&mut list)?,
            encoding: string(&mut list)?,
            octets: list.number()?,
        };
        let is_message = basics.media_type.eq_ignore_ascii_case(b"MESSAGE")
            && (basics.subtype.eq_ignore_ascii_case(b"RFC822")
                || basics.subtype.eq_ignore_ascii_case(b"GLOBAL"))
            && list.peek().is_some_and(|next| next.list().is_some());
        let kind = if is_message {
            let envelope = Envelope::read(list.next()?, arguments)?;
            let body = Self::read_at(list.next()?, arguments, depth + 1)?;
            SinglePart::Message(Box::new((envelope, body)), list.number()?)
        } else if basics.media_type.eq_ignore_ascii_case(b"TEXT") {
            SinglePart::Text(list.number()?)
        } else {
            SinglePart::Other
        };
        let extension =
            if list.is_empty() { None } else { Some((nstring(&mut list)?, PartExtension::read(&mut list)?)) };
        Ok(Self::Single(basics, kind, extension))
    }

    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Multipart(parts, subtype, extension) => {
                let mut list =
                    vec![Value::Run(parts.iter().map(Self::value).collect()), Value::Text(subtype.clone())];
                if let Some((parameters, extension)) = extension {
                    list.push(parameters_value(parameters));
                    extension.write(&mut list);
                }
                Value::List(list)
            }
            Self::Single(basics, kind, extension) => {
                let mut list = vec![
                    Value::Text(basics.media_type.clone()),
                    Value::Text(basics.subtype.clone()),
                    parameters_value(&basics.parameters),
                    Value::nstring(basics.id.as_deref()),
                    Value::nstring(basics.description.as_deref()),
                    Value::Text(basics.encoding.clone()),
                    Value::atom(basics.octets.to_string()),
                ];
                match kind {
                    SinglePart::Text(lines) => list.push(Value::atom(lines.to_string())),
                    SinglePart::Message(inner, lines) => {
                        let (envelope, body) = inner.as_ref();
                        list.extend([envelope.value(), body.value(), Value::atom(lines.to_string())]);
                    }
                    SinglePart::Other => {}
                }
                if let Some((md5, extension)) = extension {
                    list.push(Value::nstring(md5.as_deref()));
                    extension.write(&mut list);
                }
                Value::List(list)
            }
        }
    }
}

impl PartExtension {
    /// Servers may leave out what comes last; more than is known is passed over.
    fn read(list: &mut Arguments<'_>) -> Outcome<Self> {
        let mut extension = Self::default();
        if list.is_empty() {
            return Ok(extension);
        }
        let value = list.next()?;
        if !value.is_nil() {
            let mut parts = Arguments::new(value.list().ok_or(CommandFault::Syntax)?, list.names);
            let kind = string(&mut parts)?;
            extension.disposition = Some(Disposition { kind, parameters: parameters(parts.next()?, list)? });
        }
        if list.peek().is_some_and(Value::is_nil) {
            list.next()?;
        } else if !list.is_empty() {
            let mut languages = list.list_or_one()?;
            while !languages.is_empty() {
                extension.languages.push(string(&mut languages)?);
            }
        }
        if !list.is_empty() {
            extension.location = nstring(list)?;
        }
        Ok(extension)
    }

    fn write(&self, list: &mut Vec<Value>) {
        list.push(self.disposition.as_ref().map_or_else(Value::nil, |disposition| {
            let parameters = parameters_value(&disposition.parameters);
            Value::List(vec![Value::Text(disposition.kind.clone()), parameters])
        }));
        list.push(match self.languages.as_slice() {
            [] => Value::nil(),
            languages => {
                Value::List(languages.iter().map(|language| Value::Text(language.clone())).collect())
            }
        });
        list.push(Value::nstring(self.location.as_deref()));
    }
}

fn parameters(value: &Value, arguments: &Arguments<'_>) -> Outcome<Parameters> {
    if value.is_nil() {
        return Ok(Vec::new());
    }
    let mut list = Arguments::new(value.list().ok_or(CommandFault::Syntax)?, arguments.names);
    let mut parameters = Vec::new();
    while !list.is_empty() {
        parameters.push((string(&mut list)?, string(&mut list)?));
    }
    Ok(parameters)
}

fn parameters_value(parameters: &[(Vec<u8>, Vec<u8>)]) -> Value {
    if parameters.is_empty() {
        return Value::nil();
    }
    let texts =
        parameters.iter().flat_map(|(name, value)| [Value::Text(name.clone()), Value::Text(value.clone())]);
    Value::List(texts.collect())
}

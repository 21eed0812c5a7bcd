//! Reads commands.

use scrinium_line_wire::{InitialResponse, Mechanism};

use crate::argument::{Arguments, date_time};
use crate::command::{
    AppendMessage, Command, CommandError, CommandFault, CommandOptions, MessageData, QresyncParameters,
    SelectParameters, StoreAction, Tag, TaggedCommand,
};
use crate::fetch::{FetchAttribute, FetchModifiers};
use crate::frame::Part;
use crate::list::{ListCommand, StatusItem, pattern};
use crate::search::{SearchProgram, SortKey, returns};
use crate::set::{SequenceSet, SetNumber};
use crate::value::{Value, parse_values};

/// Messages of one APPEND.
const MESSAGES_MAX: usize = 1000;

/// Fields of ID (RFC 2971, section 3.3).
const ID_FIELDS_MAX: usize = 30;

type Outcome<T> = Result<T, CommandFault>;

impl TaggedCommand {
    /// Reads a frame of a client.
    ///
    /// # Errors
    /// [`CommandError`]
    pub fn parse(parts: &[Part], options: CommandOptions) -> Result<Self, CommandError> {
        let tag = Self::tag_of(parts);
        let values = parse_values(parts, options.limits)
            .map_err(|error| CommandError { tag: tag.clone(), fault: error.into() })?;
        let mut arguments = Arguments::new(&values, options.names);
        let tag = tag.ok_or(CommandError { tag: None, fault: CommandFault::Tag })?;
        let command = arguments.next().and_then(|_| command(&mut arguments));
        match command {
            Ok(command) => Ok(Self { tag, command }),
            Err(fault) => Err(CommandError { tag: Some(tag), fault }),
        }
    }

    /// The tag of a frame, also of one that is no command or was refused.
    #[must_use]
    pub fn tag_of(parts: &[Part]) -> Option<Tag> {
        let Some(Part::Text(text)) = parts.first() else { return None };
        let end = text.iter().position(|byte| *byte == b' ').unwrap_or(text.len());
        std::str::from_utf8(text.get(..end)?).ok().and_then(Tag::new)
    }
}

fn command(arguments: &mut Arguments<'_>) -> Outcome<Command> {
    let word = arguments.word()?;
    let command = match word.as_str() {
        "UID" => {
            let word = arguments.word()?;
            numbered(&word, true, arguments)?
        }
        word => match any(word, arguments)? {
            Some(command) => command,
            None => numbered(word, false, arguments)?,
        },
    };
    arguments.end()?;
    Ok(command)
}

/// Commands that have no form with UIDs.
fn any(word: &str, arguments: &mut Arguments<'_>) -> Outcome<Option<Command>> {
    Ok(Some(match word {
        "CAPABILITY" => Command::Capability,
        "NOOP" => Command::Noop,
        "LOGOUT" => Command::Logout,
        "ID" => Command::Id(id(arguments)?),
        "STARTTLS" => Command::StartTls,
        "AUTHENTICATE" => authenticate(arguments)?,
        "LOGIN" => Command::Login { name: arguments.text()?, password: arguments.bytes()?.to_vec() },
        "UNAUTHENTICATE" => Command::Unauthenticate,
        "ENABLE" => Command::Enable(words(arguments)?),
        "SELECT" | "EXAMINE" => {
            let mailbox = arguments.mailbox()?;
            Command::Select {
                mailbox,
                parameters: select_parameters(arguments)?,
                read_only: word == "EXAMINE",
            }
        }
        "CREATE" => Command::Create { mailbox: arguments.mailbox()?, special_uses: special_uses(arguments)? },
        "DELETE" => Command::Delete(arguments.mailbox()?),
        "RENAME" => Command::Rename { from: arguments.mailbox()?, to: arguments.mailbox()? },
        "SUBSCRIBE" => Command::Subscribe(arguments.mailbox()?),
        "UNSUBSCRIBE" => Command::Unsubscribe(arguments.mailbox()?),
        "LIST" => Command::List(ListCommand::read(arguments)?),
        "LSUB" => Command::Lsub { reference: pattern(arguments)?, pattern: pattern(arguments)? },
        "NAMESPACE" => Command::Namespace,
        "STATUS" => {
            Command::Status { mailbox: arguments.mailbox()?, items: StatusItem::read_all(arguments)? }
        }
        "APPEND" => append(arguments)?,
        "IDLE" => Command::Idle,
        "GETQUOTA" => Command::GetQuota(arguments.text()?),
        "GETQUOTAROOT" => Command::GetQuotaRoot(arguments.mailbox()?),
        "SETQUOTA" => Command::SetQuota { root: arguments.text()?, limits: quota_limits(arguments)? },
        "GETACL" => Command::GetAcl(arguments.mailbox()?),
        "SETACL" => {
            let (mailbox, identifier) = (arguments.mailbox()?, arguments.text()?);
            Command::SetAcl { mailbox, identifier, rights: arguments.text()? }
        }
        "DELETEACL" => Command::DeleteAcl { mailbox: arguments.mailbox()?, identifier: arguments.text()? },
        "LISTRIGHTS" => Command::ListRights { mailbox: arguments.mailbox()?, identifier: arguments.text()? },
        "MYRIGHTS" => Command::MyRights(arguments.mailbox()?),
        "GETMETADATA" => get_metadata(arguments)?,
        "SETMETADATA" => {
            Command::SetMetadata { mailbox: mailbox_or_server(arguments)?, entries: metadata(arguments)? }
        }
        "COMPRESS" => Command::Compress(arguments.word()?),
        "NOTIFY" => {
            let mut values = vec![arguments.next()?.clone()];
            while !arguments.is_empty() {
                values.push(arguments.next()?.clone());
            }
            Command::Notify(values)
        }
        "CHECK" => Command::Check,
        "CLOSE" => Command::Close,
        "UNSELECT" => Command::Unselect,
        "EXPUNGE" => Command::Expunge,
        "UIDBATCHES" => uid_batches(arguments)?,
        _ => return Ok(None),
    }))
}

/// Commands that have a form with UIDs.
fn numbered(word: &str, uid: bool, arguments: &mut Arguments<'_>) -> Outcome<Command> {
    Ok(match word {
        "EXPUNGE" if uid => Command::UidExpunge(arguments.set()?),
        "SEARCH" => Command::Search { uid, program: SearchProgram::read(arguments)? },
        "SORT" => {
            let returns = returns(arguments)?;
            let keys = SortKey::read_all(arguments)?;
            Command::Sort { uid, keys, program: SearchProgram::read_with_charset(returns, arguments)? }
        }
        "THREAD" => {
            let algorithm = arguments.word()?;
            Command::Thread { uid, algorithm, program: SearchProgram::read_with_charset(None, arguments)? }
        }
        "FETCH" => {
            let set = arguments.set()?;
            let attributes = FetchAttribute::read_all(arguments)?;
            Command::Fetch { uid, set, attributes, modifiers: FetchModifiers::read(arguments)? }
        }
        "STORE" => store(uid, arguments)?,
        "COPY" => Command::Copy { uid, set: arguments.set()?, mailbox: arguments.mailbox()? },
        "MOVE" => Command::Move { uid, set: arguments.set()?, mailbox: arguments.mailbox()? },
        "REPLACE" => {
            let (number, mailbox) = (arguments.number32()?, arguments.mailbox()?);
            if number == 0 {
                return Err(CommandFault::Number);
            }
            Command::Replace { uid, number, mailbox, message: message(arguments)? }
        }
        _ => return Err(CommandFault::Unknown),
    })
}

/// NIL and an empty list are nothing, and values may be NIL.
fn id(arguments: &mut Arguments<'_>) -> Outcome<Vec<(String, Option<String>)>> {
    let mut fields = Vec::new();
    if arguments.take("NIL") {
        return Ok(fields);
    }
    let mut list = arguments.list()?;
    while !list.is_empty() {
        let name = list.text()?;
        let value = list.next()?;
        fields.push((name, if value.is_nil() { None } else { Some(crate::argument::text(value)?) }));
        if fields.len() > ID_FIELDS_MAX {
            return Err(CommandFault::TooMany);
        }
    }
    Ok(fields)
}

fn authenticate(arguments: &mut Arguments<'_>) -> Outcome<Command> {
    let mechanism = Mechanism::parse(arguments.bytes()?).map_err(|_| CommandFault::Sasl)?;
    let response = if arguments.is_empty() {
        None
    } else {
        Some(InitialResponse::decode(arguments.bytes()?).map_err(|_| CommandFault::Sasl)?)
    };
    Ok(Command::Authenticate(mechanism, response))
}

fn words(arguments: &mut Arguments<'_>) -> Outcome<Vec<String>> {
    let mut words = vec![arguments.word()?];
    while !arguments.is_empty() {
        words.push(arguments.word()?);
    }
    Ok(words)
}

fn select_parameters(arguments: &mut Arguments<'_>) -> Outcome<SelectParameters> {
    let mut parameters = SelectParameters::default();
    if arguments.is_empty() {
        return Ok(parameters);
    }
    let mut list = arguments.list()?;
    while !list.is_empty() {
        match list.word()?.as_str() {
            "CONDSTORE" => parameters.condstore = true,
            "QRESYNC" if parameters.qresync.is_none() => {
                parameters.qresync = Some(qresync(&mut list.list()?)?);
            }
            _ => return Err(CommandFault::Unknown),
        }
    }
    Ok(parameters)
}

fn qresync(list: &mut Arguments<'_>) -> Outcome<QresyncParameters> {
    let (uid_validity, change) = (list.number32()?, list.number()?);
    let is_set = |list: &Arguments<'_>| list.peek().is_some_and(|value| value.as_atom().is_some());
    let known_uids = if is_set(list) { Some(list.set()?) } else { None };
    let matches = if list.is_empty() {
        None
    } else {
        let mut pair = list.list()?;
        let matches = (pair.set()?, pair.set()?);
        pair.end()?;
        Some(matches)
    };
    list.end()?;
    Ok(QresyncParameters { uid_validity, change, known_uids, matches })
}

fn special_uses(arguments: &mut Arguments<'_>) -> Outcome<Vec<String>> {
    let mut uses = Vec::new();
    if arguments.is_empty() {
        return Ok(uses);
    }
    let mut list = arguments.list()?;
    if !list.take("USE") {
        return Err(CommandFault::Unknown);
    }
    let mut names = list.list()?;
    list.end()?;
    while !names.is_empty() {
        uses.push(names.atom()?);
    }
    Ok(uses)
}

fn append(arguments: &mut Arguments<'_>) -> Outcome<Command> {
    let mailbox = arguments.mailbox()?;
    let mut messages = vec![message(arguments)?];
    while !arguments.is_empty() {
        if messages.len() >= MESSAGES_MAX {
            return Err(CommandFault::TooMany);
        }
        messages.push(message(arguments)?);
    }
    Ok(Command::Append { mailbox, messages })
}

fn message(arguments: &mut Arguments<'_>) -> Outcome<AppendMessage> {
    let has_flags = arguments.peek().is_some_and(|value| value.list().is_some());
    let flags = if has_flags { arguments.list()?.all_flags()? } else { Vec::new() };
    let mut date = None;
    // A date is a quoted string, and a literal follows it; a message alone may be a string, too.
    if arguments.len() > 1
        && let Some(value @ Value::Text(_)) = arguments.peek()
        && let Ok(found) = date_time(value)
    {
        date = Some(found);
        arguments.next()?;
    }
    let utf8 = arguments.take("UTF8");
    let data = if utf8 {
        let mut list = arguments.list()?;
        let data = MessageData::read(list.next()?)?;
        list.end()?;
        data
    } else {
        MessageData::read(arguments.next()?)?
    };
    if data == MessageData::Nil {
        Err(CommandFault::Syntax)
    } else {
        Ok(AppendMessage { flags, date, utf8, data })
    }
}

fn uid_batches(arguments: &mut Arguments<'_>) -> Outcome<Command> {
    let size = arguments.number32()?;
    if size == 0 {
        return Err(CommandFault::Number);
    }
    if arguments.is_empty() {
        return Ok(Command::UidBatches { size, range: None });
    }
    match arguments.set()? {
        SequenceSet::Ranges(ranges) => match ranges.as_slice() {
            [(SetNumber::Number(from), SetNumber::Number(to))] => {
                Ok(Command::UidBatches { size, range: Some((*from, *to)) })
            }
            _ => Err(CommandFault::Set),
        },
        SequenceSet::Saved => Err(CommandFault::Set),
    }
}

fn store(uid: bool, arguments: &mut Arguments<'_>) -> Outcome<Command> {
    let set = arguments.set()?;
    let mut unchanged_since = None;
    if arguments.peek().is_some_and(|value| value.list().is_some()) {
        let mut list = arguments.list()?;
        if !list.take("UNCHANGEDSINCE") {
            return Err(CommandFault::Unknown);
        }
        unchanged_since = Some(list.number()?);
        list.end()?;
    }
    let (action, silent) = match arguments.word()?.as_str() {
        "FLAGS" => (StoreAction::Replace, false),
        "FLAGS.SILENT" => (StoreAction::Replace, true),
        "+FLAGS" => (StoreAction::Add, false),
        "+FLAGS.SILENT" => (StoreAction::Add, true),
        "-FLAGS" => (StoreAction::Remove, false),
        "-FLAGS.SILENT" => (StoreAction::Remove, true),
        _ => return Err(CommandFault::Unknown),
    };
    let is_list = arguments.peek().is_some_and(|value| value.list().is_some());
    let flags = if is_list { arguments.flags()? } else { arguments.all_flags()? };
    Ok(Command::Store { uid, set, unchanged_since, action, silent, flags })
}

fn quota_limits(arguments: &mut Arguments<'_>) -> Outcome<Vec<(String, u64)>> {
    let mut list = arguments.list()?;
    let mut limits = Vec::new();
    while !list.is_empty() {
        limits.push((list.word()?, list.number()?));
    }
    Ok(limits)
}

/// A mailbox's name, or nothing for the server.
fn mailbox_or_server(arguments: &mut Arguments<'_>) -> Outcome<String> {
    Ok(arguments.mailbox()?.as_str().to_owned())
}

fn get_metadata(arguments: &mut Arguments<'_>) -> Outcome<Command> {
    let (mut max_size, mut depth) = (None, Some(0));
    // The options stand before or behind the name of the mailbox, as RFC 5464 and its examples have it.
    let mut options = |list: &mut Arguments<'_>| -> Outcome<()> {
        while !list.is_empty() {
            match list.word()?.as_str() {
                "MAXSIZE" => max_size = Some(list.number()?),
                "DEPTH" => {
                    depth = match list.word()?.as_str() {
                        "0" => Some(0),
                        "1" => Some(1),
                        "INFINITY" => None,
                        _ => return Err(CommandFault::Syntax),
                    };
                }
                _ => return Err(CommandFault::Unknown),
            }
        }
        Ok(())
    };
    if arguments.peek().is_some_and(|value| value.list().is_some()) {
        options(&mut arguments.list()?)?;
    }
    let mailbox = mailbox_or_server(arguments)?;
    if arguments.len() > 1 && arguments.peek().is_some_and(|value| value.list().is_some()) {
        options(&mut arguments.list()?)?;
    }
    let mut list = arguments.list_or_one()?;
    let mut entries = Vec::new();
    while !list.is_empty() {
        entries.push(list.text()?);
    }
    if entries.is_empty() {
        return Err(CommandFault::Missing);
    }
    Ok(Command::GetMetadata { mailbox, entries, max_size, depth })
}

/// Names and values of entries; NIL removes one.
pub(crate) fn metadata(arguments: &mut Arguments<'_>) -> Outcome<Vec<(String, Option<Vec<u8>>)>> {
    let mut list = arguments.list()?;
    let mut entries = Vec::new();
    while !list.is_empty() {
        let name = list.text()?;
        let value = list.next()?;
        let value =
            if value.is_nil() { None } else { Some(value.bytes().ok_or(CommandFault::Syntax)?.to_vec()) };
        entries.push((name, value));
    }
    Ok(entries)
}

/// The text of a set, where a client asks for numbers that it knows.
impl From<u32> for SequenceSet {
    fn from(number: u32) -> Self {
        let number = SetNumber::Number(number.max(1));
        Self::range(number, number)
    }
}

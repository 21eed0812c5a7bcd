//! Writes commands.

use crate::argument::{astring, atoms, flags, mailbox};
use crate::command::{
    AppendMessage, Command, MessageData, QresyncParameters, SelectParameters, StoreAction, Tag,
};
use crate::frame::Speaker;
use crate::list::{StatusItem, pattern_value};
use crate::mailbox::{MailboxName, NameEncoding};
use crate::search::{SortKey, write_returns};
use crate::value::Value;
use crate::write::{Segment, WriteOptions, joined, write_values};

impl Command {
    /// Writes the command with its tag.
    #[must_use]
    pub fn write(&self, tag: &Tag, names: NameEncoding, options: WriteOptions) -> Vec<Segment> {
        let mut values = vec![Value::atom(tag.as_str())];
        values.extend(self.values(names));
        write_values(&values, options)
    }

    /// The command without passwords and messages, for people.
    #[must_use]
    pub fn shown(&self) -> String {
        let values = match self {
            Self::Login { name, .. } => vec![Value::atom("LOGIN"), astring(name), Value::atom("***")],
            Self::Authenticate(mechanism, _) => {
                vec![Value::atom("AUTHENTICATE"), Value::atom(mechanism.as_str())]
            }
            Self::Append { mailbox: name, .. } => {
                vec![Value::atom("APPEND"), mailbox(name, NameEncoding::Utf7)]
            }
            command => command.values(NameEncoding::Utf7),
        };
        let options = WriteOptions { speaker: Speaker::Server, unasked_bytes: 0, utf8: true };
        String::from_utf8_lossy(&joined(&write_values(&values, options))).trim_end().to_owned()
    }

    /// What the command is made of.
    #[must_use]
    pub fn values(&self, names: NameEncoding) -> Vec<Value> {
        let mut out = Vec::new();
        if !self.write_simple(names, &mut out) {
            self.write_numbered(names, &mut out);
        }
        out
    }

    /// Commands that have no form with UIDs. Says whether it is one.
    #[allow(clippy::too_many_lines, reason = "one arm a command")]
    fn write_simple(&self, names: NameEncoding, out: &mut Vec<Value>) -> bool {
        let mailbox = |name: &MailboxName| mailbox(name, names);
        let server =
            |name: &str| MailboxName::new(name).map_or_else(|| Value::text_of(""), |name| mailbox(&name));
        match self {
            Self::Capability => word(out, "CAPABILITY"),
            Self::Noop => word(out, "NOOP"),
            Self::Logout => word(out, "LOGOUT"),
            Self::Id(fields) => {
                word(out, "ID");
                out.push(id_value(fields));
            }
            Self::StartTls => word(out, "STARTTLS"),
            Self::Authenticate(mechanism, response) => {
                all(out, "AUTHENTICATE", [Value::atom(mechanism.as_str())]);
                out.extend(response.iter().map(|response| Value::atom(response.encode())));
            }
            Self::Login { name, password } => {
                all(out, "LOGIN", [Value::text_of(name), Value::Text(password.clone())]);
            }
            Self::Unauthenticate => word(out, "UNAUTHENTICATE"),
            Self::Enable(names) => all(out, "ENABLE", atoms(names)),
            Self::Select { mailbox: name, parameters, read_only } => {
                all(out, if *read_only { "EXAMINE" } else { "SELECT" }, [mailbox(name)]);
                parameters.write(out);
            }
            Self::Create { mailbox: name, special_uses } => {
                all(out, "CREATE", [mailbox(name)]);
                if !special_uses.is_empty() {
                    let uses = Value::List(atoms(special_uses));
                    out.push(Value::List(vec![Value::atom("USE"), uses]));
                }
            }
            Self::Delete(name) => all(out, "DELETE", [mailbox(name)]),
            Self::Rename { from, to } => all(out, "RENAME", [mailbox(from), mailbox(to)]),
            Self::Subscribe(name) => all(out, "SUBSCRIBE", [mailbox(name)]),
            Self::Unsubscribe(name) => all(out, "UNSUBSCRIBE", [mailbox(name)]),
            Self::List(list) => {
                word(out, "LIST");
                list.write(names, out);
            }
            Self::Lsub { reference, pattern } => {
                all(out, "LSUB", [pattern_value(reference, names), pattern_value(pattern, names)]);
            }
            Self::Namespace => word(out, "NAMESPACE"),
            Self::Status { mailbox: name, items } => {
                all(out, "STATUS", [mailbox(name), StatusItem::write_all(items)]);
            }
            Self::Append { mailbox: name, messages } => {
                all(out, "APPEND", [mailbox(name)]);
                messages.iter().for_each(|message| message.write(out));
            }
            Self::Idle => word(out, "IDLE"),
            Self::GetQuota(root) => all(out, "GETQUOTA", [astring(root)]),
            Self::GetQuotaRoot(name) => all(out, "GETQUOTAROOT", [mailbox(name)]),
            Self::SetQuota { root, limits } => {
                let pairs = limits
                    .iter()
                    .flat_map(|(name, limit)| [Value::atom(name.as_str()), Value::atom(limit.to_string())]);
                all(out, "SETQUOTA", [astring(root), Value::List(pairs.collect())]);
            }
            Self::GetAcl(name) => all(out, "GETACL", [mailbox(name)]),
            Self::SetAcl { mailbox: name, identifier, rights } => {
                all(out, "SETACL", [mailbox(name), astring(identifier), astring(rights)]);
            }
            Self::DeleteAcl { mailbox: name, identifier } => {
                all(out, "DELETEACL", [mailbox(name), astring(identifier)]);
            }
            Self::ListRights { mailbox: name, identifier } => {
                all(out, "LISTRIGHTS", [mailbox(name), astring(identifier)]);
            }
            Self::MyRights(name) => all(out, "MYRIGHTS", [mailbox(name)]),
            Self::GetMetadata { mailbox: name, entries, max_size, depth } => {
                word(out, "GETMETADATA");
                write_metadata_options(*max_size, *depth, out);
                out.push(server(name));
                out.push(Value::List(entries.iter().map(|entry| astring(entry)).collect()));
            }
            Self::SetMetadata { mailbox: name, entries } => {
                all(out, "SETMETADATA", [server(name), metadata_value(entries)]);
            }
            Self::Compress(algorithm) => all(out, "COMPRESS", [Value::atom(algorithm.as_str())]),
            Self::Notify(values) => all(out, "NOTIFY", values.iter().cloned()),
            Self::Check => word(out, "CHECK"),
            Self::Close => word(out, "CLOSE"),
            Self::Unselect => word(out, "UNSELECT"),
            Self::Expunge => word(out, "EXPUNGE"),
            Self::UidBatches { size, range } => {
                all(out, "UIDBATCHES", [Value::atom(size.to_string())]);
                out.extend(range.iter().map(|(from, to)| Value::atom(format!("{from}:{to}"))));
            }
            _ => return false,
        }
        true
    }

    fn write_numbered(&self, names: NameEncoding, out: &mut Vec<Value>) {
        let mut begin = |uid: bool, name: &str| {
            if uid {
                word(out, "UID");
            }
            word(out, name);
        };
        match self {
            Self::UidExpunge(set) => {
                begin(true, "EXPUNGE");
                out.push(Value::atom(set.to_string()));
            }
            Self::Search { uid, program } => {
                begin(*uid, "SEARCH");
                program.write(out);
            }
            Self::Sort { uid, keys, program } => {
                begin(*uid, "SORT");
                write_returns(program.returns.as_deref(), out);
                out.push(SortKey::write_all(keys));
                out.push(astring(program.charset.as_deref().unwrap_or("UTF-8")));
                program.keys.iter().for_each(|key| key.write(out));
            }
            Self::Thread { uid, algorithm, program } => {
                begin(*uid, "THREAD");
                out.push(Value::atom(algorithm.as_str()));
                out.push(astring(program.charset.as_deref().unwrap_or("UTF-8")));
                program.keys.iter().for_each(|key| key.write(out));
            }
            Self::Fetch { uid, set, attributes, modifiers } => {
                begin(*uid, "FETCH");
                out.push(Value::atom(set.to_string()));
                let mut list = Vec::new();
                attributes.iter().for_each(|attribute| attribute.write(&mut list));
                out.push(Value::List(list));
                modifiers.write(out);
            }
            Self::Store { uid, set, unchanged_since, action, silent, flags: all } => {
                begin(*uid, "STORE");
                out.push(Value::atom(set.to_string()));
                if let Some(change) = unchanged_since {
                    let modifier = [Value::atom("UNCHANGEDSINCE"), Value::atom(change.to_string())];
                    out.push(Value::List(modifier.to_vec()));
                }
                let sign = match action {
                    StoreAction::Replace => "",
                    StoreAction::Add => "+",
                    StoreAction::Remove => "-",
                };
                out.push(Value::atom(format!("{sign}FLAGS{}", if *silent { ".SILENT" } else { "" })));
                out.push(flags(all));
            }
            Self::Copy { uid, set, mailbox: name } => {
                begin(*uid, "COPY");
                out.extend([Value::atom(set.to_string()), mailbox(name, names)]);
            }
            Self::Move { uid, set, mailbox: name } => {
                begin(*uid, "MOVE");
                out.extend([Value::atom(set.to_string()), mailbox(name, names)]);
            }
            Self::Replace { uid, number, mailbox: name, message } => {
                begin(*uid, "REPLACE");
                out.extend([Value::atom(number.to_string()), mailbox(name, names)]);
                message.write(out);
            }
            _ => {}
        }
    }
}

fn word(out: &mut Vec<Value>, word: &str) {
    out.push(Value::atom(word));
}

fn all(out: &mut Vec<Value>, name: &str, values: impl IntoIterator<Item = Value>) {
    word(out, name);
    out.extend(values);
}

pub(crate) fn id_value(fields: &[(String, Option<String>)]) -> Value {
    if fields.is_empty() {
        return Value::nil();
    }
    let pairs = fields.iter().flat_map(|(name, value)| {
        [Value::text_of(name), Value::nstring(value.as_ref().map(String::as_bytes))]
    });
    Value::List(pairs.collect())
}

pub(crate) fn metadata_value(entries: &[(String, Option<Vec<u8>>)]) -> Value {
    let pairs = entries.iter().flat_map(|(name, value)| [astring(name), Value::nstring(value.as_deref())]);
    Value::List(pairs.collect())
}

fn write_metadata_options(max_size: Option<u64>, depth: Option<u8>, out: &mut Vec<Value>) {
    let mut options = Vec::new();
    if let Some(max_size) = max_size {
        options.extend([Value::atom("MAXSIZE"), Value::atom(max_size.to_string())]);
    }
    match depth {
        Some(0) => {}
        Some(_) => options.extend([Value::atom("DEPTH"), Value::atom("1")]),
        None => options.extend([Value::atom("DEPTH"), Value::atom("infinity")]),
    }
    if !options.is_empty() {
        out.push(Value::List(options));
    }
}

impl SelectParameters {
    fn write(&self, out: &mut Vec<Value>) {
        let mut list = Vec::new();
        if self.condstore {
            word(&mut list, "CONDSTORE");
        }
        if let Some(QresyncParameters { uid_validity, change, known_uids, matches }) = &self.qresync {
            let mut inner = vec![Value::atom(uid_validity.to_string()), Value::atom(change.to_string())];
            inner.extend(known_uids.iter().map(|set| Value::atom(set.to_string())));
            if let Some((numbers, uids)) = matches {
                inner
                    .push(Value::List(vec![Value::atom(numbers.to_string()), Value::atom(uids.to_string())]));
            }
            list.extend([Value::atom("QRESYNC"), Value::List(inner)]);
        }
        if !list.is_empty() {
            out.push(Value::List(list));
        }
    }
}

impl AppendMessage {
    fn write(&self, out: &mut Vec<Value>) {
        if !self.flags.is_empty() {
            out.push(flags(&self.flags));
        }
        out.extend(self.date.iter().map(|date| Value::text_of(&date.to_string())));
        let data = match &self.data {
            MessageData::Bytes(bytes) => Value::Literal(bytes.clone()),
            data => data.value(),
        };
        if self.utf8 {
            out.extend([Value::atom("UTF8"), Value::List(vec![data])]);
        } else {
            out.push(data);
        }
    }
}

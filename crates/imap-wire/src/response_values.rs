//! What untagged responses are made of (RFC 9051, sections 7.2 to 7.5).

use crate::argument::{Arguments, astring, atoms, flags, mailbox};
use crate::command::CommandFault;
use crate::command_read::metadata;
use crate::command_write::{id_value, metadata_value};
use crate::fetch::partial_range;
use crate::fetched::FetchItem;
use crate::frame::Part;
use crate::list::{ListedMailbox, StatusItem};
use crate::mailbox::{MailboxName, NameEncoding};
use crate::response::{Namespace, Response, SearchResult, Thread};
use crate::set::SequenceSet;
use crate::value::{Value, ValueLimits, parse_values};

type Outcome<T> = Result<T, CommandFault>;

/// Branches in branches.
const DEPTH_MAX: usize = 32;

impl Response {
    /// Reads what follows `* `.
    pub(crate) fn untagged(parts: &[Part], names: NameEncoding, limits: ValueLimits) -> Outcome<Self> {
        let values = parse_values(parts, limits)?;
        let mut arguments = Arguments::new(&values, names);
        if let Some(number) = arguments.peek().and_then(Value::number) {
            arguments.next()?;
            return numbered(number, &mut arguments);
        }
        let word = arguments.word()?;
        let mut known = arguments.clone();
        match named(&word, &mut known)? {
            Some(response) => Ok(response),
            None => Ok(Self::Other(None, word, all(&mut arguments)?)),
        }
    }

    #[allow(clippy::too_many_lines, reason = "one arm a response")]
    pub(crate) fn write_values(&self, names: NameEncoding, out: &mut Vec<Value>) {
        let word = |text: &str| Value::atom(text);
        let number = |number: u64| Value::atom(number.to_string());
        match self {
            Self::Continuation(_) | Self::Status { .. } => {}
            Self::Capability(capabilities) => {
                out.push(word("CAPABILITY"));
                out.extend(atoms(capabilities));
            }
            Self::Enabled(capabilities) => {
                out.push(word("ENABLED"));
                out.extend(atoms(capabilities));
            }
            Self::Id(fields) => out.extend([word("ID"), id_value(fields)]),
            Self::Flags(all) => out.extend([word("FLAGS"), flags(all)]),
            Self::List(listed) => {
                out.push(word("LIST"));
                listed.write(names, out);
            }
            Self::Lsub(listed) => {
                out.push(word("LSUB"));
                listed.write(names, out);
            }
            Self::Namespace { personal, other_users, shared } => {
                out.push(word("NAMESPACE"));
                out.extend([personal, other_users, shared].map(|space| namespace_value(space, names)));
            }
            Self::MailboxStatus { mailbox: name, items } => {
                let items = items.iter().flat_map(|(item, value)| [word(item.word()), value.clone()]);
                out.extend([word("STATUS"), mailbox(name, names), Value::List(items.collect())]);
            }
            Self::Search { found, mod_seq } => numbers("SEARCH", found, *mod_seq, out),
            Self::Sort { found, mod_seq } => numbers("SORT", found, *mod_seq, out),
            Self::Thread(threads) => {
                out.push(word("THREAD"));
                if !threads.is_empty() {
                    out.push(Value::Run(threads.iter().map(thread_value).collect()));
                }
            }
            Self::Esearch(result) => result.write(out),
            Self::Exists(count) => out.extend([number(u64::from(*count)), word("EXISTS")]),
            Self::Recent(count) => out.extend([number(u64::from(*count)), word("RECENT")]),
            Self::Expunge(message) => out.extend([number(u64::from(*message)), word("EXPUNGE")]),
            Self::Vanished { earlier, uids } => {
                out.push(word("VANISHED"));
                if *earlier {
                    out.push(Value::List(vec![word("EARLIER")]));
                }
                out.push(Value::atom(uids.to_string()));
            }
            Self::Fetch { number: message, items } => {
                let mut list = Vec::new();
                items.iter().for_each(|item| item.write(&mut list));
                out.extend([number(u64::from(*message)), word("FETCH"), Value::List(list)]);
            }
            Self::UidFetch { uid, items } => {
                let mut list = Vec::new();
                items.iter().for_each(|item| item.write(&mut list));
                out.extend([number(u64::from(*uid)), word("UIDFETCH"), Value::List(list)]);
            }
            Self::Quota { root, resources } => {
                let triples = resources
                    .iter()
                    .flat_map(|(name, used, limit)| [word(name), number(*used), number(*limit)]);
                out.extend([word("QUOTA"), astring(root), Value::List(triples.collect())]);
            }
            Self::QuotaRoot { mailbox: name, roots } => {
                out.extend([word("QUOTAROOT"), mailbox(name, names)]);
                out.extend(roots.iter().map(|root| astring(root)));
            }
            Self::Acl { mailbox: name, entries } => {
                out.extend([word("ACL"), mailbox(name, names)]);
                out.extend(entries.iter().flat_map(|(who, rights)| [astring(who), astring(rights)]));
            }
            Self::ListRights { mailbox: name, identifier, rights } => {
                out.extend([word("LISTRIGHTS"), mailbox(name, names), astring(identifier)]);
                out.extend(rights.iter().map(|rights| astring(rights)));
            }
            Self::MyRights { mailbox: name, rights } => {
                out.extend([word("MYRIGHTS"), mailbox(name, names), astring(rights)]);
            }
            Self::Metadata { mailbox: name, entries } => {
                let name =
                    MailboxName::new(name).map_or_else(|| Value::text_of(""), |name| mailbox(&name, names));
                out.extend([word("METADATA"), name, metadata_value(entries)]);
            }
            Self::Other(before, name, values) => {
                out.extend(before.map(number));
                out.push(word(name));
                out.extend(values.iter().cloned());
            }
        }
    }
}

fn all(arguments: &mut Arguments<'_>) -> Outcome<Vec<Value>> {
    let mut values = Vec::with_capacity(arguments.len());
    while !arguments.is_empty() {
        values.push(arguments.next()?.clone());
    }
    Ok(values)
}

fn words(arguments: &mut Arguments<'_>) -> Outcome<Vec<String>> {
    let mut words = Vec::new();
    while !arguments.is_empty() {
        words.push(arguments.text()?);
    }
    Ok(words)
}

fn numbered(number: u64, arguments: &mut Arguments<'_>) -> Outcome<Response> {
    let word = arguments.word()?;
    let small = u32::try_from(number).ok();
    Ok(match (word.as_str(), small) {
        ("EXISTS", Some(count)) => Response::Exists(count),
        ("RECENT", Some(count)) => Response::Recent(count),
        ("EXPUNGE", Some(message)) => Response::Expunge(message),
        ("FETCH", Some(number)) => {
            Response::Fetch { number, items: FetchItem::read_all(&mut arguments.list()?)? }
        }
        ("UIDFETCH", Some(uid)) => {
            Response::UidFetch { uid, items: FetchItem::read_all(&mut arguments.list()?)? }
        }
        (_, _) => Response::Other(Some(number), word, all(arguments)?),
    })
}

#[allow(clippy::too_many_lines, reason = "one arm a response")]
fn named(word: &str, arguments: &mut Arguments<'_>) -> Outcome<Option<Response>> {
    Ok(Some(match word {
        "CAPABILITY" => Response::Capability(words(arguments)?),
        "ENABLED" => Response::Enabled(words(arguments)?),
        "ID" => Response::Id(id(arguments)?),
        "FLAGS" => Response::Flags(arguments.list()?.all_flags()?),
        "LIST" => Response::List(ListedMailbox::read(arguments)?),
        "LSUB" => Response::Lsub(ListedMailbox::read(arguments)?),
        "NAMESPACE" => Response::Namespace {
            personal: namespace(arguments)?,
            other_users: namespace(arguments)?,
            shared: namespace(arguments)?,
        },
        "STATUS" => {
            let mailbox = arguments.mailbox()?;
            let mut list = arguments.list()?;
            let mut items = Vec::new();
            while !list.is_empty() {
                let (item, value) = (StatusItem::parse(&list.atom()?), list.next()?.clone());
                items.extend(item.map(|item| (item, value)));
            }
            Response::MailboxStatus { mailbox, items }
        }
        "SEARCH" => {
            let (found, mod_seq) = found(arguments)?;
            Response::Search { found, mod_seq }
        }
        "SORT" => {
            let (found, mod_seq) = found(arguments)?;
            Response::Sort { found, mod_seq }
        }
        "THREAD" => {
            let mut threads = Vec::new();
            while !arguments.is_empty() {
                threads.push(thread(&mut arguments.list()?, 0)?);
            }
            Response::Thread(threads)
        }
        "ESEARCH" => Response::Esearch(Box::new(SearchResult::read(arguments)?)),
        "VANISHED" => {
            let earlier = arguments.peek().is_some_and(|value| value.list().is_some());
            if earlier && !arguments.list()?.take("EARLIER") {
                return Err(CommandFault::Syntax);
            }
            Response::Vanished { earlier, uids: arguments.set()? }
        }
        "QUOTA" => {
            let root = arguments.text()?;
            let mut list = arguments.list()?;
            let mut resources = Vec::new();
            while !list.is_empty() {
                resources.push((list.atom()?, list.number()?, list.number()?));
            }
            Response::Quota { root, resources }
        }
        "QUOTAROOT" => Response::QuotaRoot { mailbox: arguments.mailbox()?, roots: words(arguments)? },
        "ACL" => {
            let mailbox = arguments.mailbox()?;
            let mut entries = Vec::new();
            while !arguments.is_empty() {
                entries.push((arguments.text()?, arguments.text()?));
            }
            Response::Acl { mailbox, entries }
        }
        "LISTRIGHTS" => {
            let (mailbox, identifier) = (arguments.mailbox()?, arguments.text()?);
            Response::ListRights { mailbox, identifier, rights: words(arguments)? }
        }
        "MYRIGHTS" => Response::MyRights { mailbox: arguments.mailbox()?, rights: arguments.text()? },
        "METADATA" if arguments.len() == 2 => {
            let mailbox = arguments.mailbox()?.as_str().to_owned();
            match arguments.peek().and_then(Value::list) {
                Some(_) => Response::Metadata { mailbox, entries: metadata(arguments)? },
                None => return Ok(None),
            }
        }
        _ => return Ok(None),
    }))
}

fn id(arguments: &mut Arguments<'_>) -> Outcome<Vec<(String, Option<String>)>> {
    let mut fields = Vec::new();
    if arguments.take("NIL") {
        return Ok(fields);
    }
    let mut list = arguments.list()?;
    while !list.is_empty() {
        let name = list.text()?;
        let value = list.next()?;
        fields.push((name, if value.is_nil() { None } else { value.text() }));
    }
    Ok(fields)
}

fn namespace(arguments: &mut Arguments<'_>) -> Outcome<Namespace> {
    let mut space = Vec::new();
    if arguments.take("NIL") {
        return Ok(space);
    }
    let mut list = arguments.list()?;
    while !list.is_empty() {
        let mut one = list.list()?;
        let prefix = crate::list::pattern(&mut one)?;
        let delimiter = one.next()?;
        let delimiter =
            if delimiter.is_nil() { None } else { crate::argument::text(delimiter)?.chars().next() };
        space.push((prefix, delimiter));
    }
    Ok(space)
}

fn namespace_value(space: &Namespace, names: NameEncoding) -> Value {
    if space.is_empty() {
        return Value::nil();
    }
    let one = |(prefix, delimiter): &(String, Option<char>)| {
        let delimiter = delimiter.map_or_else(Value::nil, |delimiter| Value::text_of(&delimiter.to_string()));
        Value::List(vec![crate::list::pattern_value(prefix, names), delimiter])
    };
    Value::List(vec![Value::Run(space.iter().map(one).collect())])
}

fn found(arguments: &mut Arguments<'_>) -> Outcome<(Vec<u32>, Option<u64>)> {
    let mut found = Vec::new();
    while let Some(value) = arguments.peek() {
        if value.list().is_some() {
            let mut list = arguments.list()?;
            if !list.take("MODSEQ") {
                return Err(CommandFault::Syntax);
            }
            return Ok((found, Some(list.number()?)));
        }
        found.push(arguments.number32()?);
    }
    Ok((found, None))
}

fn numbers(name: &str, found: &[u32], mod_seq: Option<u64>, out: &mut Vec<Value>) {
    out.push(Value::atom(name));
    out.extend(found.iter().map(|number| Value::atom(number.to_string())));
    if let Some(change) = mod_seq {
        out.push(Value::List(vec![Value::atom("MODSEQ"), Value::atom(change.to_string())]));
    }
}

fn thread(list: &mut Arguments<'_>, depth: usize) -> Outcome<Thread> {
    if depth > DEPTH_MAX {
        return Err(CommandFault::TooDeep);
    }
    let mut thread = Thread::default();
    while list.peek().is_some_and(|value| value.number().is_some()) {
        thread.messages.push(list.number32()?);
    }
    while !list.is_empty() {
        thread.branches.push(self::thread(&mut list.list()?, depth + 1)?);
    }
    Ok(thread)
}

fn thread_value(thread: &Thread) -> Value {
    let mut list: Vec<Value> = thread.messages.iter().map(|number| Value::atom(number.to_string())).collect();
    if !thread.branches.is_empty() {
        list.push(Value::Run(thread.branches.iter().map(thread_value).collect()));
    }
    Value::List(list)
}

impl SearchResult {
    fn read(arguments: &mut Arguments<'_>) -> Outcome<Self> {
        let mut result = Self::default();
        if arguments.peek().is_some_and(|value| value.list().is_some()) {
            let mut correlator = arguments.list()?;
            if !correlator.take("TAG") {
                return Err(CommandFault::Syntax);
            }
            result.tag = Some(correlator.text()?);
        }
        result.uid = arguments.take("UID");
        while !arguments.is_empty() {
            match arguments.word()?.as_str() {
                "MIN" => result.min = Some(arguments.number32()?),
                "MAX" => result.max = Some(arguments.number32()?),
                "ALL" => result.all = Some(arguments.set()?),
                "COUNT" => result.count = Some(arguments.number()?),
                "MODSEQ" => result.mod_seq = Some(arguments.number()?),
                "PARTIAL" => {
                    let mut list = arguments.list()?;
                    let range = partial_range(&list.atom()?)?;
                    let found = if list.take("NIL") { None } else { Some(list.set()?) };
                    result.partial = Some((range, found));
                }
                _ => {
                    arguments.next()?;
                }
            }
        }
        Ok(result)
    }

    fn write(&self, out: &mut Vec<Value>) {
        let number = |name: &str, number: u64| [Value::atom(name), Value::atom(number.to_string())];
        let set = |set: &SequenceSet| Value::atom(set.to_string());
        out.push(Value::atom("ESEARCH"));
        if let Some(tag) = &self.tag {
            out.push(Value::List(vec![Value::atom("TAG"), Value::text_of(tag)]));
        }
        if self.uid {
            out.push(Value::atom("UID"));
        }
        out.extend(self.min.into_iter().flat_map(|min| number("MIN", u64::from(min))));
        out.extend(self.max.into_iter().flat_map(|max| number("MAX", u64::from(max))));
        out.extend(self.all.iter().flat_map(|all| [Value::atom("ALL"), set(all)]));
        out.extend(self.count.into_iter().flat_map(|count| number("COUNT", count)));
        out.extend(self.mod_seq.into_iter().flat_map(|change| number("MODSEQ", change)));
        if let Some(((from, to), found)) = &self.partial {
            let found = found.as_ref().map_or_else(Value::nil, set);
            let list = Value::List(vec![Value::atom(format!("{from}:{to}")), found]);
            out.extend([Value::atom("PARTIAL"), list]);
        }
    }
}

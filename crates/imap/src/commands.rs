//! Commands: what each does, and when it is refused. A refused command changes nothing.

use scrinium_imap_wire::{
    Command, FetchAttribute, FetchModifiers, Response, SearchKey, SearchProgram, SearchReturn, SequenceSet,
    SortKey,
};

use crate::capability::Capability;
use crate::compress::Inflater;
use crate::mailboxes::MailboxReply;
use crate::request::{FolderOutcome, FolderQuestion, MailboxRequest, Request, ThreadAlgorithm};
use crate::session::{ServerSession, word};
use crate::task::{Changes, Ending, Flow, Task};

/// When a command is allowed (RFC 9051, section 3).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Allowed {
    Always,
    BeforeLogin,
    AfterLogin,
    Selected,
}

impl ServerSession {
    pub(crate) fn command(&mut self, command: Command) -> Flow {
        if let Some(ending) = self.refused_here(&command) {
            self.append.abandon();
            let _ = self.append.take_refusal();
            return ending.into();
        }
        match command {
            Command::Capability => {
                let words = self.capability_words();
                self.say(&Response::Capability(words));
                Ending::ok("Done").into()
            }
            Command::Noop | Command::Check => Ending::ok("Done").telling(Changes::All).into(),
            Command::Logout => {
                self.say_status(scrinium_imap_wire::Status::Bye, None, "Goodbye");
                self.finish_command(&Ending::ok("Logged out"));
                self.end_silently();
                Flow::Rest
            }
            Command::Id(fields) => Flow::Ask(Request::Identify(fields), Task::Identify),
            Command::StartTls => self.start_tls(),
            Command::Authenticate(mechanism, initial) => self.authenticate(&mechanism, initial.as_ref()),
            Command::Login { name, password } => self.log_in(name, &password),
            Command::Enable(names) => self.enable(&names),
            Command::Compress(algorithm) => self.compress(&algorithm),
            Command::Idle => self.idle(),
            Command::Notify(values) => self.notify(&values),
            Command::Append { messages, .. } => self.append(&messages),
            Command::Replace { uid, number, message, .. } => self.replace(uid, number, message),
            command => self.mailbox_command(command),
        }
    }

    fn mailbox_command(&mut self, command: Command) -> Flow {
        let ask = Self::ask_mailbox;
        match command {
            Command::Select { mailbox, parameters, read_only } => self.select(mailbox, parameters, read_only),
            Command::Create { mailbox, special_uses } => {
                ask(MailboxRequest::Create(mailbox, special_uses), MailboxReply::Created)
            }
            Command::Delete(mailbox) => {
                ask(MailboxRequest::Delete(mailbox.clone()), MailboxReply::Deleted(mailbox))
            }
            Command::Rename { from, to } => {
                ask(MailboxRequest::Rename(from.clone(), to.clone()), MailboxReply::Renamed(from, to))
            }
            Command::Subscribe(mailbox) => ask(MailboxRequest::Subscribe(mailbox, true), MailboxReply::Done),
            Command::Unsubscribe(mailbox) => {
                ask(MailboxRequest::Subscribe(mailbox, false), MailboxReply::Done)
            }
            Command::List(list) => self.list(list),
            Command::Lsub { reference, pattern } => self.lsub(&reference, pattern),
            Command::Namespace => ask(MailboxRequest::Namespace, MailboxReply::Namespaces),
            Command::Status { mailbox, items } => self.status(mailbox, items),
            Command::GetQuota(root) => ask(MailboxRequest::Quota(root), MailboxReply::Quota),
            Command::GetQuotaRoot(mailbox) => {
                ask(MailboxRequest::QuotaRoot(mailbox.clone()), MailboxReply::QuotaRoots(mailbox))
            }
            Command::SetQuota { root, limits } => {
                ask(MailboxRequest::SetQuota(root, limits), MailboxReply::Quota)
            }
            Command::GetAcl(mailbox) => {
                ask(MailboxRequest::GetAcl(mailbox.clone()), MailboxReply::Rights(mailbox))
            }
            Command::SetAcl { mailbox, identifier, rights } => Self::set_acl(mailbox, identifier, &rights),
            Command::DeleteAcl { mailbox, identifier } => {
                ask(MailboxRequest::DeleteAcl(mailbox, identifier), MailboxReply::Done)
            }
            Command::ListRights { mailbox, identifier } => ask(
                MailboxRequest::ListRights(mailbox.clone(), identifier.clone()),
                MailboxReply::ListedRights(mailbox, identifier),
            ),
            Command::MyRights(mailbox) => {
                ask(MailboxRequest::MyRights(mailbox.clone()), MailboxReply::MyRights(mailbox))
            }
            Command::GetMetadata { mailbox, entries, max_size, depth } => {
                Self::get_metadata(mailbox, entries, max_size, depth)
            }
            Command::SetMetadata { mailbox, entries } => Self::set_metadata(&mailbox, entries),
            command => self.message_command(command),
        }
    }

    fn message_command(&mut self, command: Command) -> Flow {
        match command {
            Command::Close => self.close_mailbox(),
            Command::Unselect => {
                self.leave(false);
                Ending::ok("Closed").into()
            }
            Command::Expunge => self.expunge(None),
            Command::UidExpunge(set) => self.expunge(Some(set)),
            Command::Search { uid, program } => self.search(uid, program),
            Command::Sort { uid, keys, program } => self.sort(uid, keys, program),
            Command::Thread { uid, algorithm, program } => match algorithm.as_str() {
                "REFERENCES" => self.thread(uid, ThreadAlgorithm::References, program),
                "ORDEREDSUBJECT" => self.thread(uid, ThreadAlgorithm::OrderedSubject, program),
                _ => Ending::bad("The algorithm is not known").into(),
            },
            Command::Fetch { uid, set, attributes, modifiers } => self.fetch(uid, set, attributes, modifiers),
            Command::Store { uid, set, unchanged_since, action, silent, flags } => {
                self.store((set, uid), unchanged_since, (action, silent), &flags)
            }
            Command::Copy { uid, set, mailbox } => self.transfer(set, uid, mailbox, false),
            Command::Move { uid, set, mailbox } => self.transfer(set, uid, mailbox, true),
            Command::UidBatches { size, range } => self.batches(size, range),
            _ => Ending::bad("The command is not known").into(),
        }
    }

    /// Why a command is refused before anything is done.
    pub(crate) fn refused_here(&self, command: &Command) -> Option<Ending> {
        let is_in = self.person.is_some();
        let fits = match allowed(command) {
            Allowed::Always => true,
            Allowed::BeforeLogin => !is_in,
            Allowed::AfterLogin => is_in,
            Allowed::Selected => is_in && self.selected.is_some(),
        };
        if !fits {
            let text = match allowed(command) {
                Allowed::BeforeLogin => "You have logged in already",
                Allowed::Selected if is_in => "Select a mailbox first",
                _ => "Log in first",
            };
            return Some(Ending::bad(text));
        }
        if !self.needed(command).iter().all(|needed| self.has(*needed)) {
            return Some(Ending::bad("The command, or an item or option of it, is not known"));
        }
        if self.enabled.uid_only && uses_numbers(command) {
            // RFC 9586, section 3.
            return Some(Ending {
                code: crate::task::EndingCode::Code(scrinium_imap_wire::ResponseCode::Word(
                    "UIDREQUIRED".to_owned(),
                )),
                ..Ending::bad("Messages have UIDs alone, after UIDONLY")
            });
        }
        None
    }

    /// Capabilities that must be there for a command as it came.
    fn needed(&self, command: &Command) -> Vec<Capability> {
        use Capability as C;
        match command {
            Command::Enable(_) => vec![C::Enable],
            Command::Id(_) => vec![C::Id],
            Command::Authenticate(_, Some(_)) => vec![C::SaslIr],
            Command::Idle => vec![C::Idle],
            Command::Namespace => vec![C::Namespace],
            Command::Unselect => vec![C::Unselect],
            Command::UidExpunge(_) => vec![C::UidPlus],
            Command::Move { .. } => vec![C::Move],
            Command::Compress(_) => vec![C::Compress],
            Command::Notify(_) => vec![C::Notify],
            Command::Replace { .. } => vec![C::Replace],
            Command::UidBatches { .. } => vec![C::UidBatches],
            Command::Create { special_uses, .. } if !special_uses.is_empty() => vec![C::CreateSpecialUse],
            Command::GetQuota(_) | Command::GetQuotaRoot(_) | Command::SetQuota { .. } => vec![C::Quota],
            Command::GetAcl(_)
            | Command::SetAcl { .. }
            | Command::DeleteAcl { .. }
            | Command::ListRights { .. }
            | Command::MyRights(_) => vec![C::Acl],
            Command::GetMetadata { .. } | Command::SetMetadata { .. } => vec![C::Metadata],
            Command::Append { messages, .. } if messages.len() > 1 => vec![C::MultiAppend],
            Command::Append { messages, .. } if messages.iter().any(|message| message.utf8) => {
                vec![C::Utf8Accept]
            }
            Command::List(list) => list_needs(list),
            Command::Search { program, .. } => search_needs(program),
            Command::Sort { keys, program, .. } => sort_needs(keys, program),
            Command::Thread { algorithm, program, .. } => {
                let mut needed = search_needs(program);
                needed.extend(match algorithm.as_str() {
                    "REFERENCES" => Some(C::ThreadReferences),
                    "ORDEREDSUBJECT" => Some(C::ThreadOrderedSubject),
                    _ => None,
                });
                needed
            }
            Command::Fetch { set, attributes, modifiers, .. } => fetch_needs(set, attributes, *modifiers),
            Command::Store { set, .. } | Command::Copy { set, .. } => set_needs(set),
            _ => Vec::new(),
        }
    }

    fn enable(&mut self, names: &[String]) -> Flow {
        let mut enabled = Vec::new();
        for name in names {
            let Some(capability) = Capability::parse(name).filter(|capability| self.has(*capability)) else {
                continue;
            };
            match capability {
                Capability::Condstore => self.enabled.condstore = true,
                Capability::Qresync => {
                    // RFC 7162, section 3.2.3.
                    self.enabled.condstore = true;
                    self.enabled.qresync = true;
                }
                Capability::Utf8Accept => self.enabled.utf8 = true,
                Capability::Imap4Rev2 => self.enabled.rev2 = true,
                Capability::UidOnly => self.enabled.uid_only = true,
                _ => continue,
            }
            enabled.push(capability.name().to_owned());
        }
        self.say(&Response::Enabled(enabled));
        Ending::ok("Done").into()
    }

    /// RFC 4978. Without TLS nobody but this machine may use it.
    fn compress(&mut self, algorithm: &str) -> Flow {
        if algorithm != "DEFLATE" {
            return Ending::bad("Only DEFLATE is known").into();
        }
        if !self.may_compress() {
            return Ending::no(word("PRIVACYREQUIRED"), "Encrypt the connection first").into();
        }
        if self.output.is_compressed() {
            return Ending::no(word("COMPRESSIONACTIVE"), "The connection is compressed already").into();
        }
        if !self.rest().is_empty() {
            // What stands behind it may be compressed or not; nobody can know.
            return Ending::bad("Nothing may be sent behind COMPRESS before its answer").into();
        }
        self.finish_command(&Ending::ok("Compressed from now on"));
        self.output.begin_compression();
        self.inflater = Some(Inflater::new());
        Flow::Rest
    }

    fn batches(&mut self, size: u32, range: Option<(u32, u32)>) -> Flow {
        let range = range.map_or((1, u32::MAX), |(from, to)| (from.min(to), from.max(to)));
        // RFC 10022: small batches would be as long as the list of messages.
        if size < 500 {
            return Ending::no(word("TOOFEW"), "A batch has at least 500 messages").into();
        }
        self.ask_folder(FolderQuestion::Batches { size, range }, Task::Batches)
    }

    pub(crate) fn batches_answered(&mut self, answer: crate::request::Answer) -> Flow {
        match self.outcome(answer) {
            Ok(FolderOutcome::Batches(batches)) => {
                let tag = self.tag.as_ref().map_or("", |tag| tag.as_str());
                let ranges: Vec<String> =
                    batches.iter().map(|(last, first)| format!("{last}:{first}")).collect();
                let ranges = if ranges.is_empty() { String::new() } else { format!(" {}", ranges.join(",")) };
                let line = format!("* UIDBATCHES (TAG \"{tag}\"){ranges}\r\n");
                self.output.push(line.as_bytes());
                Ending::ok("Done").telling(Changes::All).into()
            }
            Ok(outcome) => Ending::of_outcome(outcome).into(),
            Err(flow) => flow,
        }
    }

    /// What there is, at this moment of the session.
    pub(crate) fn capability_words(&self) -> Vec<String> {
        let mut words = vec!["IMAP4rev1".to_owned()];
        let is_in = self.person.is_some();
        if !is_in {
            if self.options.has_certificate && self.encryption.is_none() {
                words.push("STARTTLS".to_owned());
            }
            let mechanisms = self.mechanisms();
            if !mechanisms.contains(&scrinium_credentials::sasl::SaslMechanism::Plain) {
                words.push("LOGINDISABLED".to_owned());
            }
            words.extend(mechanisms.iter().map(|mechanism| format!("AUTH={}", mechanism.name())));
        }
        let shown = self.options.hidden.and(self.hidden).shown();
        for (capability, name) in Capability::ALL {
            if !shown.has(capability) || !(is_in || is_early(capability)) {
                continue;
            }
            match capability {
                // LITERAL+ would let a stranger send what nobody asked for.
                Capability::LiteralPlus if !is_in => {
                    if !shown.has(Capability::LiteralMinus) {
                        words.push(Capability::LiteralMinus.name().to_owned());
                    }
                }
                Capability::LiteralMinus if is_in && shown.has(Capability::LiteralPlus) => {}
                Capability::AppendLimit => words.push(format!("APPENDLIMIT={}", self.limits().message_bytes)),
                Capability::Quota => {
                    words.extend(["QUOTA", "QUOTA=RES-STORAGE", "QUOTA=RES-MESSAGE"].map(str::to_owned));
                }
                Capability::Acl => words.extend(["ACL", "RIGHTS=kxte"].map(str::to_owned)),
                Capability::Compress if self.output.is_compressed() || !self.may_compress() => {}
                _ => words.push(name.to_owned()),
            }
        }
        words
    }

    pub(crate) fn may_compress(&self) -> bool {
        self.encryption.is_some() || self.options.is_local || !self.options.requires_tls
    }
}

/// What is of use before log-in.
fn is_early(capability: Capability) -> bool {
    matches!(
        capability,
        Capability::Imap4Rev2
            | Capability::SaslIr
            | Capability::Id
            | Capability::Enable
            | Capability::LiteralPlus
            | Capability::LiteralMinus
            | Capability::Idle
    )
}

fn allowed(command: &Command) -> Allowed {
    match command {
        Command::Capability | Command::Noop | Command::Logout | Command::Id(_) => Allowed::Always,
        Command::StartTls | Command::Authenticate(..) | Command::Login { .. } => Allowed::BeforeLogin,
        Command::Check
        | Command::Close
        | Command::Unselect
        | Command::Expunge
        | Command::UidExpunge(_)
        | Command::Search { .. }
        | Command::Sort { .. }
        | Command::Thread { .. }
        | Command::Fetch { .. }
        | Command::Store { .. }
        | Command::Copy { .. }
        | Command::Move { .. }
        | Command::UidBatches { .. }
        | Command::Replace { .. } => Allowed::Selected,
        _ => Allowed::AfterLogin,
    }
}

/// Whether a command names messages by numbers.
fn uses_numbers(command: &Command) -> bool {
    match command {
        Command::Search { uid, .. }
        | Command::Sort { uid, .. }
        | Command::Thread { uid, .. }
        | Command::Fetch { uid, .. }
        | Command::Store { uid, .. }
        | Command::Copy { uid, .. }
        | Command::Move { uid, .. }
        | Command::Replace { uid, .. } => !uid,
        _ => false,
    }
}

fn list_needs(list: &scrinium_imap_wire::ListCommand) -> Vec<Capability> {
    use scrinium_imap_wire::ListReturn;
    let mut needed = Vec::new();
    if list.extended {
        needed.push(Capability::ListExtended);
    }
    if list.selection.iter().any(|option| option == "SPECIAL-USE") {
        needed.push(Capability::SpecialUse);
    }
    for option in &list.returns {
        match option {
            ListReturn::Status(_) => needed.push(Capability::ListStatus),
            ListReturn::MyRights => needed.extend([Capability::ListMyRights, Capability::Acl]),
            ListReturn::Metadata(_) => needed.extend([Capability::ListMetadata, Capability::Metadata]),
            ListReturn::SpecialUse => needed.push(Capability::SpecialUse),
            ListReturn::Subscribed | ListReturn::Children => {}
        }
    }
    needed
}

fn set_needs(set: &SequenceSet) -> Vec<Capability> {
    if *set == SequenceSet::Saved { vec![Capability::SearchRes] } else { Vec::new() }
}

fn fetch_needs(
    set: &SequenceSet,
    attributes: &[FetchAttribute],
    modifiers: FetchModifiers,
) -> Vec<Capability> {
    let mut needed = set_needs(set);
    for attribute in attributes {
        match attribute {
            FetchAttribute::ModSeq => needed.push(Capability::Condstore),
            FetchAttribute::EmailId | FetchAttribute::ThreadId => needed.push(Capability::ObjectId),
            FetchAttribute::SaveDate => needed.push(Capability::SaveDate),
            FetchAttribute::Preview(_) => needed.push(Capability::Preview),
            FetchAttribute::Binary { .. } | FetchAttribute::BinarySize(_) => needed.push(Capability::Binary),
            _ => {}
        }
    }
    if modifiers.changed_since.is_some() {
        needed.push(Capability::Condstore);
    }
    if modifiers.vanished {
        needed.push(Capability::Qresync);
    }
    if modifiers.partial.is_some() {
        needed.push(Capability::Partial);
    }
    needed
}

fn sort_needs(keys: &[(SortKey, bool)], program: &SearchProgram) -> Vec<Capability> {
    let mut needed = search_needs(program);
    needed.push(Capability::Sort);
    if keys.iter().any(|(key, _)| matches!(key, SortKey::DisplayFrom | SortKey::DisplayTo)) {
        needed.push(Capability::SortDisplay);
    }
    if program.returns.is_some() {
        needed.push(Capability::Esort);
    }
    needed
}

fn search_needs(program: &SearchProgram) -> Vec<Capability> {
    let mut needed = Vec::new();
    for option in program.returns.iter().flatten() {
        match option {
            SearchReturn::Save => needed.push(Capability::SearchRes),
            SearchReturn::Partial(..) => needed.push(Capability::Partial),
            _ => {}
        }
    }
    if program.returns.is_some() {
        needed.push(Capability::Esearch);
    }
    program.keys.iter().for_each(|key| key_needs(key, &mut needed));
    needed
}

fn key_needs(key: &SearchKey, needed: &mut Vec<Capability>) {
    match key {
        SearchKey::Older(_) | SearchKey::Younger(_) => needed.push(Capability::Within),
        SearchKey::ModSeq(..) => needed.push(Capability::Condstore),
        SearchKey::EmailId(_) | SearchKey::ThreadId(_) => needed.push(Capability::ObjectId),
        SearchKey::SavedBefore(_)
        | SearchKey::SavedOn(_)
        | SearchKey::SavedSince(_)
        | SearchKey::SaveDateSupported => needed.push(Capability::SaveDate),
        SearchKey::Uid(SequenceSet::Saved) | SearchKey::Sequence(SequenceSet::Saved) => {
            needed.push(Capability::SearchRes);
        }
        SearchKey::Fuzzy(key) => {
            needed.push(Capability::Fuzzy);
            key_needs(key, needed);
        }
        SearchKey::Not(key) => key_needs(key, needed),
        SearchKey::Or(one, other) => {
            key_needs(one, needed);
            key_needs(other, needed);
        }
        SearchKey::And(keys) => keys.iter().for_each(|key| key_needs(key, needed)),
        _ => {}
    }
}

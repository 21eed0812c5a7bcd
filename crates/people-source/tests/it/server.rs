//! A small server of LDAP: entries in memory, pages, ranges of values, and StartTLS by name.

use scrinium_ldap_wire::{
    Authentication, Entry, ExtendedResponse, Filter, LdapResult, Matcher, Message, MessageLimits,
    MessageReader, Operation, PAGED_RESULTS, PagedResults, ResultCode, START_TLS, Scope, SearchRequest,
    Selection, Truth,
};

pub(crate) struct Server {
    pub(crate) entries: Vec<Entry>,
    pub(crate) has_pages: bool,
    /// Values of one attribute that come at once.
    pub(crate) range: usize,
    /// Active Directory's number of changes, and its server's name.
    pub(crate) number: Option<u64>,
    pub(crate) name: String,
    pub(crate) password: Vec<u8>,
    pub(crate) is_encrypted: bool,
    pub(crate) requests: Vec<Operation>,
    reader: MessageReader,
}

impl Server {
    pub(crate) fn new(entries: Vec<Entry>) -> Self {
        Self {
            entries,
            has_pages: true,
            range: usize::MAX,
            number: None,
            name: "CN=DC1".to_owned(),
            password: b"engine".to_vec(),
            is_encrypted: false,
            requests: Vec::new(),
            reader: MessageReader::new(1 << 20),
        }
    }

    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Vec<u8> {
        let (mut rest, mut output) = (bytes, Vec::new());
        while !rest.is_empty() {
            let (taken, whole) = self.reader.read(rest).unwrap();
            rest = &rest[taken..];
            if let Some(whole) = whole {
                let message = Message::parse(&whole, MessageLimits::SERVER).unwrap();
                self.requests.push(message.operation.clone());
                output.extend(self.answers(&message).iter().flat_map(Message::to_bytes));
            }
        }
        output
    }

    fn answers(&self, message: &Message) -> Vec<Message> {
        let answer = |operation| Message::new(message.id, operation);
        match &message.operation {
            Operation::Bind(bind) => {
                let Authentication::Simple(password) = &bind.authentication else { panic!("a password") };
                let is_right = password.0 == self.password;
                let code = if is_right { ResultCode::SUCCESS } else { ResultCode::INVALID_CREDENTIALS };
                let kind = message.operation.request_kind().unwrap();
                vec![answer(kind.response(LdapResult::new(code, "")))]
            }
            Operation::Extended(request) => {
                assert_eq!(request.name, START_TLS);
                let response = ExtendedResponse { result: LdapResult::success(), name: None, value: None };
                vec![answer(Operation::ExtendedResponse(response))]
            }
            Operation::Search(search) => self.search(message, search),
            Operation::Unbind => Vec::new(),
            other => panic!("{other:?}"),
        }
    }

    fn search(&self, message: &Message, search: &SearchRequest) -> Vec<Message> {
        let found: Vec<Entry> = if search.scope == Scope::Base && search.base.is_empty() {
            vec![self.root()]
        } else {
            self.entries.iter().filter(|entry| self.matches(entry, search)).cloned().collect()
        };
        let first_page = PagedResults { size: u32::MAX >> 1, cookie: Vec::new() };
        let page = message.control(PAGED_RESULTS).map(|control| PagedResults::parse(control).unwrap());
        let has_page = page.is_some();
        let page = page.unwrap_or(first_page);
        let start: usize = String::from_utf8(page.cookie).unwrap().parse().unwrap_or(0);
        let end = found.len().min(start.saturating_add(page.size as usize));
        let mut messages: Vec<Message> = found[start..end]
            .iter()
            .map(|entry| {
                Message::new(message.id, Operation::SearchEntry(self.selected(entry, &search.attributes)))
            })
            .collect();
        let reference = Operation::SearchReference(vec!["ldap://elsewhere/".to_owned()]);
        messages.push(Message::new(message.id, reference));
        let mut done = Message::new(message.id, Operation::SearchDone(LdapResult::success()));
        if has_page {
            let cookie = if end < found.len() { end.to_string().into_bytes() } else { Vec::new() };
            done.controls.push(PagedResults { size: 0, cookie }.control(false));
        }
        messages.push(done);
        messages
    }

    fn root(&self) -> Entry {
        let number = self.number.map(|number| number.to_string());
        Entry::new("")
            .with("supportedControl", self.has_pages.then_some(PAGED_RESULTS))
            .with("highestCommittedUSN", number.as_deref())
            .with("dsServiceName", self.number.map(|_| self.name.as_str()))
    }

    fn matches(&self, entry: &Entry, search: &SearchRequest) -> bool {
        let number = |text: &[u8]| std::str::from_utf8(text).unwrap().parse::<u64>().unwrap();
        let is_new_enough = |filter: &Filter| match filter {
            Filter::GreaterOrEqual(attribute, least) if attribute.as_str() == "uSNChanged" => {
                number(entry.values("uSNChanged").next().unwrap()) >= number(least)
            }
            filter => Matcher::new(filter).matches(entry) == Truth::True,
        };
        let by_filter = match &search.filter {
            Filter::And(list) => list.iter().all(is_new_enough),
            filter => is_new_enough(filter),
        };
        by_filter && (search.scope != Scope::Base || entry.name == search.base)
    }

    fn selected(&self, entry: &Entry, attributes: &[String]) -> Entry {
        // "member;range=1500-*" asks for the values from there on.
        if let [only] = attributes
            && let Some((name, range)) = only.split_once(";range=")
        {
            let first: usize = range.strip_suffix("-*").unwrap().parse().unwrap();
            return self.ranged(Selection::new(&[name.to_owned()]).apply(entry, false), first);
        }
        self.ranged(Selection::new(attributes).apply(entry, false), 0)
    }

    fn ranged(&self, mut entry: Entry, first: usize) -> Entry {
        for attribute in &mut entry.attributes {
            let end = attribute.values.len().min(first.saturating_add(self.range));
            if first > 0 || end < attribute.values.len() {
                let last = if end == attribute.values.len() { "*".to_owned() } else { (end - 1).to_string() };
                attribute.name = format!("{};range={first}-{last}", attribute.name);
                attribute.values = attribute.values[first.min(end)..end].to_vec();
            }
        }
        entry
    }
}

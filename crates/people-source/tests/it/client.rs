//! The client against a small server, in pieces of any size.

use proptest::prelude::*;
use scrinium_ldap_wire::{
    BindRequest, Entry, Filter, LdapResult, Message, MessageId, MessageLimits, Operation, PagedResults,
    RequestKind, ResultCode, Secret,
};
use scrinium_people_source::{
    ClientError, Credentials, DirectoryKind, Encryption, Event, Mark, Outcome, Position, Reading,
    SourceClient, SourceOptions, Task, records_of,
};

use crate::server::Server;

fn options(kind: DirectoryKind) -> SourceOptions {
    SourceOptions {
        kind,
        encryption: Encryption::FromTheStart,
        allows_clear_password: false,
        credentials: Credentials::Simple {
            name: "cn=reader".to_owned(),
            password: Secret(b"engine".to_vec()),
        },
        base: "dc=example".to_owned(),
        filter: Filter::any_entry(),
        page_size: 3,
        entries_max: 1000,
        values_max: 1000,
        limits: MessageLimits::CLIENT,
    }
}

/// Brings client and server together until the client is over; gives what happened.
fn drive(client: &mut SourceClient, server: &mut Server, piece: usize) -> Result<Vec<Event>, ClientError> {
    let mut events = Vec::new();
    client.connected()?;
    loop {
        let sent = client.take_output();
        let came = server.receive(&sent);
        if came.is_empty() && sent.is_empty() {
            return Ok(events);
        }
        for piece in came.chunks(piece) {
            let mut rest = piece;
            loop {
                let (taken, event) = client.receive(rest)?;
                rest = &rest[taken..];
                match event {
                    Some(Event::StartTls) => {
                        server.is_encrypted = true;
                        client.tls_started()?;
                    }
                    Some(event) => events.push(event),
                    None if rest.is_empty() => break,
                    None => {}
                }
            }
        }
    }
}

fn run(options: SourceOptions, task: Task, server: &mut Server, piece: usize) -> (Vec<Entry>, Outcome) {
    let mut client = SourceClient::new(options, task).unwrap();
    let mut events = drive(&mut client, server, piece).unwrap();
    assert!(client.is_over());
    let Some(Event::Done(outcome)) = events.pop() else { panic!("it is over") };
    let entries = events.into_iter().map(|event| match event {
        Event::Entry(entry) => entry,
        other => panic!("{other:?}"),
    });
    (entries.collect(), outcome)
}

fn openldap(count: usize) -> Vec<Entry> {
    let entry = |number: usize| {
        Entry::new(&format!("uid=p{number},dc=example"))
            .with("objectClass", ["inetOrgPerson"])
            .with("uid", [format!("p{number}").as_str()])
            .with("mail", [format!("p{number}@example.test").as_str()])
            .with("roomNumber", ["7"])
            .with("carLicense", ["nobody asks for this"])
            .with("entryUUID", [format!("00000000-0000-0000-0000-{number:012}").as_str()])
            .with("modifyTimestamp", [format!("2026112604{:02}00Z", number % 60).as_str()])
    };
    (0..count).map(entry).collect()
}

#[test]
fn openldap_is_read_in_pages_and_then_what_changed() {
    let mut server = Server::new(openldap(10));
    let options = SourceOptions { encryption: Encryption::StartTls, ..options(DirectoryKind::Standard) };
    let (entries, outcome) = run(options.clone(), Task::Read(Reading::All), &mut server, 7);
    assert!(server.is_encrypted);
    let searches =
        server.requests.iter().filter(|request| request.request_kind() == Some(RequestKind::Search));
    assert_eq!((entries.len(), searches.count(), outcome.references), (10, 5, 5));
    assert!(entries.iter().all(|entry| entry.text("carLicense").is_none()));
    let records = records_of(&entries, DirectoryKind::Standard);
    assert_eq!((records.people.len(), records.left_out_count), (10, 0));
    let mark = outcome.mark.unwrap();
    assert_eq!(mark.to_string().parse::<Mark>(), Ok(mark.clone()));
    assert_eq!(mark.to_string(), "time 20261126040900Z ");

    // What changed in the second of the mark comes again, since more may have changed in it.
    server.entries[2].attributes.retain(|attribute| attribute.name != "modifyTimestamp");
    server.entries[2] = server.entries[2].clone().with("modifyTimestamp", ["20261126050000Z"]);
    let (entries, outcome) = run(options.clone(), Task::Read(Reading::ChangedSince(mark)), &mut server, 999);
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["uid=p2,dc=example", "uid=p9,dc=example"]);
    assert!(!outcome.is_complete);
    let mark = outcome.mark.unwrap();
    assert_eq!(mark.to_string(), "time 20261126050000Z ");

    // Nothing changed: the mark stays. Of identities there is none.
    server.entries.clear();
    let (entries, outcome) =
        run(options.clone(), Task::Read(Reading::ChangedSince(mark.clone())), &mut server, 1);
    assert_eq!((entries.len(), outcome.mark), (0, Some(mark)));
    server.entries = openldap(4);
    let (entries, outcome) = run(options, Task::Read(Reading::Identities), &mut server, 64);
    assert!(entries.iter().all(|entry| entry.attributes.len() == 1 && entry.text("entryUUID").is_some()));
    assert_eq!((entries.len(), outcome.is_complete, outcome.mark), (4, true, None));
}

fn active_directory(members: usize) -> Vec<Entry> {
    let member: Vec<String> = (0..members).map(|number| format!("CN=p{number}")).collect();
    let group = |name: &str, changed: &str| {
        Entry::new(name)
            .with("objectClass", ["group"])
            .with("cn", [name])
            .with("member", member.iter().map(String::as_str))
            .with("uSNChanged", [changed])
    };
    vec![group("CN=Staff", "5"), group("CN=All", "9"), group("CN=More", "12")]
}

#[test]
fn active_directory_has_ranges_and_numbers_of_its_own() {
    let mut server = Server::new(active_directory(10));
    (server.range, server.number) = (4, Some(20));
    let options = SourceOptions { page_size: 2, ..options(DirectoryKind::ActiveDirectory) };
    let (entries, outcome) = run(options.clone(), Task::Read(Reading::All), &mut server, 11);
    let members: Vec<usize> = entries.iter().map(|entry| entry.values("member").count()).collect();
    assert_eq!(members, [10, 10, 10]);
    let records = records_of(&entries, DirectoryKind::ActiveDirectory);
    assert_eq!(records.groups[1].members.len(), 10);
    let mark = outcome.mark.unwrap();
    assert_eq!(mark, Mark { server: "CN=DC1".to_owned(), position: Position::Number(20) });

    let since = |number| Mark { position: Position::Number(number), ..mark.clone() };
    let (entries, outcome) =
        run(options.clone(), Task::Read(Reading::ChangedSince(since(5))), &mut server, 99);
    assert_eq!((entries.len(), outcome.is_complete), (2, false));
    // Another server, or this one as it was before: everything is read.
    let (entries, outcome) =
        run(options.clone(), Task::Read(Reading::ChangedSince(since(21))), &mut server, 99);
    assert_eq!((entries.len(), outcome.is_complete), (3, true));
    server.name = "CN=DC2".to_owned();
    let (entries, outcome) = run(options, Task::Read(Reading::ChangedSince(since(5))), &mut server, 99);
    assert_eq!((entries.len(), outcome.is_complete), (3, true));
    assert_eq!(outcome.mark.unwrap().server, "CN=DC2");
    assert!("number x y".parse::<Mark>().is_err() && "time".parse::<Mark>().is_err());
}

#[test]
fn a_password_is_right_or_wrong_and_never_empty_or_for_all_to_read() {
    let check = |password: &str| {
        let mut options = options(DirectoryKind::Standard);
        let password = Secret(password.as_bytes().to_vec());
        options.credentials = Credentials::Simple { name: "uid=ada".to_owned(), password };
        let mut client = SourceClient::new(options, Task::CheckPassword)?;
        drive(&mut client, &mut Server::new(Vec::new()), 5)
    };
    assert_eq!(check("engine"), Ok(vec![Event::PasswordChecked(true)]));
    assert_eq!(check("wrong"), Ok(vec![Event::PasswordChecked(false)]));
    assert_eq!(check(""), Err(ClientError::EmptyPassword));
    let clear = SourceOptions { encryption: Encryption::None, ..options(DirectoryKind::Standard) };
    let refused = SourceClient::new(clear.clone(), Task::Read(Reading::All)).unwrap_err();
    assert_eq!(refused, ClientError::ClearPassword);
    let allowed = SourceOptions { allows_clear_password: true, ..clear.clone() };
    assert!(SourceClient::new(allowed, Task::CheckPassword).is_ok());
    assert!(
        !format!(
            "{:?}",
            SourceClient::new(
                SourceOptions { credentials: Credentials::Anonymous, ..clear },
                Task::CheckPassword
            )
        )
        .contains("engine")
    );
}

/// A client that waits for the answer to what it has sent.
fn waiting(encryption: Encryption) -> (SourceClient, Message) {
    let options = SourceOptions { encryption, ..options(DirectoryKind::Standard) };
    let mut client = SourceClient::new(options, Task::Read(Reading::All)).unwrap();
    client.connected().unwrap();
    let sent = Message::parse(&client.take_output(), MessageLimits::CLIENT).unwrap();
    (client, sent)
}

fn answer(sent: &Message, code: ResultCode) -> Vec<u8> {
    let operation = sent.operation.request_kind().unwrap().response(LdapResult::new(code, "no\r\nway"));
    Message::new(sent.id, operation).to_bytes()
}

#[test]
fn what_comes_before_tls_is_not_believed() {
    let (mut client, sent) = waiting(Encryption::StartTls);
    let injected = [answer(&sent, ResultCode::SUCCESS), b"\x30\x0c".to_vec()].concat();
    assert_eq!(client.receive(&injected), Err(ClientError::BytesBeforeTls));
    let (mut client, sent) = waiting(Encryption::StartTls);
    let whole = answer(&sent, ResultCode::SUCCESS);
    assert_eq!(client.receive(&whole), Ok((whole.len(), Some(Event::StartTls))));
    assert_eq!(client.receive(b"\x30"), Err(ClientError::BytesBeforeTls));
    // Without TLS no password is sent.
    let (mut client, sent) = waiting(Encryption::StartTls);
    let error = client.receive(&answer(&sent, ResultCode::PROTOCOL_ERROR)).unwrap_err();
    assert_eq!(error.to_string(), "the server refused StartTLS: protocolError (2) (noway)");
    assert!(client.take_output().is_empty());
    assert_eq!((client.tls_started(), client.connected()), (Err(ClientError::Step), Err(ClientError::Step)));
}

#[test]
fn what_does_not_fit_ends_the_connection() {
    let (mut client, sent) = waiting(Encryption::FromTheStart);
    assert!(matches!(&sent.operation, Operation::Bind(BindRequest { version: 3, .. })));
    let other = Message { id: MessageId::from_number(77).unwrap(), ..sent };
    assert_eq!(
        client.receive(&answer(&other, ResultCode::SUCCESS)),
        Err(ClientError::Unexpected("its number"))
    );
    let (mut client, sent) = waiting(Encryption::FromTheStart);
    let wrong = Message::new(sent.id, Operation::SearchDone(LdapResult::success())).to_bytes();
    assert_eq!(client.receive(&wrong), Err(ClientError::Unexpected("its kind")));
    let (mut client, _) = waiting(Encryption::FromTheStart);
    let notice = Message::notice_of_disconnection(ResultCode::UNAVAILABLE, "stopping").to_bytes();
    let error = client.receive(&notice).unwrap_err();
    assert_eq!(error.to_string(), "the server closes the connection: unavailable (52) (stopping)");
    let (mut client, _) = waiting(Encryption::FromTheStart);
    assert!(matches!(client.receive(b"HTTP/1.1 400 Bad Request"), Err(ClientError::Frame(_))));
    let (mut client, _) = waiting(Encryption::FromTheStart);
    assert!(matches!(client.receive(&[0x30, 3, 2, 1, 1]), Err(ClientError::Message(_))));
}

#[test]
fn a_server_that_never_ends_is_left() {
    let run = |change: fn(&mut SourceOptions), entries: Vec<Entry>| {
        let mut options = options(DirectoryKind::Standard);
        change(&mut options);
        let mut client = SourceClient::new(options, Task::Read(Reading::All)).unwrap();
        drive(&mut client, &mut Server::new(entries), 4096).unwrap_err()
    };
    assert_eq!(run(|options| options.entries_max = 9, openldap(10)), ClientError::TooManyEntries(9));
    let too_many = ClientError::TooManyValues { name: "CN=Staff".to_owned(), limit: 50 };
    assert_eq!(run(|options| options.values_max = 50, active_directory(100)), too_many);

    // One empty page after the other.
    let (mut client, sent) = waiting(Encryption::FromTheStart);
    client.receive(&answer(&sent, ResultCode::SUCCESS)).unwrap();
    let error = loop {
        let sent = Message::parse(&client.take_output(), MessageLimits::CLIENT).unwrap();
        let mut done = Message::new(sent.id, Operation::SearchDone(LdapResult::success()));
        done.controls.push(PagedResults { size: 0, cookie: b"again".to_vec() }.control(false));
        if let Err(error) = client.receive(&done.to_bytes()) {
            break error;
        }
    };
    assert_eq!(error, ClientError::EmptyPages);

    // A range that never moves on.
    let (mut client, sent) = waiting(Encryption::FromTheStart);
    client.receive(&answer(&sent, ResultCode::SUCCESS)).unwrap();
    let mut entries = 0;
    for _ in 0..10 {
        let output = client.take_output();
        let Ok(sent) = Message::parse(&output, MessageLimits::CLIENT) else { break };
        let Operation::Search(search) = &sent.operation else { break };
        let entry = Entry::new("CN=Staff").with("member;range=0-3", ["CN=a"]);
        let done = Message::new(sent.id, Operation::SearchDone(LdapResult::success())).to_bytes();
        let is_root = search.base.is_empty();
        let found = Message::new(sent.id, Operation::SearchEntry(entry)).to_bytes();
        let came = if is_root { done } else { [found, done].concat() };
        let mut rest = came.as_slice();
        while !rest.is_empty() {
            let (taken, event) = client.receive(rest).unwrap();
            rest = &rest[taken..];
            entries += usize::from(matches!(event, Some(Event::Entry(_))));
        }
        while let (_, Some(event)) = client.receive(&[]).unwrap() {
            entries += usize::from(matches!(event, Event::Entry(_)));
        }
    }
    assert!(client.is_over() && entries == 1, "{entries}");
}

proptest! {
    #[test]
    fn any_bytes_of_a_server(bytes in proptest::collection::vec(any::<u8>(), 0..100), steps in 0..3_usize) {
        let mut options = options(DirectoryKind::Standard);
        options.encryption = Encryption::FromTheStart;
        let mut client = SourceClient::new(options, Task::Read(Reading::All)).unwrap();
        client.connected().unwrap();
        let mut server = Server::new(openldap(5));
        for _ in 0..steps {
            let came = server.receive(&client.take_output());
            let mut rest = came.as_slice();
            while !rest.is_empty() {
                let (taken, _) = client.receive(rest).unwrap();
                rest = &rest[taken..];
            }
        }
        let _ = client.receive(&bytes);
    }
}

//! What a client that obeys believes is what there is, whatever others do meanwhile.

use proptest::prelude::*;
use scrinium_imap::{CapabilitySet, ServerOptions, SystemFlags};

use crate::client::{Belief, Connection};
use crate::world::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Plain,
    Condstore,
    Qresync,
    UidOnly,
}

#[derive(Clone, Debug)]
enum Action {
    /// A command of a session; `#` and `*` in it stand for messages.
    Command(usize, &'static str, u32, u32),
    Add,
    Remove(u32),
    Flag(u32, bool),
}

const COMMANDS: [&str; 22] = [
    "NOOP",
    "FETCH # (FLAGS)",
    "FETCH # (UID BODY[])",
    "UID FETCH @ (FLAGS)",
    "UID FETCH @ (BODY.PEEK[HEADER.FIELDS (SUBJECT)])",
    "STORE # +FLAGS (\\Deleted)",
    "STORE # +FLAGS.SILENT (\\Flagged $Work)",
    "STORE # -FLAGS (\\Seen)",
    "UID STORE @ FLAGS (\\Answered)",
    "UID STORE @ FLAGS.SILENT (\\Draft)",
    "EXPUNGE",
    "UID EXPUNGE @",
    "SEARCH UNSEEN",
    "UID SEARCH FLAGGED",
    "UID SEARCH RETURN (SAVE) ALL",
    "UID FETCH $ (FLAGS)",
    "COPY # Trash",
    "MOVE # Trash",
    "UID MOVE @ Trash",
    "SORT (REVERSE ARRIVAL) UTF-8 ALL",
    "CHECK",
    "STATUS INBOX (MESSAGES)",
];

fn action(sessions: usize) -> impl Strategy<Value = Action> {
    let command = (0..sessions, 0..COMMANDS.len(), 1_u32..12, 1_u32..12)
        .prop_map(|(session, command, from, to)| Action::Command(session, COMMANDS[command], from, to));
    prop_oneof![
        6 => command,
        1 => Just(Action::Add),
        1 => (0_u32..20).prop_map(Action::Remove),
        1 => (0_u32..20, any::<bool>()).prop_map(|(at, is_flagged)| Action::Flag(at, is_flagged)),
    ]
}

fn mode() -> impl Strategy<Value = Mode> {
    prop::sample::select(vec![Mode::Plain, Mode::Condstore, Mode::Qresync, Mode::UidOnly])
}

struct Client {
    connection: Connection,
    belief: Belief,
    mode: Mode,
}

fn options() -> ServerOptions {
    let mut options = ServerOptions::new("imap.test");
    options.hidden = CapabilitySet::NONE;
    // Small enough that answers come in several steps.
    options.limits.entries = 3;
    options.limits.output_bytes = 300;
    options
}

impl Client {
    fn new(world: &mut World, number: usize, mode: Mode) -> Self {
        let mut connection = Connection::with(options(), number);
        connection.say(world, "");
        connection.say(world, "x LOGIN ada secret\r\n");
        let enable = match mode {
            Mode::Plain => "",
            Mode::Condstore => "x ENABLE CONDSTORE\r\n",
            Mode::Qresync => "x ENABLE QRESYNC\r\n",
            Mode::UidOnly => "x ENABLE UIDONLY CONDSTORE\r\n",
        };
        connection.say(world, enable);
        let mut client = Self { connection, belief: Belief::default(), mode };
        client.tell(world, "x SELECT INBOX\r\n");
        client.learn(world);
        client
    }

    fn tell(&mut self, world: &mut World, text: &str) {
        let answer = self.connection.send(world, text.as_bytes());
        self.belief.hear(&answer);
    }

    /// Asks for what is new.
    fn learn(&mut self, world: &mut World) {
        if self.belief.uids.iter().any(Option::is_none) {
            self.tell(world, "x UID FETCH 1:* (FLAGS)\r\n");
        }
    }

    fn command(&mut self, world: &mut World, command: &str, from: u32, to: u32, others: &mut Vec<Action>) {
        let uid_only = self.mode == Mode::UidOnly;
        if uid_only && !command.starts_with("UID ") && command.contains(['#', 'H']) {
            return;
        }
        let set = format!("{from}:{to}");
        let text = format!("x {}\r\n", command.replace(['#', '@'], &set));
        self.belief.change_silently(command, from, to);
        let answer = self.connection.send_and(world, text.as_bytes(), |world, _| {
            if let Some(action) = others.pop() {
                change(world, &action);
            }
        });
        self.belief.hear(&answer);
        assert!(!self.connection.session.is_closed(), "{}", String::from_utf8_lossy(&answer));
    }

    fn agrees(&mut self, world: &mut World) {
        self.tell(world, "x NOOP\r\n");
        self.learn(world);
        let mut believed: Vec<(u32, Vec<String>)> = self
            .belief
            .uids
            .iter()
            .map(|uid| (uid.unwrap(), self.belief.flags.get(&uid.unwrap()).cloned().unwrap_or_default()))
            .collect();
        let mut truth = Belief::truth(world);
        if self.mode == Mode::UidOnly {
            // Numbers have no order that counts.
            believed.sort();
            truth.sort();
        }
        assert_eq!(believed, truth, "{:?}", self.mode);
        for (uid, mod_seq) in &self.belief.mod_seqs {
            let message = world.inbox().messages.iter().find(|message| message.uid == *uid).unwrap();
            assert_eq!(message.mod_seq, *mod_seq, "of {uid}");
        }
    }
}

fn change(world: &mut World, action: &Action) {
    let uid = |at: u32, world: &World| {
        let messages = &world.inbox().messages;
        (!messages.is_empty()).then(|| messages[at as usize % messages.len()].uid)
    };
    match action {
        Action::Add => {
            world.add("INBOX", b"Subject: new\r\n\r\nnew\r\n", SystemFlags::default());
        }
        Action::Remove(at) => {
            if let Some(uid) = uid(*at, world) {
                world.remove("INBOX", uid);
            }
        }
        Action::Flag(at, is_flagged) => {
            if let Some(uid) = uid(*at, world) {
                world.flag("INBOX", uid, *is_flagged);
            }
        }
        Action::Command(..) => {}
    }
}

fn world(messages: usize, step: u32) -> World {
    let mut world = World::new();
    for number in 0..messages {
        let source = format!("Subject: {number}\r\nFrom: a@x.test\r\n\r\nbody {number}\r\n");
        world.add("INBOX", source.as_bytes(), SystemFlags::default());
    }
    world.step = step;
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn what_a_client_believes_is_what_there_is(
        modes in prop::collection::vec(mode(), 2..4),
        messages in 0_usize..10,
        step in 1_u32..5,
        actions in prop::collection::vec((action(3), prop::collection::vec(action(1), 0..3)), 0..40),
    ) {
        let mut world = world(messages, step);
        let mut clients: Vec<Client> = modes
            .iter()
            .enumerate()
            .map(|(number, mode)| Client::new(&mut world, number, *mode))
            .collect();
        for (action, mut others) in actions {
            match action {
                Action::Command(session, command, from, to) => {
                    let place = session % clients.len();
                    clients[place].command(&mut world, command, from, to, &mut others);
                    clients[place].learn(&mut world);
                }
                action => change(&mut world, &action),
            }
        }
        for client in &mut clients {
            client.agrees(&mut world);
        }
    }

    #[test]
    fn an_old_state_and_the_answer_to_qresync_are_the_state_now(
        messages in 0_usize..10,
        step in 1_u32..5,
        before in prop::collection::vec(action(1), 0..10),
        after in prop::collection::vec(action(1), 0..20),
        names_known in any::<bool>(),
    ) {
        let mut world = world(messages, step);
        before.iter().for_each(|action| change(&mut world, action));
        let mut first = Client::new(&mut world, 0, Mode::Qresync);
        first.tell(&mut world, "x UID FETCH 1:* (FLAGS)\r\n");
        let mod_seq = world.inbox().change();
        let known = first.belief.clone();
        after.iter().for_each(|action| change(&mut world, action));
        let mut second = Connection::with(options(), 1);
        second.say(&mut world, "");
        second.say(&mut world, "x LOGIN ada secret\r\nx ENABLE QRESYNC\r\n");
        let uids = if names_known && !known.uids.is_empty() {
            let uids: Vec<String> = known.uids.iter().map(|uid| uid.unwrap().to_string()).collect();
            format!(" {}", uids.join(","))
        } else {
            String::new()
        };
        let validity = world.inbox().uid_validity;
        let text = format!("x SELECT INBOX (QRESYNC ({validity} {mod_seq}{uids}))\r\n");
        let answer = second.send(&mut world, text.as_bytes());
        let mut belief = Belief { flags: known.flags, ..Belief::default() };
        belief.hear(&answer);
        if names_known {
            // What is new has UIDs beyond those that the client named.
            let from = known.uids.iter().flatten().max().map_or(1, |last| last + 1);
            let answer = second.send(&mut world, format!("x UID FETCH {from}:* (FLAGS)\r\n").as_bytes());
            belief.hear(&answer);
        }
        let truth: Vec<(u32, Vec<String>)> = Belief::truth(&world);
        prop_assert_eq!(belief.flags.into_iter().collect::<Vec<_>>(), truth);
    }
}

#[test]
fn a_session_says_nothing_of_what_is_gone_where_numbers_are_in_use() {
    let mut world = world(5, 100);
    let mut client = Connection::selected(&mut world, 0);
    world.remove("INBOX", 2);
    let answer = client.say(&mut world, "a FETCH 1:* (UID)\r\n");
    assert!(!answer.contains("EXPUNGE\r"), "{answer}");
    assert!(answer.contains("* 3 FETCH (UID 3)") && answer.contains("a NO [EXPUNGEISSUED]"), "{answer}");
    let answer = client.say(&mut world, "b SEARCH ALL\r\nc STORE 3 +FLAGS (\\Seen)\r\n");
    assert!(
        answer.contains("* SEARCH 1 3 4 5\r\n") && answer.contains("* 3 FETCH (FLAGS (\\Seen))"),
        "{answer}"
    );
    let answer = client.say(&mut world, "d NOOP\r\n");
    assert_eq!(answer, "* 2 EXPUNGE\r\nd OK Done\r\n");
}

#[test]
fn new_messages_that_leave_at_once_are_never_numbered() {
    let mut world = world(2, 100);
    let mut client = Connection::selected(&mut world, 0);
    let uid = world.add("INBOX", b"Subject: x\r\n\r\n", SystemFlags::default());
    world.remove("INBOX", uid);
    assert_eq!(client.say(&mut world, "a NOOP\r\n"), "a OK Done\r\n");
}

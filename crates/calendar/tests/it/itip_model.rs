//! An organizer, several attendees, random changes, and messages that are doubled and come in any order: at the end all copies
//! agree, and nobody was sent the same twice.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use scrinium_calendar::civil::CivilTime;
use scrinium_calendar::itip::{
    Answer, Change, FilingRule, Incoming, ItipOutcome, Message, Person, Storing, answer, change, receive,
};
use scrinium_calendar::series::Series;
use scrinium_calendar::time::{CalendarTime, TimeKind};
use scrinium_calendar::zone::{Instant, Zone};
use scrinium_dav_wire::content::{Component, ContentItem, ContentLimits, ContentLine};

use crate::support::{EVER, cases};

const PEOPLE: [&str; 4] = ["org@a.test", "ada@a.test", "bob@a.test", "eve@a.test"];
const DAYS: i64 = 5;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Attendee, invited or not.
    Invite(usize, bool),
    /// The whole series begins at this hour.
    Move(i64),
    /// An instance begins at this hour.
    MoveInstance(i64, i64),
    Exclude(i64),
    Rename(u8),
    Cancel,
    /// Attendee, instance, answer.
    Answer(usize, Option<i64>, &'static str),
    /// A message that waits arrives; it may come once more.
    Deliver(usize, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let partstat = prop::sample::select(vec!["ACCEPTED", "DECLINED", "TENTATIVE"]);
    prop_oneof![
        2 => (1_usize..4, any::<bool>()).prop_map(|(who, is_in)| Step::Invite(who, is_in)),
        2 => (8_i64..12).prop_map(Step::Move),
        2 => (0_i64..DAYS, 13_i64..16).prop_map(|(day, hour)| Step::MoveInstance(day, hour)),
        1 => (0_i64..DAYS).prop_map(Step::Exclude),
        1 => any::<u8>().prop_map(Step::Rename),
        1 => Just(Step::Cancel),
        6 => (1_usize..4, prop::option::of(0_i64..DAYS), partstat)
            .prop_map(|(who, day, partstat)| Step::Answer(who, day, partstat)),
        12 => (any::<prop::sample::Index>(), any::<bool>())
            .prop_map(|(which, again)| Step::Deliver(which.index(1_000), again)),
    ]
}

fn time(day: i64, hour: i64) -> String {
    format!("202601{:02}T{hour:02}0000", 5 + day)
}

struct World {
    people: Vec<Person>,
    copies: Vec<Option<Component>>,
    waiting: Vec<Message>,
    sent: BTreeSet<String>,
    now: i64,
    hour: i64,
}

impl World {
    fn new() -> Self {
        let person = |address: &&str| Person { addresses: vec![(*address).to_owned()], zone: Zone::utc() };
        let text = format!(
            "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:m\r\nDTSTAMP:20260101T000000Z\r\nDTSTART;TZID=Europe/Berlin:{}\r\nDURATION:PT1H\r\nRRULE:FREQ=DAILY;COUNT={DAYS}\r\nSUMMARY:x\r\nORGANIZER:mailto:org@a.test\r\nATTENDEE;PARTSTAT=NEEDS-ACTION:mailto:ada@a.test\r\nATTENDEE:MAILTO:Bob@a.test\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
            time(0, 9)
        );
        let mut world = Self {
            people: PEOPLE.iter().map(person).collect(),
            copies: vec![None; 4],
            waiting: Vec::new(),
            sent: BTreeSet::new(),
            now: CivilTime::new(2026, 1, 1, 0).0,
            hour: 9,
        };
        world.put(&Component::parse(text.as_bytes(), ContentLimits::default()).unwrap());
        world
    }

    fn take(&mut self, who: usize, outcome: ItipOutcome) {
        match outcome.storing {
            Storing::Keep => {}
            Storing::Put(calendar) => self.copies[who] = Some(calendar),
            Storing::Delete => self.copies[who] = None,
        }
        for message in outcome.messages {
            assert!(self.sent.insert(message.identity()), "sent twice: {message:?}");
            self.waiting.push(message);
        }
    }

    fn put(&mut self, new: &Component) {
        self.now += 60;
        let stored = self.copies[0].clone();
        let request = Change { stored: stored.as_ref(), new: Some(new), keeps_answers: false, informs: true };
        let outcome = change(request, &self.people[0], Instant(self.now)).unwrap();
        self.take(0, outcome);
    }

    /// The organizer's client changes its copy.
    fn edit(&mut self, edit: impl FnOnce(&mut Component)) {
        let Some(mut calendar) = self.copies[0].clone() else { return };
        edit(&mut calendar);
        self.put(&calendar);
    }

    fn step(&mut self, step: Step) {
        let hour = self.hour;
        match step {
            Step::Invite(who, is_in) => self.edit(|calendar| {
                for part in calendar.components_mut() {
                    let is_other = |line: &ContentLine| !line.value().to_lowercase().ends_with(PEOPLE[who]);
                    part.items.retain(|item| {
                        !matches!(item, ContentItem::Line(line) if line.name() == "ATTENDEE" && !is_in && !is_other(line))
                    });
                    if is_in && !part.lines().any(|line| line.name() == "ATTENDEE" && !is_other(line)) {
                        part.push(ContentLine::new("ATTENDEE", Vec::new(), &format!("mailto:{}", PEOPLE[who])).unwrap());
                    }
                }
            }),
            Step::Move(hour) => {
                self.hour = hour;
                self.edit(|calendar| {
                    calendar.items.retain(|item| {
                        !matches!(item, ContentItem::Component(part) if part.line("RECURRENCE-ID").is_some())
                    });
                    let master = calendar.components_mut().next().unwrap();
                    master.lines_mut().find(|line| line.name() == "DTSTART").unwrap().set_value(&time(0, hour));
                    master.remove("EXDATE");
                });
            }
            Step::MoveInstance(day, to) => self.edit(|calendar| move_instance(calendar, day, hour, to)),
            Step::Exclude(day) => self.edit(|calendar| {
                let id = time(day, hour);
                calendar.items.retain(|item| !matches!(item, ContentItem::Component(part)
                    if part.line("RECURRENCE-ID").is_some_and(|line| line.value() == id)));
                let master = calendar.components_mut().next().unwrap();
                let mut line = master.line("DTSTART").unwrap().clone();
                line.set_value(&id);
                let line = ContentLine::new("EXDATE", line.parameters().to_vec(), &id).unwrap();
                if day > 0 && !master.lines().any(|known| known == &line) {
                    master.push(line);
                }
            }),
            Step::Rename(name) => self.edit(|calendar| {
                for part in calendar.components_mut() {
                    part.replace("SUMMARY", vec![ContentLine::new("SUMMARY", Vec::new(), &name.to_string()).unwrap()]);
                }
            }),
            Step::Cancel => {
                self.now += 60;
                if let Some(stored) = self.copies[0].take() {
                    let request = Change { stored: Some(&stored), new: None, keeps_answers: false, informs: true };
                    let outcome = change(request, &self.people[0], Instant(self.now)).unwrap();
                    self.take(0, outcome);
                }
            }
            Step::Answer(who, day, partstat) => self.answer(who, day, partstat),
            Step::Deliver(which, again) => {
                if !self.waiting.is_empty() {
                    self.deliver(which % self.waiting.len(), again);
                }
            }
        }
    }

    fn answer(&mut self, who: usize, day: Option<i64>, partstat: &str) {
        self.now += 60;
        let Some(stored) = self.copies[who].clone() else { return };
        let series = &Series::read_all(&stored, &Zone::utc())[0];
        let TimeKind::Zoned(berlin) = series
            .master()
            .map_or(TimeKind::Floating, |master| master.start.as_ref().unwrap().kind().clone())
        else {
            return;
        };
        let hour = series.master().unwrap().start.as_ref().unwrap().civil().second_of_day() / 3_600;
        let id = |day: i64| CivilTime(CivilTime::new(2026, 1, 5, 0).0 + day * 86_400 + hour * 3_600);
        let instance = day.map(|day| CalendarTime::new(id(day), TimeKind::Zoned(berlin)));
        let given = Answer { partstat: partstat.to_owned(), instance, delegate: None };
        if let Ok(outcome) = answer(&stored, &given, &self.people[who], Instant(self.now)) {
            self.take(who, outcome);
        }
    }

    fn deliver(&mut self, which: usize, again: bool) {
        self.now += 60;
        let message = if again { self.waiting[which].clone() } else { self.waiting.swap_remove(which) };
        let who = PEOPLE.iter().position(|address| *address == message.to).unwrap();
        let incoming = Incoming {
            calendar: &message.calendar,
            mime_method: Some(message.method.name()),
            sender: &message.from,
            is_authenticated: true,
            is_known: true,
        };
        let stored = self.copies[who].clone();
        let outcome =
            receive(stored.as_ref(), &incoming, FilingRule::Known, &self.people[who], Instant(self.now));
        self.take(who, outcome);
    }

    fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 1_000, "messages without an end");
            if self.waiting.is_empty() {
                break;
            }
            self.deliver(round % self.waiting.len(), false);
        }
    }

    /// When somebody's occurrences begin, and what that one answers, in a copy.
    fn seen(&self, copy: usize, who: usize) -> BTreeMap<i64, String> {
        let Some(calendar) = &self.copies[copy] else { return BTreeMap::new() };
        let series = &Series::read_all(calendar, &Zone::utc())[0];
        let mut seen = BTreeMap::new();
        for occurrence in series.occurrences(EVER, &Zone::utc(), 100).occurrences {
            let ContentItem::Component(part) = &calendar.items[occurrence.item] else { continue };
            let own = part
                .lines()
                .find(|line| line.name() == "ATTENDEE" && line.value().to_lowercase().ends_with(PEOPLE[who]));
            let is_over = part.line("STATUS").is_some_and(|line| line.value() == "CANCELLED");
            if let Some(own) = own.filter(|_| !is_over) {
                let partstat = own.parameter("PARTSTAT").unwrap_or("NEEDS-ACTION").to_owned();
                seen.insert(occurrence.start.key(), partstat);
            }
        }
        seen
    }
}

fn move_instance(calendar: &mut Component, day: i64, hour: i64, to: i64) {
    let id = time(day, hour);
    let master = calendar.components().next().unwrap().clone();
    if master.lines().any(|line| line.name() == "EXDATE" && line.value() == id) {
        return;
    }
    let of = |line: &ContentLine| line.value() == id;
    let known = calendar.components_mut().find(|part| part.line("RECURRENCE-ID").is_some_and(of));
    if let Some(known) = known {
        known.lines_mut().find(|line| line.name() == "DTSTART").unwrap().set_value(&time(day, to));
        return;
    }
    let mut part = master.clone();
    part.remove("RRULE");
    part.remove("EXDATE");
    let zone = master.line("DTSTART").unwrap().parameters().to_vec();
    part.replace("DTSTART", vec![ContentLine::new("DTSTART", zone.clone(), &time(day, to)).unwrap()]);
    part.push(ContentLine::new("RECURRENCE-ID", zone, &id).unwrap());
    calendar.items.push(ContentItem::Component(part));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(80), max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn all_copies_agree_at_the_end(steps in prop::collection::vec(step(), 1..25)) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
        }
        world.settle();
        for (who, address) in PEOPLE.iter().enumerate().skip(1) {
            prop_assert_eq!(world.seen(who, who), world.seen(0, who), "{} sees another meeting", address);
        }
    }
}

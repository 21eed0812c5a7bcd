//! Names of people and servers.
//!
//! A hierarchical name is written with its components' labels, `CN=Ann Smith/OU=Sales/O=Acme/C=US`, or
//! without, `Ann Smith/Sales/Acme/US`. Without labels the first component is the common name, a last one of
//! two letters the country if something stands between, the one before it the organisation.

use smol_str::format_smolstr;

use super::address::address;
use super::document::told;
use super::{Arguments, Body, Category, Function, flags, keyword};
use crate::machine::{Fault, Machine, MachineResult};
use crate::value::{Text, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "@Name",
        category: Category::Name,
        arguments: "part; name",
        help: "A part or a form of each name: [CN], [OU1] to [OU4], [O], [C], [G], [S], [I], [Q], [Abbreviate], \
               [Canonicalize], [HierarchyOnly], [ToKeyword]; of an Internet address [Address821], [LP] (what stands \
               before the @) and [Phrase]. Empty if the name has no such part.",
        examples: &[
            (r#"@Name([CN]; "CN=Ann Smith/OU=Sales/O=Acme")"#, r#""Ann Smith""#),
            (r#"@Name([Abbreviate]; "CN=Ann Smith/OU=Sales/O=Acme")"#, r#""Ann Smith/Sales/Acme""#),
            (r#"@Name([Canonicalize]; "Ann Smith/Sales/Acme")"#, r#""CN=Ann Smith/OU=Sales/O=Acme""#),
            (r#"@Name([O]:[OU1]; "Ann Smith/Sales/Acme")"#, r#""Acme""#),
            (r#"@Name([HierarchyOnly]; "Ann Smith/Sales/Acme")"#, r#""Sales/Acme""#),
            (r#"@Name([ToKeyword]; "Ann Smith/Sales/Acme/US")"#, r#""US\\Acme\\Sales""#),
            (r#"@Name([Address821]; "Ann Smith <ann@acme.com>")"#, r#""ann@acme.com""#),
            (r#"@Name([Phrase]; "\"Ann Smith\" <ann@acme.com>")"#, r#""Ann Smith""#),
        ],
        flags: flags::PURE,
        body: Body::Native(name),
    },
    Function {
        name: "@Author",
        category: Category::Name,
        arguments: "",
        help: "Who wrote the document, in short form: its field From, with @ and FromDomain if it has that, or else \
               its field $UpdatedBy.",
        examples: &[("@Author", r#""Ben Brown/Acme""#)],
        flags: flags::AUTHOR,
        body: Body::Native(author),
    },
    Function {
        name: "@V3UserName",
        category: Category::Name,
        arguments: "",
        help: "The name of the user for whom the formula runs, in short form.",
        examples: &[("@V3UserName", r#""Ann Smith/Sales/Acme""#)],
        flags: flags::USER,
        body: Body::Native(v3_user_name),
    },
];

/// A hierarchical name, taken apart.
#[derive(Debug, Default)]
struct Name<'n> {
    /// Label in capitals, and value, from the common name to the country.
    parts: Vec<(Label, &'n str)>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Label {
    Common,
    Unit,
    Organisation,
    Country,
    Given,
    Surname,
    Initials,
    Generation,
    Other,
}

impl Label {
    fn read(label: &str) -> Self {
        match Part::read(label) {
            Some(Part::Labelled(label)) => label,
            Some(Part::Unit(_)) => Self::Unit,
            _ => Self::Other,
        }
    }

    const fn shown(self) -> &'static str {
        match self {
            Self::Common | Self::Other => "CN",
            Self::Unit => "OU",
            Self::Organisation => "O",
            Self::Country => "C",
            Self::Given => "G",
            Self::Surname => "S",
            Self::Initials => "I",
            Self::Generation => "Q",
        }
    }
}

impl<'n> Name<'n> {
    fn read(name: &'n str) -> Self {
        let pieces: Vec<&str> = name.split('/').map(str::trim).collect();
        if pieces.iter().any(|piece| piece.contains('=')) {
            let part = |piece: &'n str| match piece.split_once('=') {
                Some((label, value)) => (Label::read(label.trim()), value.trim()),
                None => (Label::Other, piece),
            };
            return Self { parts: pieces.into_iter().map(part).collect() };
        }
        let last = pieces.len() - 1;
        let country = last >= 2 && pieces.last().is_some_and(|piece| piece.chars().count() == 2);
        let organisation = if country { last - 1 } else { last };
        let label = |place: usize| match place {
            0 => Label::Common,
            _ if place == organisation => Label::Organisation,
            _ if place > organisation => Label::Country,
            _ => Label::Unit,
        };
        Self { parts: pieces.iter().enumerate().map(|(place, piece)| (label(place), *piece)).collect() }
    }

    fn part(&self, label: Label) -> &'n str {
        self.parts.iter().find(|(found, _)| *found == label).map_or("", |(_, value)| value)
    }

    /// The units are numbered from the organisation downwards.
    fn unit(&self, number: usize) -> &'n str {
        self.parts
            .iter()
            .rev()
            .filter(|(label, _)| *label == Label::Unit)
            .nth(number)
            .map_or("", |(_, value)| value)
    }

    fn abbreviated(&self) -> String {
        self.parts.iter().map(|(_, value)| *value).collect::<Vec<_>>().join("/")
    }

    /// A name of one component stays as it is.
    fn canonical(&self) -> String {
        match self.parts.as_slice() {
            [(Label::Common, value)] => (*value).to_owned(),
            _ => self.labelled(),
        }
    }

    fn labelled(&self) -> String {
        let shown = self.parts.iter().map(|(label, value)| format!("{}={value}", label.shown()));
        shown.collect::<Vec<_>>().join("/")
    }

    fn hierarchy(&self) -> impl DoubleEndedIterator<Item = &(Label, &'n str)> {
        self.parts
            .iter()
            .filter(|(label, _)| matches!(label, Label::Unit | Label::Organisation | Label::Country))
    }
}

/// What `@Name` can be asked for.
#[derive(Clone, Copy, Debug)]
enum Part {
    Labelled(Label),
    /// Counted from 0.
    Unit(usize),
    Abbreviated,
    Canonical,
    Hierarchy,
    Keyword,
    Address,
    Mailbox,
    Phrase,
}

impl Part {
    const WORDS: [(&str, Self); 20] = [
        ("CN", Self::Labelled(Label::Common)),
        ("O", Self::Labelled(Label::Organisation)),
        ("OU", Self::Unit(0)),
        ("OU1", Self::Unit(0)),
        ("OU2", Self::Unit(1)),
        ("OU3", Self::Unit(2)),
        ("OU4", Self::Unit(3)),
        ("C", Self::Labelled(Label::Country)),
        ("G", Self::Labelled(Label::Given)),
        ("S", Self::Labelled(Label::Surname)),
        ("I", Self::Labelled(Label::Initials)),
        ("Q", Self::Labelled(Label::Generation)),
        ("ABBREVIATE", Self::Abbreviated),
        ("CANONICALIZE", Self::Canonical),
        ("HIERARCHYONLY", Self::Hierarchy),
        ("TOKEYWORD", Self::Keyword),
        ("ADDRESS821", Self::Address),
        ("LP", Self::Mailbox),
        ("LOCALPART", Self::Mailbox),
        ("PHRASE", Self::Phrase),
    ];

    fn read(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, part)| *part)
    }
}

fn name(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let word = keyword(arguments.text(0)?);
    let part = Part::read(word).ok_or_else(|| {
        let word = word.to_ascii_uppercase();
        arguments.message(format!("[{word}] is not a part of a name; use for example [CN]"))
    })?;
    let names = arguments.texts(1)?.try_map(|name| {
        machine.charge_text(name.len())?;
        Ok::<_, Fault>(part_of(part, name))
    })?;
    Ok(Value::Text(names))
}

fn part_of(part: Part, text: &Text) -> Text {
    // By far the most frequent question, answered without taking the name apart.
    if let (Part::Labelled(Label::Common), Some(("CN=", rest))) = (part, text.split_at_checked(3)) {
        return Text::new(rest.split('/').next().unwrap_or(rest).trim());
    }
    let address = address(text);
    let local_part = |address: &'_ str| address.rsplit_once('@').map(|(local, _)| Text::new(local));
    match (part, address) {
        (Part::Address, _) => return Text::new(address.map_or("", |(_, address)| address)),
        (Part::Phrase, _) => return Text::new(address.map_or("", |(phrase, _)| phrase)),
        (Part::Mailbox, _) => {
            return address.and_then(|(_, address)| local_part(address)).unwrap_or_default();
        }
        // An Internet address has no hierarchy: its common name is the phrase, or else what stands before
        // the @.
        (_, Some((phrase, address))) if !text.contains('=') => {
            return match part {
                Part::Labelled(Label::Common) if phrase.is_empty() => {
                    local_part(address).unwrap_or_else(|| Text::new(address))
                }
                Part::Labelled(Label::Common) => Text::new(phrase),
                Part::Abbreviated | Part::Canonical => text.clone(),
                _ => Text::default(),
            };
        }
        _ => {}
    }
    part_of_hierarchy(part, text)
}

fn part_of_hierarchy(part: Part, text: &Text) -> Text {
    let name = Name::read(text);
    match part {
        Part::Labelled(Label::Common) if name.parts.len() == 1 => {
            Text::new(name.parts.first().map_or("", |(_, value)| value))
        }
        Part::Labelled(label) => Text::new(name.part(label)),
        Part::Unit(number) => Text::new(name.unit(number)),
        Part::Canonical => Text::new(name.canonical()),
        Part::Hierarchy => {
            let above = Name { parts: name.hierarchy().copied().collect() };
            Text::new(if text.contains('=') { above.labelled() } else { above.abbreviated() })
        }
        Part::Keyword => {
            Text::new(name.hierarchy().rev().map(|(_, value)| *value).collect::<Vec<_>>().join("\\"))
        }
        Part::Abbreviated | Part::Address | Part::Mailbox | Part::Phrase => Text::new(name.abbreviated()),
    }
}

fn author(machine: &mut Machine<'_>, _: &Arguments<'_>) -> MachineResult {
    let names = match (machine.field_named("From")?, machine.field_named("FromDomain")?) {
        (Some(Value::Text(from)), Some(Value::Text(domain)))
            if domain.iter().any(|domain| !domain.is_empty()) =>
        {
            let domain = domain.first().cloned().unwrap_or_default();
            return Ok(Value::Text(from.map(|name| format_smolstr!("{name}@{domain}"))));
        }
        (Some(from), _) => from,
        (None, _) => machine.field_named("$UpdatedBy")?.unwrap_or_else(Value::empty),
    };
    let Value::Text(names) = names else { return Ok(names) };
    machine.charge(names.len())?;
    Ok(Value::Text(names.map(|name| part_of(Part::Abbreviated, name))))
}

fn v3_user_name(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    match &machine.environment()?.user_name {
        Some(user) => Ok(Value::text(Name::read(user).abbreviated())),
        None => told(arguments, None, "a user"),
    }
}

/// `@UserNamesList`
pub(super) fn user_names(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let environment = machine.environment()?;
    let Some(user) = &environment.user_name else { return told(arguments, None, "a user") };
    let name = Name::read(user);
    let mut names = Vec::new();
    if name.parts.len() > 1 {
        names.push(Text::new(name.part(Label::Common)));
    }
    names.push(Text::new(name.canonical()));
    for first in 1..name.parts.len() {
        let above = Name { parts: name.parts.get(first..).unwrap_or(&[]).to_vec() };
        names.push(Text::new(format!("*/{}", above.labelled())));
    }
    names.push(Text::new_static("*"));
    names.extend(environment.user_roles.iter().chain(&environment.user_groups).map(Text::new));
    machine.charge_list(names.len())?;
    Ok(Value::texts(names))
}

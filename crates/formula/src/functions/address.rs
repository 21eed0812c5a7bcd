//! Addresses of mail.

use super::{Arguments, Body, Category, Function, flags};
use crate::machine::{Fault, Machine, MachineResult};
use crate::value::{Text, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "@ValidateInternetAddress",
        category: Category::Name,
        arguments: "form; address",
        help: "Empty if an Internet address is well formed, else what is wrong: as [Address821] ann@acme.com, as \
               [Address822] also \"Ann Smith\" <ann@acme.com>.",
        examples: &[
            (r#"@ValidateInternetAddress([Address821]; "ann@acme.com")"#, r#""""#),
            (r#"@ValidateInternetAddress([Address822]; "Ann Smith <ann@acme.com>")"#, r#""""#),
            (r#"@ValidateInternetAddress([Address821]; "ann acme.com") = """#, "0"),
        ],
        flags: flags::PURE,
        body: Body::Native(validate),
    },
    Function {
        name: "@OptimizeMailAddress",
        category: Category::Name,
        arguments: "address",
        help: "An address of the form person@domain@domain without detours: of two equal domains the second goes, and \
               what stands between them.",
        examples: &[
            (r#"@OptimizeMailAddress("Ann@Sales@Hub@Sales@Acme")"#, r#""Ann@Sales@Acme""#),
            (r#"@OptimizeMailAddress("ann@acme.com")"#, r#""ann@acme.com""#),
        ],
        flags: flags::PURE,
        body: Body::Native(optimize),
    },
];

/// The parts of `"Ann Smith" <ann@acme.com>` or `ann@acme.com`: the phrase and the address.
pub(super) fn address(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    if let Some((phrase, rest)) = text.rsplit_once('<') {
        let address = rest.split_once('>')?.0.trim();
        let phrase = phrase.trim();
        let quoted = phrase.strip_prefix('"').and_then(|phrase| phrase.strip_suffix('"'));
        return Some((quoted.unwrap_or(phrase), address));
    }
    (text.contains('@') && !text.contains(char::is_whitespace)).then_some(("", text))
}

fn optimize(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let addresses = arguments.texts(0)?.try_map(|address| {
        let mut parts: Vec<&str> = Vec::new();
        for (number, part) in address.split('@').map(str::trim).enumerate() {
            machine.charge(1 + parts.len())?;
            let domains = parts.get(1..).unwrap_or(&[]);
            match domains.iter().position(|domain| number > 0 && domain.eq_ignore_ascii_case(part)) {
                Some(place) => parts.truncate(place + 2),
                None => parts.push(part),
            }
        }
        Ok::<_, Fault>(Text::new(parts.join("@")))
    })?;
    Ok(Value::Text(addresses))
}

fn validate(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let with_phrase = arguments.has_keyword(0, "ADDRESS822");
    if !with_phrase && !arguments.has_keyword(0, "ADDRESS821") {
        return Err(arguments.message("its form is [Address821] or [Address822]").into());
    }
    let faults = arguments.texts(1)?.try_map(|text| {
        machine.charge_text(text.len())?;
        let plain =
            if with_phrase { address(text).map_or(text.as_str(), |(_, address)| address) } else { text };
        Ok::<_, Fault>(Text::new(fault_of(plain)))
    })?;
    Ok(Value::Text(faults))
}

/// What is wrong with an address; empty if nothing is.
fn fault_of(address: &str) -> &'static str {
    let Some((local, domain)) = address.rsplit_once('@') else {
        return "An Internet address has an @ between the person and the domain.";
    };
    let dots = |text: &str| text.starts_with('.') || text.ends_with('.') || text.contains("..");
    let quoted = local.len() > 1 && local.starts_with('"') && local.ends_with('"');
    let in_local = |character: char| !character.is_control() && !" ()<>[]:;@\\,\"".contains(character);
    if local.is_empty() || (!quoted && (dots(local) || !local.chars().all(in_local))) {
        return "What stands before the @ is not the name of a mailbox.";
    }
    let in_domain = |character: char| character.is_alphanumeric() || matches!(character, '-' | '.');
    let literal = domain.starts_with('[') && domain.ends_with(']') && domain.len() > 2;
    if domain.is_empty() || (!literal && (dots(domain) || !domain.chars().all(in_domain))) {
        return "What stands behind the @ is not the name of a domain.";
    }
    ""
}

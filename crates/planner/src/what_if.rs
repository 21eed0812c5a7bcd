//! What if something were otherwise: an organisation changed by words of the command line.

use crate::error::PlanError;
use crate::organisation::{MOST_SERVERS, Organisation, size};

/// What can be changed: the word, and what its value is.
const WORDS: [(&str, &str); 12] = [
    ("users", "2x, or a number: of all groups together"),
    ("inbox", "4x: documents and bytes of each mail file"),
    ("load", "2x: what is done in the busy hour"),
    ("encryption", "on or off"),
    ("servers", "how many there are, in place of how many are needed"),
    ("cores", "of each server"),
    ("memory", "of each server: 32 GB"),
    ("lost", "servers that may fail; mail has at least one copy more"),
    ("years", "of growth"),
    ("average", "objective: milliseconds"),
    ("p99", "objective: milliseconds"),
    ("cpu", "objective: percent of the processors"),
];

/// Help for the command line.
#[must_use]
pub fn help() -> String {
    WORDS.iter().map(|(word, value)| format!("  {word:<11} {value}\n")).collect()
}

/// A number, or a factor: `2x`.
enum Amount {
    Number(f64),
    Times(f64),
}

impl Amount {
    fn of(text: &str) -> Option<Self> {
        let (digits, times) = match text.strip_suffix(['x', 'X']) {
            Some(digits) => (digits, true),
            None => (text, false),
        };
        let number: f64 =
            digits.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0)?;
        Some(if times { Self::Times(number) } else { Self::Number(number) })
    }

    fn factor(&self, of: f64) -> f64 {
        match self {
            Self::Times(factor) => *factor,
            Self::Number(number) => number / of.max(f64::MIN_POSITIVE),
        }
    }
}

/// The organisation with changes such as `users=2x,encryption=on`.
///
/// # Errors
/// [`PlanError::Usage`], with what can be written.
pub fn changed(organisation: &Organisation, text: &str) -> Result<Organisation, PlanError> {
    let mut organisation = organisation.clone();
    for part in text.split(',').map(str::trim) {
        let wrong = |what: &str| {
            PlanError::Usage(format!("--what-if {part}: {what}. What can be written:\n{}", help().trim_end()))
        };
        let (word, value) = part.split_once('=').ok_or_else(|| wrong("write WORD=VALUE"))?;
        change(&mut organisation, word.trim(), value.trim()).map_err(|what| wrong(&what))?;
    }
    Ok(organisation)
}

fn change(organisation: &mut Organisation, word: &str, value: &str) -> Result<(), String> {
    let amount = || Amount::of(value).ok_or_else(|| format!("{value} is no number above 0"));
    let number = |low: f64, high: f64| match amount()? {
        Amount::Number(number) if (low..=high).contains(&number) => Ok(number),
        _ => Err(format!("{value} is not from {low} to {high}")),
    };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within bounds")]
    let whole = |low: u32, high: u32| match value.parse::<u32>() {
        Ok(number) if (low..=high).contains(&number) => Ok(number),
        _ => Err(format!("{value} is no whole number from {low} to {high}")),
    };
    match word {
        "users" => {
            let all: f64 = organisation.users.iter().map(|group| group.count).sum();
            let factor = amount()?.factor(all);
            organisation.users.iter_mut().for_each(|group| group.count = (group.count * factor).ceil());
        }
        "inbox" => {
            let Amount::Times(factor) = amount()? else {
                return Err("write a factor, such as 4x".to_owned());
            };
            for group in &mut organisation.users {
                group.documents = (group.documents * factor).ceil();
                group.mail_file *= factor;
            }
        }
        "load" => {
            let load = organisation.busy_hour.load;
            organisation.busy_hour.load = match amount()? {
                Amount::Times(factor) => load * factor,
                Amount::Number(number) => number,
            };
        }
        "encryption" => {
            organisation.network.encryption = match value {
                "on" | "true" => true,
                "off" | "false" => false,
                _ => return Err("it is on or off".to_owned()),
            };
        }
        "servers" => organisation.machine.servers = Some(whole(1, MOST_SERVERS)?),
        "cores" => organisation.machine.cores = Some(f64::from(whole(1, 1024)?)),
        "memory" => {
            let bytes = size(value).filter(|bytes| *bytes >= 1024.0 * 1024.0);
            organisation.machine.memory =
                Some(bytes.ok_or_else(|| format!("{value} is no size; write 32 GB"))?);
        }
        "lost" => {
            let lost = whole(0, 99)?;
            organisation.availability.servers_lost = lost;
            organisation.availability.copies = organisation.availability.copies.max(lost + 1);
        }
        "years" => {
            organisation.growth.years = if value == "0" { 0.0 } else { number(0.0, 20.0)? };
        }
        "average" => organisation.objective.average_ms = number(0.001, 3_600_000.0)?,
        "p99" => organisation.objective.p99_ms = Some(number(0.001, 3_600_000.0)?),
        "cpu" => organisation.objective.cpu_percent = number(1.0, 100.0)?,
        _ => return Err(format!("{word} is nothing that can be changed")),
    }
    Ok(())
}

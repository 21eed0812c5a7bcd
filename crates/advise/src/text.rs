//! The report as people read it.

use crate::advice::{AdvisedStep, Figure};
use crate::report::{Recommended, Report, command};
use crate::rules::needs_restart;
use crate::words::{count, spoken, value, wrapped};

/// Lines are at most so long, commands aside.
const WIDTH: usize = 100;

/// Fewer requests say little about speed.
const FEW_REQUESTS: f64 = 100.0;

impl Report {
    /// The report; with `all`, also what is fine and what might be taken for a problem. `emphasised` makes a part stand out.
    #[must_use]
    pub fn to_text(&self, all: bool, emphasised: &dyn Fn(&str) -> String) -> String {
        let mut text = self.head();
        for (number, recommended) in (1..).zip(&self.advice) {
            text.push('\n');
            text.push_str(&recommended.to_text(number, emphasised));
        }
        text.push('\n');
        if self.advice.is_empty() {
            text.push_str(&format!("{}\n", emphasised("Nothing is to be changed.")));
        }
        let listed = |title: &str, lines: Vec<(&str, String)>| {
            let lines: String =
                lines.iter().map(|(name, line)| wrapped(&format!("  {name:<22} "), line, WIDTH)).collect();
            if lines.is_empty() { lines } else { format!("{title}\n{lines}") }
        };
        if all {
            let notes = self.notes.iter().map(|(rule, note)| (rule.name, note.clone())).collect();
            text.push_str(&listed("No problem, although one might take it for one:", notes));
            // A rule that asks for nothing has nothing to find.
            let fine = self.fine.iter().filter(|rule| !rule.speaks_if.starts_with("only to say"));
            let fine = fine.map(|rule| (rule.name, rule.speaks_if.replace('`', ""))).collect();
            text.push_str(&listed("Nothing was found by these, which speak if:", fine));
        }
        let unjudged = self.unjudged.iter().map(|(rule, why)| (rule.name, why.to_string())).collect();
        text.push_str(&listed("Could not be judged:", unjudged));
        text.push_str(&self.end(all));
        text
    }

    fn head(&self) -> String {
        let time = spoken(self.seconds);
        let time = if self.is_since_start { format!("{time} since the server's start") } else { time };
        let busy = self.processors_busy.map_or_else(String::new, |part| {
            format!(", {} % of the processors", count((part * 100.0).round()))
        });
        let each = if self.requests > 0.0 {
            format!(", {} each", value(self.request_ms, crate::Unit::Milliseconds))
        } else {
            String::new()
        };
        let few = if self.requests < FEW_REQUESTS {
            "Little happened: advice about speed needs a period in which people work.\n"
        } else {
            ""
        };
        format!("Looked at {time}: {} requests{each}{busy}\n{few}", count(self.requests))
    }

    fn end(&self, all: bool) -> String {
        let counted = self.advice.len() + self.notes.len() + self.unjudged.len() + self.fine.len();
        let more = if all { "" } else { "; --all shows more" };
        format!(
            "{counted} rules: {} with advice, {} without, {} that could not be judged{more}\n",
            self.advice.len(),
            self.fine.len() + self.notes.len(),
            self.unjudged.len()
        )
    }
}

impl Recommended {
    fn to_text(&self, number: usize, emphasised: &dyn Fn(&str) -> String) -> String {
        let Self { rule, advice, set_by } = self;
        let mut text = format!("{number}. {}  ({})\n", emphasised(rule.title), rule.name);
        let seen: Vec<String> = advice.seen.iter().map(figure).collect();
        text.push_str(&wrapped("   Seen      ", &seen.join("; "), WIDTH));
        text.push_str(&wrapped("   Means     ", &advice.means, WIDTH));
        let mut before = "   Change    ";
        for step in &advice.steps {
            text.push_str(&match (command(step), step) {
                // A command is to be pasted, so it stays one line.
                (Some(command), _) => format!("{before}{}\n", emphasised(&command)),
                (None, AdvisedStep::ByHand(what)) => wrapped(before, what, WIDTH),
                (None, _) => String::new(),
            });
            before = "             ";
        }
        let restarted: Vec<&str> = advice
            .steps
            .iter()
            .filter_map(|step| match step {
                AdvisedStep::Set { key, .. } if needs_restart(key) => Some(key.as_str()),
                _ => None,
            })
            .collect();
        if !restarted.is_empty() {
            text.push_str(&format!(
                "{before}then start the server again: {} is used from then on\n",
                restarted.join(", ")
            ));
        }
        for (key, by) in set_by {
            let told =
                format!("{key} is set by {by}, which wins at the next start: change it there as well.");
            text.push_str(&wrapped(before, &told, WIDTH));
        }
        let gain = advice.gain.spoken();
        let expected = match advice.expected_percent {
            Some([_, most]) if most < 1.0 => {
                format!("hardly any {gain} in this time, more when more happens")
            }
            Some([least, most]) if least < 1.0 => format!("up to {most} % {gain}"),
            Some([least, most]) => format!("{least} to {most} % {gain}"),
            None => gain.to_owned(),
        };
        text.push_str(&wrapped("   Expect    ", &expected, WIDTH));
        let support: Vec<String> = rule.support.iter().map(ToString::to_string).collect();
        text.push_str(&wrapped("   See       ", &support.join("; "), WIDTH));
        text.push_str(&wrapped("   Until     ", rule.until, WIDTH));
        text
    }
}

fn figure(figure: &Figure) -> String {
    let Figure { name, of, text, .. } = figure;
    let of = if of.is_empty() { String::new() } else { format!(" ({of})") };
    // A console command has no value.
    let is = if name.starts_with("show ") { ":" } else { " =" };
    format!("{name}{of}{is} {text}")
}

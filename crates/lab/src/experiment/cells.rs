//! From a definition to the cells that are measured: levels combined, parameters put in their places.

use std::collections::{BTreeMap, BTreeSet};

use scrinium_lab_report::experiment::Form;

use super::definition::{Definition, Factor, Level, Parameter, Scalar};
use super::error::ExperimentError;
use super::step::{CellStep, each_text};

/// Values of parameters.
pub(super) type Values = BTreeMap<String, String>;

/// One combination of levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// The label of each factor's level, in the order of the factors.
    pub(super) labels: Vec<String>,
    pub(super) values: Values,
    /// Settings that the levels set.
    pub(super) settings: BTreeMap<String, String>,
}

impl Cell {
    /// A name that a file can have.
    pub(super) fn slug(&self) -> String {
        slug(&self.labels)
    }
}

/// The name for files of the cell with these labels.
pub(super) fn slug(labels: &[String]) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '_' };
    let labels: Vec<String> = labels.iter().map(|label| label.chars().map(plain).collect()).collect();
    if labels.is_empty() { "cell".to_owned() } else { labels.join("-") }
}

/// A form of an experiment with what the command line changes.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) parameters: Values,
    /// Factors with the levels of this form.
    pub(super) factors: Vec<(Factor, Vec<Level>)>,
    pub(super) cells: Vec<Cell>,
    pub(super) repeats: u32,
    turns: Option<Turns>,
}

/// A factor whose levels are measured in turn on the same servers.
#[derive(Clone, Copy, Debug)]
struct Turns {
    /// Its place among the factors.
    factor: usize,
    count: u32,
    /// Steps before this one are carried out once, from it on for each level in each turn.
    first_step: usize,
}

/// What one start of the servers is for: a cell, or cells that differ in the factor whose levels take turns.
#[derive(Clone, Debug)]
pub(super) struct Group<'a> {
    pub(super) cells: Vec<&'a Cell>,
}

/// More cells than this are a mistake.
const MOST_CELLS: usize = 1000;

/// Nor is anything measured more often than this.
const MOST_REPEATS: u32 = 100;

impl Plan {
    /// The cells of this form. `set` changes parameters, the levels of factors that have plain values (a list with
    /// commas), and `repeats`; `only` keeps the cells that have all these labels.
    ///
    /// # Errors
    /// [`ExperimentError::Usage`].
    pub(super) fn new(
        definition: &Definition,
        form: Form,
        set: &[(String, String)],
        only: &[String],
    ) -> Result<Self, ExperimentError> {
        let usage = ExperimentError::Usage;
        let mut parameters: Values = definition
            .parameters
            .iter()
            .map(|(name, parameter)| {
                let value = if form == Form::Quick { &parameter.quick } else { &parameter.full };
                (name.clone(), value.0.clone())
            })
            .collect();
        let mut repeats =
            if form == Form::Quick { definition.repeats.quick } else { definition.repeats.full };
        let mut factors: Vec<(Factor, Vec<Level>)> =
            definition.factors.iter().map(|factor| (factor.clone(), levels(factor, form))).collect();
        let mut turns = Turns::of(definition, form);
        for (name, value) in set {
            let factor = factors.iter_mut().find(|(factor, _)| factor.name == *name);
            if name == "repeats" {
                repeats = value.parse().map_err(|_| usage(format!("repeats={value} is no number")))?;
            } else if let ("turns", Some(turns)) = (name.as_str(), &mut turns) {
                turns.count = value.parse().map_err(|_| usage(format!("turns={value} is no number")))?;
                turns.count = turns.count.clamp(1, MOST_REPEATS);
            } else if let Some(parameter) = parameters.get_mut(name) {
                parameter.clone_from(value);
            } else if let Some((factor, levels)) = factor {
                *levels = chosen(factor, value).map_err(usage)?;
            } else {
                let known: Vec<&str> = parameters
                    .keys()
                    .map(String::as_str)
                    .chain(definition.factors.iter().map(|factor| factor.name.as_str()))
                    .collect();
                return Err(usage(format!(
                    "--set {name}: there is no such parameter or factor; there is: repeats, {}",
                    known.join(", ")
                )));
            }
        }
        let mut cells = combine(&parameters, &factors);
        if !only.is_empty() {
            cells.retain(|cell| {
                only.iter().all(|wanted| cell.labels.iter().any(|label| label.eq_ignore_ascii_case(wanted)))
            });
        }
        match cells.len() {
            0 => Err(usage(format!(
                "no cell has {}; labels are: {}",
                only.join(" and "),
                all_labels(&factors)
            ))),
            count if count > MOST_CELLS => Err(usage(format!("{count} cells are more than {MOST_CELLS}"))),
            _ => Ok(Self { parameters, factors, cells, repeats: repeats.clamp(1, MOST_REPEATS), turns }),
        }
    }

    /// How often each level is measured on the same servers.
    pub(super) fn turns(&self) -> u32 {
        self.turns.map_or(1, |turns| turns.count)
    }

    /// How often each cell is measured.
    pub(super) fn runs(&self) -> u32 {
        self.repeats * self.turns()
    }

    /// The number of a run of a cell, from 1.
    pub(super) fn number(&self, repeat: u32, turn: u32) -> u32 {
        (repeat - 1) * self.turns() + turn
    }

    /// Steps that a group's cells have in common, and those that each of them has for itself.
    pub(super) fn split<'s>(&self, steps: &'s [CellStep]) -> (&'s [CellStep], &'s [CellStep]) {
        steps.split_at_checked(self.turns.map_or(0, |turns| turns.first_step)).unwrap_or((&[], steps))
    }

    /// The cells by what they are started for.
    pub(super) fn groups(&self) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for cell in &self.cells {
            let beside = groups.iter_mut().find(|group| {
                group
                    .cells
                    .first()
                    .is_some_and(|first| self.turns.is_some_and(|turns| turns.joins(first, cell)))
            });
            match beside {
                Some(group) => group.cells.push(cell),
                None => groups.push(Group { cells: vec![cell] }),
            }
        }
        groups
    }
}

impl Group<'_> {
    /// Its cells in the order of a turn: forth and back, so that what changes steadily meets all alike.
    pub(super) fn in_turn(&self, number: u32) -> Vec<&Cell> {
        let mut cells = self.cells.clone();
        if number.is_multiple_of(2) {
            cells.reverse();
        }
        cells
    }
}

impl Turns {
    fn of(definition: &Definition, form: Form) -> Option<Self> {
        let mut factors = definition.factors.iter().enumerate();
        let (factor, repeats, found) =
            factors.find_map(|(index, factor)| Some((index, factor.turns?, factor)))?;
        let count = if form == Form::Quick { repeats.quick } else { repeats.full };
        let first_step = first_step_of(found, definition)?;
        Some(Self { factor, count: count.clamp(1, MOST_REPEATS), first_step })
    }

    /// Whether two cells differ in nothing but this factor.
    fn joins(self, one: &Cell, other: &Cell) -> bool {
        let mut pairs = one.labels.iter().zip(&other.labels).enumerate();
        pairs.all(|(index, (one, other))| index == self.factor || one == other)
    }
}

/// The first step that a level of the factor changes, through whatever values it is named.
pub(super) fn first_step_of(factor: &Factor, definition: &Definition) -> Option<usize> {
    let changed = changed_by(factor, definition);
    let depends = |step: &CellStep| {
        let mut found = false;
        each_text(&step.written(), &mut |text| found |= names(text).any(|name| changed.contains(name)));
        found
    };
    definition.steps.iter().position(depends)
}

/// The names whose values differ with the factor's levels: its own, and those whose values name them.
fn changed_by<'d>(factor: &'d Factor, definition: &'d Definition) -> BTreeSet<&'d str> {
    fn of_level(level: &Level) -> impl Iterator<Item = (&str, &Scalar)> {
        level.values.iter().map(|(name, value)| (name.as_str(), value))
    }
    let forms = |(name, parameter): (&'d String, &'d Parameter)| {
        [(name.as_str(), &parameter.quick), (name.as_str(), &parameter.full)]
    };
    let of_factors = definition.factors.iter().flat_map(|other| &other.levels).flat_map(of_level);
    let values: Vec<(&str, &Scalar)> =
        definition.parameters.iter().flat_map(forms).chain(of_factors).collect();
    let mut changed: BTreeSet<&str> = factor.levels.iter().flat_map(of_level).map(|(name, _)| name).collect();
    changed.insert(&factor.name);
    for _ in 0..DEEPEST {
        let through = values.iter().filter(|(_, value)| names(&value.0).any(|name| changed.contains(name)));
        let through: Vec<&str> = through.map(|(name, _)| *name).collect();
        changed.extend(through);
    }
    changed
}

fn all_labels(factors: &[(Factor, Vec<Level>)]) -> String {
    let labels: Vec<&str> =
        factors.iter().flat_map(|(_, levels)| levels.iter().map(|level| level.label.as_str())).collect();
    labels.join(", ")
}

fn plain_level(factor: &Factor, value: &str) -> Level {
    Level {
        label: value.to_owned(),
        settings: BTreeMap::new(),
        values: BTreeMap::from([(factor.name.clone(), Scalar(value.to_owned()))]),
        only_full: false,
    }
}

fn levels(factor: &Factor, form: Form) -> Vec<Level> {
    let plain = if form == Form::Quick { &factor.quick } else { &factor.full };
    let named = factor.levels.iter().filter(|level| form == Form::Full || !level.only_full);
    named.cloned().chain(plain.iter().map(|value| plain_level(factor, &value.0))).collect()
}

/// Levels that a list with commas names.
fn chosen(factor: &Factor, list: &str) -> Result<Vec<Level>, String> {
    let words = list.split(',').map(str::trim).filter(|word| !word.is_empty());
    if factor.levels.is_empty() {
        return Ok(words.map(|word| plain_level(factor, word)).collect());
    }
    let named = |word: &str| {
        let found = factor.levels.iter().find(|level| level.label.eq_ignore_ascii_case(word));
        let labels: Vec<&str> = factor.levels.iter().map(|level| level.label.as_str()).collect();
        found
            .cloned()
            .ok_or_else(|| format!("{} has no level {word}; there is: {}", factor.name, labels.join(", ")))
    };
    words.map(named).collect()
}

/// Every combination; the last factor's levels change fastest.
fn combine(parameters: &Values, factors: &[(Factor, Vec<Level>)]) -> Vec<Cell> {
    let first = Cell { labels: Vec::new(), values: parameters.clone(), settings: BTreeMap::new() };
    factors.iter().fold(vec![first], |cells, (_, levels)| {
        let with = |cell: &Cell, level: &Level| {
            let mut cell = cell.clone();
            cell.labels.push(level.label.clone());
            cell.values.extend(level.values.iter().map(|(name, value)| (name.clone(), value.0.clone())));
            cell.settings.extend(level.settings.iter().map(|(name, value)| (name.clone(), value.0.clone())));
            cell
        };
        cells.iter().flat_map(|cell| levels.iter().map(move |level| with(cell, level))).collect()
    })
}

/// The names after `$` in a text: `a` and `b` in `$a/${b}`.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('$').skip(1).filter_map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let end = rest.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
        let name = rest.get(..end.unwrap_or(rest.len()))?;
        name.starts_with(|first: char| first.is_ascii_lowercase()).then_some(name)
    })
}

/// Values may name other values so deep.
const DEEPEST: usize = 4;

/// Puts values in the place of their names. What is no name stays as it is.
///
/// # Errors
/// The name that has no value.
pub(super) fn substitute(text: &str, values: &Values) -> Result<String, String> {
    let mut text = text.to_owned();
    for _ in 0..DEEPEST {
        let mut named: Vec<String> = names(&text).map(str::to_owned).collect();
        if named.is_empty() {
            break;
        }
        // The longest first, so that $user does not take the beginning of $users.
        named.sort_by_key(|name| std::cmp::Reverse(name.len()));
        for name in named {
            let value = values.get(&name).ok_or_else(|| format!("${name} has no value"))?;
            text = text.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value);
        }
    }
    Ok(text)
}

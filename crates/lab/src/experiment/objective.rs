//! What an experiment is asked to show, and whether it does.

use std::collections::BTreeMap;

use scrinium_lab_report::experiment::{
    CellPart, ColumnPart, FactorPart, Form, ObjectivePart, factor as times, shown,
};

use super::definition::{Definition, Factor, Objective, Scalar};

/// What there is to look at.
pub(super) struct Measured<'a> {
    pub(super) form: Form,
    pub(super) factors: &'a [FactorPart],
    pub(super) columns: &'a [ColumnPart],
    pub(super) cells: &'a [CellPart],
}

/// A value, with the one that it is held against.
struct Value<'a> {
    cell: &'a CellPart,
    value: f64,
    against: Option<f64>,
}

impl Value<'_> {
    /// What the limit is for.
    fn number(&self) -> f64 {
        self.against.map_or(self.value, |against| self.value / against)
    }
}

impl Measured<'_> {
    /// Holds objectives against the cells; those of the full form alone are left out of the quick one.
    pub(super) fn judge(&self, objectives: &[Objective]) -> Vec<ObjectivePart> {
        let asked = objectives.iter().filter(|objective| self.form == Form::Full || !objective.only_full);
        asked.map(|objective| self.judge_one(objective)).collect()
    }

    fn judge_one(&self, objective: &Objective) -> ObjectivePart {
        let column = self.columns.iter().position(|column| column.title == objective.column);
        let unit =
            column.and_then(|index| self.columns.get(index)).map(|column| column.unit).unwrap_or_default();
        let values = column.map(|column| self.values(objective, column)).unwrap_or_default();
        let (limit, is_most) = objective.limit();
        // The farthest from holding it speaks for all.
        let worst = values
            .into_iter()
            .reduce(|one, other| if (other.number() > one.number()) == is_most { other } else { one });
        let is_ratio = objective.against.is_some();
        let tell = |number: f64| if is_ratio { times(number) } else { shown(number, unit) };
        ObjectivePart {
            title: objective.title.clone(),
            column: objective.column.clone(),
            asked: format!("{} {}", if is_most { "at most" } else { "at least" }, tell(limit)),
            held: worst
                .as_ref()
                .map(|worst| if is_most { worst.number() <= limit } else { worst.number() >= limit }),
            cell: worst.as_ref().map(|worst| worst.cell.labels.clone()).unwrap_or_default(),
            measured: worst.map(|worst| match worst.against {
                Some(against) => {
                    format!(
                        "{}, {} compared with {}",
                        tell(worst.number()),
                        shown(worst.value, unit),
                        shown(against, unit)
                    )
                }
                None => tell(worst.value),
            }),
        }
    }

    /// Of all cells that it is about and that are valid.
    fn values(&self, objective: &Objective, column: usize) -> Vec<Value<'_>> {
        let of = |cell: &CellPart| {
            cell.values.get(column).copied().flatten().filter(|_| cell.is_valid()).map(|spread| spread.mean)
        };
        let is_asked = |cell: &&CellPart| self.is_at(cell, &objective.of);
        let value = |cell| {
            let against = match &objective.against {
                None => None,
                Some(levels) => Some(of(self.beside(cell, levels)?).filter(|value| *value > 0.0)?),
            };
            Some(Value { cell, value: of(cell)?, against })
        };
        self.cells.iter().filter(is_asked).filter_map(value).collect()
    }

    /// Whether a cell is at these levels; factors that are not named may be at any.
    fn is_at(&self, cell: &CellPart, levels: &BTreeMap<String, Scalar>) -> bool {
        self.factors.iter().zip(&cell.labels).all(|(factor, label)| {
            levels.get(&factor.name).is_none_or(|level| resolved(factor, level) == Some(label.as_str()))
        })
    }

    /// The cell that differs from another one in these levels alone.
    fn beside(&self, cell: &CellPart, levels: &BTreeMap<String, Scalar>) -> Option<&CellPart> {
        let wanted: Option<Vec<&str>> = self
            .factors
            .iter()
            .zip(&cell.labels)
            .map(|(factor, label)| match levels.get(&factor.name) {
                Some(level) => resolved(factor, level),
                None => Some(label.as_str()),
            })
            .collect();
        let wanted = wanted?;
        self.cells.iter().find(|cell| cell.labels.iter().map(String::as_str).eq(wanted.iter().copied()))
    }
}

const FIRST: &str = "first";
const LAST: &str = "last";

/// The label of a level that is named so, or is the first or last of the form that was measured.
fn resolved<'a>(factor: &'a FactorPart, level: &'a Scalar) -> Option<&'a str> {
    match level.0.as_str() {
        FIRST => factor.levels.first().map(String::as_str),
        LAST => factor.levels.last().map(String::as_str),
        label => Some(label),
    }
}

impl Objective {
    /// The limit, and whether it is the most; one that has neither is refused when its experiment is read.
    fn limit(&self) -> (f64, bool) {
        match (self.at_most, self.at_least) {
            (Some(most), _) => (most, true),
            (None, least) => (least.unwrap_or_default(), false),
        }
    }

    /// What its form does not rule out.
    pub(super) fn check(&self, definition: &Definition) -> Result<(), String> {
        let title = &self.title;
        if self.at_most.is_some() == self.at_least.is_some() {
            return Err(format!(
                "the objective \u{201c}{title}\u{201d} needs at_most or at_least, and not both"
            ));
        }
        if !definition.columns.iter().any(|column| column.title == self.column) {
            return Err(format!(
                "the objective \u{201c}{title}\u{201d} is of \u{201c}{}\u{201d}, and no column has this title",
                self.column
            ));
        }
        for (name, level) in self.of.iter().chain(self.against.iter().flatten()) {
            let factor = definition.factors.iter().find(|factor| factor.name == *name);
            let factor = factor.ok_or_else(|| {
                format!("the objective \u{201c}{title}\u{201d} names {name}, and no factor is called so")
            })?;
            if ![FIRST, LAST].contains(&level.0.as_str()) && !labels(factor).contains(&level.0.as_str()) {
                return Err(format!(
                    "the objective \u{201c}{title}\u{201d} is of {name} = {}; there is: first, last, {}",
                    level.0,
                    labels(factor).join(", ")
                ));
            }
        }
        Ok(())
    }
}

fn labels(factor: &Factor) -> Vec<&str> {
    let levels = factor.levels.iter().map(|level| level.label.as_str());
    let values = factor.quick.iter().chain(&factor.full).map(|value| value.0.as_str());
    let mut labels: Vec<&str> = levels.chain(values).collect();
    let mut seen = std::collections::BTreeSet::new();
    labels.retain(|label| seen.insert(*label));
    labels
}

#[cfg(test)]
mod tests {
    use scrinium_lab_report::experiment::{Spread, Unit};

    use super::*;

    fn cell(labels: [&str; 2], mean: f64, invalid: &[&str]) -> CellPart {
        CellPart {
            labels: labels.map(str::to_owned).to_vec(),
            settings: BTreeMap::new(),
            values: vec![Spread::of(&[mean])],
            invalid: invalid.iter().map(|why| (*why).to_owned()).collect(),
            failed: None,
            left_out: Vec::new(),
            search: Vec::new(),
            reports: Vec::new(),
            load_reports: Vec::new(),
        }
    }

    fn judged(objective: &str) -> ObjectivePart {
        let factor = |name: &str, levels: [&str; 2]| FactorPart {
            name: name.to_owned(),
            title: name.to_owned(),
            levels: levels.map(str::to_owned).to_vec(),
        };
        let measured = Measured {
            form: Form::Quick,
            factors: &[factor("pool", ["none", "half"]), factor("users", ["1", "400"])],
            columns: &[ColumnPart { title: "Response".to_owned(), unit: Unit::Milliseconds }],
            cells: &[
                cell(["none", "1"], 2.0, &[]),
                cell(["none", "400"], 3.0, &[]),
                cell(["half", "1"], 2.0, &[]),
                cell(["half", "400"], 5.0, &[]),
                cell(["half", "starved"], 0.1, &["the driver was starved"]),
            ],
        };
        let objective: Objective = toml_edit::de::from_str(objective).unwrap();
        measured.judge(&[objective]).pop().unwrap()
    }

    #[test]
    fn the_cell_that_is_farthest_from_an_objective_speaks_for_all() {
        let growth =
            "title = 'Flat'\ncolumn = 'Response'\nof = { users = 'last' }\nagainst = { users = 'first' }\n";
        assert_eq!(
            judged(&format!("{growth}at_most = 2")).sentence(),
            "Flat: missed. Response: \u{d7}2.50, 5.00 ms compared with 2.00 ms (half, 400), asked: at most \u{d7}2.00."
        );
        assert_eq!(judged(&format!("{growth}at_most = 2.5")).held, Some(true));
        assert_eq!(
            judged(&format!("{growth}at_least = 1.6")).measured.as_deref(),
            Some("\u{d7}1.50, 3.00 ms compared with 2.00 ms")
        );
        let plain =
            judged("title = 'Soon'\ncolumn = 'Response'\nof = { users = 400, pool = 'none' }\nat_most = 3");
        assert_eq!((plain.held, plain.measured.as_deref()), (Some(true), Some("3.00 ms")));
        let starved = judged("title = 'Soon'\ncolumn = 'Response'\nof = { users = 'starved' }\nat_most = 3");
        assert_eq!(starved.sentence(), "Soon: not measured. Response: asked: at most 3.00 ms.");
    }
}

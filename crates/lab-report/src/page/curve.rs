//! Lines through measured points, with the spread of each point, as SVG in the page's colours.

use plotters::prelude::*;

use super::chart::{AXIS, Area, GRID, INK, SERIES, drawn, round_up, undrawable, whole_steps};
use crate::error::ReportError;

/// A point: where, and between what its runs were.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct CurvePoint {
    pub x: f64,
    pub low: f64,
    pub mean: f64,
    pub high: f64,
}

/// Which lines have their points marked, and joined or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// Not for lines of hundreds of points.
    None,
    /// On each line.
    All,
    /// Only on so few of the first lines, whose points are not joined: what was measured, next to what a law says.
    First(usize),
}

impl Marks {
    fn are_on(self, line: usize) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::First(lines) => line < lines,
        }
    }

    fn are_joined(self, line: usize) -> bool {
        !matches!(self, Self::First(lines) if line < lines)
    }
}

/// Lines over one axis. Line number n has colour n of the page, beginning again after the last.
#[allow(missing_docs, reason = "the names say it")]
pub struct Curves<'a> {
    pub lines: Vec<Vec<CurvePoint>>,
    pub show_x: &'a dyn Fn(f64) -> String,
    pub show_y: &'a dyn Fn(f64) -> String,
    pub marks: Marks,
    /// An axis of powers of ten at equal distances, where values differ by much.
    pub logarithmic: bool,
}

/// Half as wide as a letter of a label, in the chart's units, and a little more.
const HALF_LETTER: u32 = 5;

/// Where the highest value is this many times the lowest, small ones could not be seen on a plain axis.
const WIDE: f64 = 30.0;

/// One axis: its scale and its ends on that scale.
#[derive(Clone, Copy)]
struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Axis {
    fn of(values: &[f64], may_be_logarithmic: bool, from_zero: bool) -> Self {
        let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
        if may_be_logarithmic && lowest > 0.0 && highest / lowest >= WIDE {
            let (low, high) = (lowest.log10().floor(), highest.log10().ceil());
            return Self { low, high, logarithmic: true };
        }
        let low = if from_zero || !lowest.is_finite() { 0.0 } else { lowest.min(0.0).max(lowest) };
        let high = match (highest.is_finite() && highest > 0.0, from_zero) {
            (true, true) => round_up(highest * 1.05),
            (true, false) => highest,
            (false, _) => 1.0,
        };
        Self { low, high: if high > low { high } else { low + 1.0 }, logarithmic: false }
    }

    fn place(self, value: f64) -> f64 {
        if self.logarithmic { value.max(f64::MIN_POSITIVE).log10() } else { value }
    }

    fn value(self, place: f64) -> f64 {
        if self.logarithmic { 10_f64.powf(place) } else { place }
    }

    fn labels(self, otherwise: usize) -> usize {
        if self.logarithmic { whole_steps(self.low, self.high) } else { otherwise }
    }
}

impl Curves<'_> {
    /// The chart as an `<svg>` element without a size of its own.
    ///
    /// # Errors
    /// [`ReportError::Chart`] when it cannot be drawn.
    pub fn svg(&self) -> Result<String, ReportError> {
        drawn(|area| self.draw(area))
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), ReportError> {
        let all = || self.lines.iter().flatten();
        let xs: Vec<f64> = all().map(|point| point.x).collect();
        let ys: Vec<f64> = all().flat_map(|point| [point.low, point.high]).collect();
        let x = Axis::of(&xs, self.logarithmic, false);
        let y = Axis::of(&ys, self.logarithmic, true);
        // Half of the last label stands beyond the end of its axis.
        let last_label = (self.show_x)(x.value(x.high)).chars().count();
        let mut chart = ChartBuilder::on(area)
            .margin_top(10)
            .margin_right(HALF_LETTER * u32::try_from(last_label).unwrap_or(0).clamp(5, 20))
            .x_label_area_size(30)
            .y_label_area_size(74)
            .build_cartesian_2d(x.low..x.high, y.low..y.high)
            .map_err(undrawable)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID.stroke_width(1))
            .axis_style(AXIS.stroke_width(1))
            .x_labels(x.labels(7))
            .y_labels(y.labels(6))
            .x_label_formatter(&|place| (self.show_x)(x.value(*place)))
            .y_label_formatter(&|place| (self.show_y)(y.value(*place)))
            .label_style(("sans-serif", 15).into_font().color(&INK))
            .set_all_tick_mark_size(3)
            .draw()
            .map_err(undrawable)?;
        for (index, line) in self.lines.iter().enumerate() {
            let colour = SERIES.get(index % SERIES.len()).copied().unwrap_or(INK);
            let at = |point: &CurvePoint| (x.place(point.x), y.place(point.mean));
            if self.marks.are_joined(index) {
                let path: Vec<(f64, f64)> = line.iter().map(at).collect();
                chart.draw_series([PathElement::new(path, colour.stroke_width(2))]).map_err(undrawable)?;
            }
            if !self.marks.are_on(index) {
                continue;
            }
            let spreads = line.iter().filter(|point| point.high > point.low).map(|point| {
                let place = x.place(point.x);
                PathElement::new(
                    vec![(place, y.place(point.low)), (place, y.place(point.high))],
                    colour.mix(0.45).stroke_width(5),
                )
            });
            chart.draw_series(spreads).map_err(undrawable)?;
            let marks = line.iter().map(|point| Circle::new(at(point), 4, colour.filled()));
            chart.draw_series(marks).map_err(undrawable)?;
        }
        Ok(())
    }
}

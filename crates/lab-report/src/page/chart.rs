//! Line charts against time, as SVG that takes its colours from the page's style sheet.
//!
//! Drawn by crate `plotters`. It writes fixed colours, so each role is given a colour that stands for it,
//! and these are replaced by variables of the style sheet: the same chart is right in light and in dark.

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::error::ReportError;

pub(crate) const WIDTH: u32 = 720;
pub(crate) const HEIGHT: u32 = 260;

/// Colours that stand for roles.
pub(crate) const GRID: RGBColor = RGBColor(254, 1, 1);
pub(crate) const AXIS: RGBColor = RGBColor(254, 1, 2);
pub(crate) const INK: RGBColor = RGBColor(254, 1, 3);
const SHADE: RGBColor = RGBColor(254, 1, 4);
pub(crate) const SERIES: [RGBColor; 4] =
    [RGBColor(254, 2, 1), RGBColor(254, 2, 2), RGBColor(254, 2, 3), RGBColor(254, 2, 4)];

/// At most this many points are drawn.
const MOST_POINTS: usize = 360;

/// One line of a chart. Where a value is missing the line is broken.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: &'static str,
    /// Which of the page's colours, beginning with 0.
    pub(crate) colour: usize,
    pub(crate) values: Vec<Option<f64>>,
    pub(crate) filled: bool,
}

/// A chart against time.
pub(crate) struct Chart<'a> {
    pub(crate) times_s: &'a [f64],
    pub(crate) series: Vec<Series>,
    /// Powers of ten at equal distances.
    pub(crate) logarithmic: bool,
    /// The hold phase: what is outside of it is shaded.
    pub(crate) hold_s: (f64, f64),
    pub(crate) show: &'a dyn Fn(f64) -> String,
}

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// What `draw` draws, as an `<svg>` element without a size of its own.
pub(crate) fn drawn(draw: impl FnOnce(&Area<'_>) -> Result<(), ReportError>) -> Result<String, ReportError> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
        draw(&area)?;
        area.present().map_err(undrawable)?;
    }
    Ok(with_style_variables(&svg))
}

impl Chart<'_> {
    /// The chart as an `<svg>` element without a size of its own.
    pub(crate) fn svg(&self) -> Result<String, ReportError> {
        drawn(|area| self.draw(area))
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), ReportError> {
        let end_s = self.times_s.iter().copied().fold(1.0, f64::max);
        let (low, high) = self.range();
        let mut chart = ChartBuilder::on(area)
            .margin_top(10)
            .margin_right(14)
            .x_label_area_size(30)
            .y_label_area_size(74)
            .build_cartesian_2d(0.0..end_s, low..high)
            .map_err(undrawable)?;
        let (from, to) = self.hold_s;
        for (left, right) in [(0.0, from.min(end_s)), (to.max(0.0), end_s)] {
            if right > left {
                let shade = Rectangle::new([(left, low), (right, high)], SHADE.filled());
                chart.draw_series([shade]).map_err(undrawable)?;
            }
        }
        let labels = if self.logarithmic { whole_steps(low, high) } else { 6 };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID.stroke_width(1))
            .axis_style(AXIS.stroke_width(1))
            .x_labels(7)
            .y_labels(labels)
            .x_label_formatter(&|seconds| clock(*seconds))
            .y_label_formatter(&|value| {
                (self.show)(if self.logarithmic { 10_f64.powf(*value) } else { *value })
            })
            .label_style(("sans-serif", 15).into_font().color(&INK))
            .set_all_tick_mark_size(3)
            .draw()
            .map_err(undrawable)?;
        for series in &self.series {
            let colour = SERIES.get(series.colour).copied().unwrap_or(INK);
            for run in self.runs(series) {
                if series.filled {
                    let base = vec![(run.first().map_or(0.0, |point| point.0), low)];
                    let end = vec![(run.last().map_or(0.0, |point| point.0), low)];
                    let outline = [base, run.clone(), end].concat();
                    chart.draw_series([Polygon::new(outline, colour.mix(0.18))]).map_err(undrawable)?;
                }
                let line = PathElement::new(run, colour.stroke_width(2));
                chart.draw_series([line]).map_err(undrawable)?;
            }
        }
        Ok(())
    }

    /// The series' points in unbroken rows, no more than can be seen. Where several seconds become one
    /// point, it is the highest of them: an average of percentiles would be none.
    fn runs(&self, series: &Series) -> Vec<Vec<(f64, f64)>> {
        let at_once = self.times_s.len().div_ceil(MOST_POINTS).max(1);
        let mut runs = vec![Vec::new()];
        for (times, values) in self.times_s.chunks(at_once).zip(series.values.chunks(at_once)) {
            let highest = values.iter().flatten().copied().reduce(f64::max);
            match (times.last(), highest) {
                (Some(time), Some(value)) => {
                    let value = if self.logarithmic { value.max(f64::MIN_POSITIVE).log10() } else { value };
                    if let Some(run) = runs.last_mut() {
                        run.push((*time, value));
                    }
                }
                _ => runs.push(Vec::new()),
            }
        }
        runs.retain(|run| !run.is_empty());
        runs
    }

    fn range(&self) -> (f64, f64) {
        let values = || self.series.iter().flat_map(|series| series.values.iter().flatten().copied());
        let highest = values().fold(0.0, f64::max);
        if !self.logarithmic {
            return (0.0, if highest > 0.0 { round_up(highest * 1.05) } else { 1.0 });
        }
        let lowest = values().filter(|value| *value > 0.0).fold(highest.max(0.001), f64::min);
        let (low, high) = (lowest.log10().floor(), highest.max(0.001).log10().ceil());
        (low, if high > low { high } else { low + 1.0 })
    }
}

#[allow(clippy::needless_pass_by_value, reason = "what map_err hands over")]
pub(crate) fn undrawable<E: std::error::Error>(error: E) -> ReportError {
    ReportError::Chart(error.to_string())
}

/// The next number with one or two digits before its zeros.
pub(crate) fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0]
        .into_iter()
        .map(|step| step * power)
        .find(|step| *step >= value)
        .unwrap_or(value)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few powers of ten")]
pub(crate) fn whole_steps(low: f64, high: f64) -> usize {
    (high - low).round().clamp(1.0, 12.0) as usize + 1
}

/// Minutes and seconds; hours where there are any.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time axis begins at 0")]
pub(crate) fn clock(seconds: f64) -> String {
    let seconds = seconds.max(0.0).round() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// The style sheet's variable of a series.
pub(crate) fn series_variable(index: usize) -> String {
    format!("--series-{}", index + 1)
}

fn with_style_variables(svg: &str) -> String {
    let hex = |colour: RGBColor| format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2);
    let mut svg = svg.replacen(
        &format!("<svg width=\"{WIDTH}\" height=\"{HEIGHT}\""),
        "<svg role=\"img\" preserveAspectRatio=\"xMidYMid meet\"",
        1,
    );
    let roles = [(GRID, "--grid"), (AXIS, "--axis"), (INK, "--quiet"), (SHADE, "--shade")];
    for (colour, variable) in roles {
        svg = svg.replace(&hex(colour), &format!("var({variable})"));
    }
    for (index, colour) in SERIES.into_iter().enumerate() {
        svg = svg.replace(&hex(colour), &format!("var({})", series_variable(index)));
    }
    svg
}

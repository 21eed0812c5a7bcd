//! `plan.html`: one page that needs nothing else, in the laboratory's style.

use scrinium_lab_report::page::{
    CurvePoint, Curves, Marks, Markup, TableCell, document, figure, heads, html, inline_svg, keys, list,
    section_head, table,
};
use scrinium_lab_report::{milliseconds, thousands};

use super::Plan;
use super::lines::{rows, sentences, value};
use crate::answer::Answer;
use crate::calibration::Calibration;
use crate::error::PlanError;
use crate::fit::Model;
use crate::range::Case;

/// Points of a law's curve.
const CURVE_POINTS: u32 = 120;

/// The page.
///
/// # Errors
/// A chart cannot be drawn.
pub fn page(plan: &Plan, calibration: &Calibration, model: &Model) -> Result<String, PlanError> {
    let answer = &plan.plan;
    let charts = [response_chart(plan, calibration, model)?, throughput_chart(model)?];
    let main = html! {
        (header(answer))
        (large(answer))
        (list("What to know", &sentences(plan)))
        (all_figures(plan))
        (what_if(plan))
        (settings(answer))
        @for chart in &charts { (chart) }
        (list("Assumed, and neither measured nor said by the organisation", &answer.assumptions))
        (list("Notes of the calibration", &answer.notes))
        h2 { "Calibration" } "\n"
        dl {
            dt { "Machine and version" } dd { (answer.calibration) } "\n"
            dt { "Runs" } dd { code { (answer.run_folder) } } "\n"
            dt { "Data" } dd { code { (calibration.data_dir) } }
        } "\n"
        footer {
            "Made by scrinium plan " (env!("CARGO_PKG_VERSION")) ". The same is in plan.md and plan.json."
        } "\n"
    };
    Ok(document(&format!("{}: the plan", answer.organisation), &main))
}

fn header(answer: &Answer) -> Markup {
    let (class, verdict) = if answer.holds {
        ("good", "Every objective and limit is held")
    } else {
        ("bad", "An objective or limit is not held")
    };
    html! {
        header { "\n"
            p class="kicker" { "Scrinium planner" } "\n"
            h1 { (answer.organisation) } "\n"
            p class="about" { (answer.summary) } "\n"
            p class={ "verdict " (class) } { (verdict) } "\n"
            ul class="notes" { @for problem in &answer.problems { li class="bad" { (problem) "." } } } "\n"
        } "\n"
    }
}

fn large(answer: &Answer) -> Markup {
    let keys = ["servers", "memory_bytes", "disk_bytes", "cpu_percent", "mean_ms", "headroom_percent"];
    html! {
        div class="figures" { "\n"
            @for found in keys.into_iter().filter_map(|key| answer.figure(key)) {
                (figure(&value(found.range.value, found.unit), found.title))
            }
        } "\n"
    }
}

/// A head above prose.
fn prose_head(text: &str) -> Markup {
    html! { span style="display:block;text-align:left" { (text) } }
}

fn all_figures(plan: &Plan) -> Markup {
    let rows: Vec<Vec<TableCell>> = rows(plan)
        .into_iter()
        .map(|row| {
            let source = TableCell::prose(&row.figure.source);
            vec![row.figure.title.into(), row.value.into(), row.spread.into(), source]
        })
        .collect();
    let mut heads = heads(["Figure", "Value", "Range"]);
    heads.push(prose_head("Source"));
    let about = "with the range in which the model missed its own points, and where each comes from";
    html! { (section_head("All figures", about)) (table(&heads, &rows)) }
}

fn what_if(plan: &Plan) -> Markup {
    if plan.what_if.is_empty() {
        return Markup::default();
    }
    let changes = plan.what_if.iter().map(|scenario| scenario.change.as_str());
    let heads = heads(["Figure", "As it is"].into_iter().chain(changes));
    let rows: Vec<Vec<TableCell>> = rows(plan)
        .into_iter()
        .map(|row| {
            let others = row.otherwise.into_iter().map(TableCell::from);
            [row.figure.title.into(), row.value.into()].into_iter().chain(others).collect()
        })
        .collect();
    let lines: Vec<String> = plan
        .what_if
        .iter()
        .flat_map(|scenario| {
            let problems = scenario
                .plan
                .problems
                .iter()
                .map(|problem| format!("{}: not held: {problem}.", scenario.change));
            std::iter::once(format!("{}: {}", scenario.change, scenario.plan.summary)).chain(problems)
        })
        .collect();
    html! {
        h2 { "What if" } "\n"
        (table(&heads, &rows))
        (list("What comes of it", &lines))
    }
}

fn settings(answer: &Answer) -> Markup {
    let rows: Vec<Vec<TableCell>> = answer
        .settings
        .iter()
        .map(|setting| {
            let key = html! { code { (setting.key) } };
            vec![key.into(), setting.value.as_str().into(), TableCell::prose(&setting.why)]
        })
        .collect();
    let mut heads = heads(["Key", "Value"]);
    heads.push(prose_head("Why"));
    html! {
        (section_head("Settings", "that should not be left at their defaults"))
        (table(&heads, &rows))
    }
}

fn point(x: f64, low: f64, mean: f64, high: f64) -> CurvePoint {
    CurvePoint { x, low, mean, high }
}

fn chart(title: &str, about: &str, series: &[&str], curves: &Curves<'_>) -> Result<Markup, PlanError> {
    let series: Vec<String> = series.iter().map(|name| (*name).to_owned()).collect();
    let svg = curves.svg()?;
    Ok(html! {
        (section_head(title, about))
        figure class="wide" {
            figcaption { span class="keys" { (keys(&series)) } } "\n"
            (inline_svg(&svg))
        } "\n"
    })
}

/// Response against requests a second: what was measured, what is forecast, and the model's curve through both.
fn response_chart(plan: &Plan, calibration: &Calibration, model: &Model) -> Result<Markup, PlanError> {
    let measured: Vec<CurvePoint> = model
        .ladder
        .iter()
        .map(|rung| point(rung.per_s, rung.measured_ms.low, rung.measured_ms.value, rung.measured_ms.high))
        .collect();
    let answers = std::iter::once(&plan.plan).chain(plan.what_if.iter().map(|scenario| &scenario.plan));
    let forecast: Vec<CurvePoint> = answers
        .filter_map(|answer| {
            let asked = answer.reach.first()?.asked;
            let range = answer.figure("mean_ms")?.range;
            (range.value.is_finite() && range.high.is_finite())
                .then(|| point(asked, range.low, range.value, range.high))
        })
        .collect();
    let Some(largest) = calibration.of(crate::calibration::Kind::Ladder).max_by_key(|point| point.users)
    else {
        return Ok(Markup::default());
    };
    let Some(run) = largest.counted().next() else { return Ok(Markup::default()) };
    let most = measured.iter().chain(&forecast).map(|point| point.x).fold(0.0, f64::max) * 1.1;
    let highest = measured.iter().chain(&forecast).map(|point| point.high).fold(0.0, f64::max) * 3.0;
    let all = run.per_s.sum().max(f64::MIN_POSITIVE);
    let law: Vec<CurvePoint> = (1..=CURVE_POINTS)
        .map(|step| most * f64::from(step) / f64::from(CURVE_POINTS))
        .filter_map(|asked| {
            let per_s = run.per_s.times(asked / all);
            let ms = model.response.mean_ms(
                &per_s,
                &model.costs,
                model.cores,
                run.driver_cpus * asked / all,
                Case::Expected,
            );
            (ms.is_finite() && ms <= highest).then(|| point(asked, ms, ms, ms))
        })
        .collect();
    let curves = Curves {
        lines: vec![measured, forecast, law],
        show_x: &thousands,
        show_y: &milliseconds,
        marks: Marks::First(2),
        logarithmic: false,
    };
    chart(
        "Response",
        "average, against requests a second of one server; the curve is that of the calibration\u{2019}s workload with the driver on the same machine",
        &["measured", "forecast for the organisation", "the model"],
        &curves,
    )
}

/// Throughput of users without a pause, and the Universal Scalability Law through it.
fn throughput_chart(model: &Model) -> Result<Markup, PlanError> {
    let Some(law) = &model.scalability else { return Ok(Markup::default()) };
    let measured: Vec<CurvePoint> =
        model.rush.iter().map(|(asking, per_s)| point(*asking, *per_s, *per_s, *per_s)).collect();
    let most = measured.iter().map(|point| point.x).fold(1.0, f64::max) * 2.0;
    let curve = (0..=CURVE_POINTS)
        .map(|step| 1.0 + (most - 1.0) * f64::from(step) / f64::from(CURVE_POINTS))
        .map(|asking| (asking, law.per_s(asking)))
        .map(|(asking, per_s)| point(asking, per_s, per_s, per_s));
    let curves = Curves {
        lines: vec![measured, curve.collect()],
        show_x: &thousands,
        show_y: &thousands,
        marks: Marks::First(1),
        logarithmic: false,
    };
    chart(
        "Throughput",
        &format!(
            "requests a second, against users who ask without a pause; \u{3bb} = {:.1}/s, \u{3c3} = {:.4}, \u{3ba} = {:.6}; the driver has its share of the machine",
            law.one_per_s, law.contention, law.coherency
        ),
        &["measured", "Universal Scalability Law"],
        &curves,
    )
}

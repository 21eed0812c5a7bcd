//! `plan.html`: one page that needs nothing else, in the laboratory's style.

use scrinium_lab_report::page::{CurvePoint, Curves, Marks, begin, escape, figure, keys, table};
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
    let mut page = begin(&format!("{}: the plan", answer.organisation));
    page.push_str(&header(answer));
    page.push_str(&large(answer));
    page.push_str(&list("What to know", &sentences(plan)));
    page.push_str(&all_figures(plan));
    page.push_str(&what_if(plan));
    page.push_str(&settings(answer));
    page.push_str(&response_chart(plan, calibration, model)?);
    page.push_str(&throughput_chart(model)?);
    page.push_str(&list("Assumed, and neither measured nor said by the organisation", &answer.assumptions));
    page.push_str(&list("Notes of the calibration", &answer.notes));
    page.push_str(&format!(
        "<h2>Calibration</h2>\n<dl><dt>Machine and version</dt><dd>{}</dd>\n<dt>Runs</dt><dd><code>{}</code></dd>\n<dt>Data</dt><dd><code>{}</code></dd></dl>\n<footer>Made by scrinium plan {}. The same is in plan.md and plan.json.</footer>\n</main>\n</body>\n</html>\n",
        escape(&answer.calibration),
        escape(&answer.run_folder),
        escape(&calibration.data_dir),
        env!("CARGO_PKG_VERSION")
    ));
    Ok(page)
}

fn header(answer: &Answer) -> String {
    let (class, verdict) = if answer.holds {
        ("good", "Every objective and limit is held")
    } else {
        ("bad", "An objective or limit is not held")
    };
    let problems: String = answer
        .problems
        .iter()
        .map(|problem| format!("<li class=\"bad\">{}.</li>", escape(problem)))
        .collect();
    format!(
        "<header>\n<p class=\"kicker\">Scrinium planner</p>\n<h1>{}</h1>\n<p class=\"about\">{}</p>\n<p class=\"verdict {class}\">{verdict}</p>\n<ul class=\"notes\">{problems}</ul>\n</header>\n",
        escape(&answer.organisation),
        escape(&answer.summary)
    )
}

fn large(answer: &Answer) -> String {
    let mut text = "<div class=\"figures\">\n".to_owned();
    for key in ["servers", "memory_bytes", "disk_bytes", "cpu_percent", "mean_ms", "headroom_percent"] {
        if let Some(found) = answer.figure(key) {
            text.push_str(&figure(&value(found.range.value, found.unit), &escape(found.title)));
        }
    }
    text.push_str("</div>\n");
    text
}

fn list(head: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let items: String = lines.iter().map(|line| format!("<li>{}</li>\n", escape(line))).collect();
    format!("<h2>{head}</h2>\n<ul class=\"findings\">\n{items}</ul>\n")
}

fn left(text: &str) -> String {
    format!("<td class=\"left\" style=\"white-space:normal\">{}</td>", escape(text))
}

fn all_figures(plan: &Plan) -> String {
    let rows: Vec<Vec<String>> = rows(plan)
        .into_iter()
        .map(|row| {
            vec![escape(row.figure.title), escape(&row.value), escape(&row.spread), left(&row.figure.source)]
        })
        .collect();
    format!(
        "<h2>All figures<small>with the range in which the model missed its own points, and where each comes from</small></h2>\n{}",
        table(
            &["Figure", "Value", "Range", "<span style=\"display:block;text-align:left\">Source</span>"],
            &rows
        )
    )
}

fn what_if(plan: &Plan) -> String {
    if plan.what_if.is_empty() {
        return String::new();
    }
    let changes: Vec<String> = plan.what_if.iter().map(|scenario| escape(&scenario.change)).collect();
    let mut heads = vec!["Figure", "As it is"];
    heads.extend(changes.iter().map(String::as_str));
    let rows: Vec<Vec<String>> = rows(plan)
        .into_iter()
        .map(|row| {
            let others = row.otherwise.iter().map(|value| escape(value));
            [escape(row.figure.title), escape(&row.value)].into_iter().chain(others).collect()
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
    format!("<h2>What if</h2>\n{}{}", table(&heads, &rows), list("What comes of it", &lines))
}

fn settings(answer: &Answer) -> String {
    let rows: Vec<Vec<String>> = answer
        .settings
        .iter()
        .map(|setting| {
            vec![format!("<code>{}</code>", setting.key), escape(&setting.value), left(&setting.why)]
        })
        .collect();
    format!(
        "<h2>Settings<small>that should not be left at their defaults</small></h2>\n{}",
        table(&["Key", "Value", "<span style=\"display:block;text-align:left\">Why</span>"], &rows)
    )
}

fn point(x: f64, low: f64, mean: f64, high: f64) -> CurvePoint {
    CurvePoint { x, low, mean, high }
}

fn chart(title: &str, about: &str, series: &[&str], curves: &Curves<'_>) -> Result<String, PlanError> {
    let series: Vec<String> = series.iter().map(|name| (*name).to_owned()).collect();
    Ok(format!(
        "<h2>{title}<small>{about}</small></h2>\n<figure class=\"wide\"><figcaption><span class=\"keys\">{}</span></figcaption>\n{}</figure>\n",
        keys(&series),
        curves.svg()?
    ))
}

/// Response against requests a second: what was measured, what is forecast, and the model's curve through both.
fn response_chart(plan: &Plan, calibration: &Calibration, model: &Model) -> Result<String, PlanError> {
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
        return Ok(String::new());
    };
    let Some(run) = largest.counted().next() else { return Ok(String::new()) };
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
fn throughput_chart(model: &Model) -> Result<String, PlanError> {
    let Some(law) = &model.scalability else { return Ok(String::new()) };
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

//! Charts of reports: SVG made from the JSON document.
//!
//! A report is drawn as panels, one for each question: operation, types, kind of queries, threads. Rows of
//! one size become bars of nanoseconds, shortest first, with the numbers beside them. Rows of several sizes become
//! lines over the number of tuples, both axes logarithmic. Rows that differ in the strategy and in the
//! queries of a call become lines of throughput against response time, the time of one call. Rows that a
//! panel cannot show (no times) are left out.

use crate::BenchError;
use plotters::coord::Shift;
use plotters::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;

/// Width of a panel, and height of one with lines, in pixels.
const PANEL_WIDTH: u32 = 620;
const LINES_HEIGHT: u32 = 420;
/// Height of a bar with the gap above it, and of the title of a panel.
const BAR_HEIGHT: u32 = 26;
const TITLE_HEIGHT: u32 = 48;
/// Left edge of the bars, and the space after the longest one for its number.
const NAMES_WIDTH: u32 = 230;
const NUMBER_WIDTH: u32 = 80;
const FONT: &str = "sans-serif";

/// Data of a row that is drawn.
#[derive(Clone, Debug)]
struct Point {
    engine: String,
    /// Engine and method.
    name: String,
    tuples: f64,
    ns: f64,
    /// Microseconds of a call.
    response_us: f64,
}

/// Rows that answer one question.
#[derive(Debug, Default)]
struct Panel {
    title: String,
    points: Vec<Point>,
    is_strategies: bool,
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_default()
}

fn failed<E: std::fmt::Display>(error: E) -> BenchError {
    BenchError::Plot(format!("cannot draw: {error}"))
}

/// The panels of a document, in the order of its rows.
fn panels(document: &Value) -> Result<Vec<Panel>, BenchError> {
    let is_ours = text(document, "schema").starts_with("pleach-bench-");
    let rows = document["rows"].as_array().filter(|_| is_ours);
    let rows = rows.ok_or_else(|| {
        BenchError::Plot("not a report: pleach bench WHAT --json > REPORT.json makes one".to_owned())
    })?;
    let mut panels: Vec<(String, Panel)> = Vec::new();
    for row in rows {
        let (Some(ns), Some(tuples)) = (row["ns_per_query"].as_f64(), row["tuples"].as_f64()) else {
            continue;
        };
        if ns <= 0.0 {
            continue;
        }
        let (engine, detail) = (text(row, "engine"), text(row, "detail"));
        let batch = row["batch"].as_f64().unwrap_or(1.0);
        let threads = row["threads"].as_u64().unwrap_or(1);
        let is_strategies = engine == "pleach" && text(row, "operation") == "get" && !detail.is_empty();
        let mut title = format!(
            "{} {} to {}, {threads} thread{}",
            text(row, "operation"),
            text(row, "key_type"),
            text(row, "value_type"),
            if threads == 1 { "" } else { "s" }
        );
        for key in ["data", "query_kind"] {
            if !text(row, key).is_empty() {
                title = format!("{title}, {}", text(row, key));
            }
        }
        if is_strategies {
            title = format!("{title}, {} tuples", size(tuples));
        }
        let name = match (is_strategies, detail) {
            (true, _) => detail.to_owned(),
            // These are measured with batches of more than one size.
            (false, "") if batch > 1.0 && matches!(engine, "pleach" | "pleach-par") => {
                format!("{engine}, batches of {}", size(batch))
            }
            (false, "") => engine.to_owned(),
            (false, _) => format!("{engine} ({detail})"),
        };
        let response_us = row["response_ns"].as_f64().unwrap_or(ns * batch) / 1e3;
        let point = Point { engine: engine.to_owned(), name, tuples, ns, response_us };
        match panels.iter_mut().find(|(key, _)| *key == title) {
            Some((_, panel)) => panel.points.push(point),
            None => {
                let panel = Panel { title: title.clone(), points: vec![point], is_strategies };
                panels.push((title, panel));
            }
        }
    }
    if panels.is_empty() {
        return Err(BenchError::Plot("the report has no rows with times".to_owned()));
    }
    Ok(panels.into_iter().map(|(_, panel)| panel).collect())
}

/// `2^26`, or the plain number.
fn size(number: f64) -> String {
    let log = number.log2();
    if log >= 6.0 && (log - log.round()).abs() < 1e-9 {
        format!("2^{log:.0}")
    } else {
        format!("{number:.0}")
    }
}

/// Three digits, with a unit.
fn duration(ns: f64) -> String {
    let (number, unit) = match ns {
        ns if ns < 1e4 => (ns, "ns"),
        ns if ns < 1e7 => (ns / 1e3, "us"),
        ns => (ns / 1e6, "ms"),
    };
    if number < 10.0 { format!("{number:.2} {unit}") } else { format!("{number:.1} {unit}") }
}

impl Panel {
    /// Lines of a chart by name, in order of x.
    fn lines(&self, place: impl Fn(&Point) -> (f64, f64)) -> BTreeMap<&str, Vec<(f64, f64)>> {
        let mut lines: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
        for point in &self.points {
            lines.entry(&point.name).or_default().push(place(point));
        }
        lines.values_mut().for_each(|line| line.sort_by(|a, b| a.0.total_cmp(&b.0)));
        lines
    }

    fn has_sizes(&self) -> bool {
        self.points.iter().any(|point| point.tuples != self.points[0].tuples)
    }

    fn height(&self) -> u32 {
        if self.is_strategies || self.has_sizes() {
            LINES_HEIGHT
        } else {
            TITLE_HEIGHT + BAR_HEIGHT * self.points.len() as u32 + 16
        }
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), BenchError> {
        if self.is_strategies {
            let lines = self.lines(|point| (point.response_us.log10(), 1e3 / point.ns));
            let axes = ("response time of a call", "million look-ups a second");
            return chart(area, &self.title, axes, &lines, |log| duration(10f64.powf(log) * 1e3));
        }
        if self.has_sizes() {
            let lines = self.lines(|point| (point.tuples.log2(), point.ns));
            let power = |log: f64| if log.fract() == 0.0 { format!("2^{log}") } else { String::new() };
            return chart(area, &self.title, ("tuples", "ns"), &lines, power);
        }
        self.bars(area)
    }

    fn bars<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), BenchError> {
        let title = format!("{}, {} tuples", self.title, size(self.points[0].tuples));
        let heading = (FONT, 16).into_font();
        area.draw(&Text::new(title, (12, 14), heading)).map_err(failed)?;
        let mut points = self.points.clone();
        points.sort_by(|a, b| a.ns.total_cmp(&b.ns));
        let most = points.iter().map(|point| point.ns).fold(f64::MIN_POSITIVE, f64::max);
        let room = f64::from(PANEL_WIDTH - NAMES_WIDTH - NUMBER_WIDTH);
        let font = (FONT, 13).into_font();
        for (at, point) in points.iter().enumerate() {
            let top = (TITLE_HEIGHT + BAR_HEIGHT * at as u32) as i32;
            let left = NAMES_WIDTH as i32;
            let right = left + (point.ns / most * room).max(1.0) as i32;
            let bar = Rectangle::new([(left, top), (right, top + 18)], colour(&point.engine).filled());
            area.draw(&bar).map_err(failed)?;
            area.draw(&Text::new(point.name.clone(), (12, top + 2), font.clone())).map_err(failed)?;
            let number = Text::new(duration(point.ns), (right + 6, top + 2), font.clone());
            area.draw(&number).map_err(failed)?;
        }
        Ok(())
    }
}

/// Pleach stands out, limits recede, the others are alike.
fn colour(engine: &str) -> RGBColor {
    match engine {
        "pleach" => RGBColor(20, 110, 60),
        limit if limit.starts_with("limit") => RGBColor(170, 170, 170),
        _ => RGBColor(110, 140, 190),
    }
}

/// A range that holds all numbers, with some room, as a logarithmic axis needs it.
fn reach(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = numbers.fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), x| (low.min(x), high.max(x)));
    (low.max(f64::MIN_POSITIVE) / 1.3, high * 1.3)
}

/// Lines, both axes logarithmic: x is a logarithm already, so that its labels can be powers of any base.
fn chart<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    title: &str,
    (x_name, y_name): (&str, &str),
    lines: &BTreeMap<&str, Vec<(f64, f64)>>,
    x_text: impl Fn(f64) -> String,
) -> Result<(), BenchError> {
    let places = || lines.values().flatten();
    let y = reach(places().map(|place| place.1));
    let xs = places().map(|place| place.0);
    let x = xs.fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(x - 0.3), high.max(x + 0.3)));
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .caption(title, (FONT, 16))
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(x.0..x.1, (y.0..y.1).log_scale())
        .map_err(failed)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(x_name)
        .y_desc(y_name)
        .x_label_formatter(&|x| x_text(*x))
        .draw()
        .map_err(failed)?;
    for (number, (name, line)) in lines.iter().enumerate() {
        let style = Palette99::pick(number).stroke_width(if name.starts_with("pleach") { 3 } else { 1 });
        let series = LineSeries::new(line.iter().copied(), style).point_size(2);
        let drawn = chart.draw_series(series).map_err(failed)?;
        drawn.label(*name).legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    let labels =
        chart.configure_series_labels().position(SeriesLabelPosition::UpperLeft).border_style(BLACK).draw();
    labels.map_err(failed)
}

/// The picture of a report, of schema `pleach-bench-1` as [`crate::Report::to_json`] makes it. O(rows).
///
/// # Errors
/// [`BenchError::Plot`] if the document is not a report, or has no rows with times.
pub fn svg(document: &Value) -> Result<String, BenchError> {
    let panels = panels(document)?;
    let columns = if panels.len() == 1 { 1 } else { 2 };
    let rows: Vec<&[Panel]> = panels.chunks(columns).collect();
    let height = |row: &[Panel]| row.iter().map(Panel::height).max().unwrap_or(0);
    let total: u32 = rows.iter().map(|row| height(row)).sum();
    let mut picture = String::new();
    {
        let size = (PANEL_WIDTH * columns as u32, total);
        let root = SVGBackend::with_string(&mut picture, size).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let mut rest = root.clone();
        for row in rows {
            let (here, below) = rest.split_vertically(height(row));
            for (area, panel) in here.split_evenly((1, columns)).iter().zip(row) {
                panel.draw(area)?;
            }
            rest = below;
        }
        root.present().map_err(failed)?;
    }
    Ok(picture)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(engine: &str, tuples: u64, ns: f64, detail: Option<&str>, batch: u64) -> Value {
        json!({ "engine": engine, "operation": "get", "key_type": "u32", "value_type": "u32", "tuples": tuples,
            "threads": 1, "batch": batch, "ns_per_query": ns, "detail": detail })
    }

    fn document(rows: Vec<Value>) -> Value {
        json!({ "schema": "pleach-bench-1", "rows": rows })
    }

    #[test]
    fn one_size_becomes_bars_with_numbers() {
        let rows = vec![row("pleach", 1 << 20, 12.0, None, 1), row("btreemap", 1 << 20, 512.25, None, 1)];
        let picture = svg(&document(rows)).expect("a picture");
        assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
        for part in ["btreemap", "512.2 ns", "12.0 ns", "2^20 tuples"] {
            assert!(picture.contains(part), "{part} in\n{picture}");
        }
    }

    #[test]
    fn sizes_and_strategies_become_lines() {
        let rows = (16..20).map(|log| row("pleach", 1 << log, f64::from(log), None, 1)).collect();
        let picture = svg(&document(rows)).expect("a picture");
        assert!(picture.contains("polyline") && picture.contains("2^16"), "{picture}");
        let rows = vec![
            row("pleach", 1 << 16, 40.0, Some("one by one"), 1),
            row("pleach", 1 << 16, 20.0, Some("batches"), 64),
            row("pleach", 1 << 16, 10.0, Some("batches"), 1024),
        ];
        let picture = svg(&document(rows)).expect("a picture");
        assert!(picture.contains("response time") && picture.contains("one by one"), "{picture}");
    }

    #[test]
    fn batches_of_different_sizes_have_names_of_their_own() {
        let rows = ["pleach", "pleach-par"]
            .into_iter()
            .flat_map(|engine| [1 << 14, 1 << 22].map(|batch| row(engine, 1 << 20, 12.0, None, batch)))
            .collect();
        let panels = panels(&document(rows)).expect("rows");
        let names: Vec<&str> = panels[0].points.iter().map(|point| point.name.as_str()).collect();
        let expected = ["pleach, batches of 2^14", "pleach, batches of 2^22"];
        assert_eq!(names[..2], expected);
        assert_eq!(names[2..], ["pleach-par, batches of 2^14", "pleach-par, batches of 2^22"]);
    }

    #[test]
    fn what_is_no_report_is_refused() {
        for document in [json!({}), json!([1]), json!({ "schema": "other", "rows": [] }), document(vec![])] {
            assert!(matches!(svg(&document), Err(BenchError::Plot(_))), "{document}");
        }
    }
}

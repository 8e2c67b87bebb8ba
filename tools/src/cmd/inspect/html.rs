//! `--html OUT`: the picture as one page that needs nothing else: no script, no style sheet, no request.
//!
//! Text of a file goes through [`escaped`] before it becomes part of the page: a name cannot become markup.

use super::draw::{LEVELS, levels, look_up, remarks};
use super::histogram::Range;
use super::{Found, Verdict};
use crate::cli::{Global, InspectArgs};
use crate::errors::build_failure;
use crate::failure::{ExitStatus, Failure};
use crate::output;
use crate::render::table::Side;
use crate::render::text::{counted, grouped, hex, printable, shown};
use crate::render::{json, picture};
use crate::stdout;
use pleach_builder::publish::{self, Rules};
use pleach_format::Header;
use std::fmt::Write;
use std::path::Path;

const STYLE: &str = include_str!("page.css");
/// Width of the drawn map, in its own units.
const MAP: f64 = 1000.0;
/// Smallest width of a section in the map.
const MAP_LEAST: f64 = 3.0;
/// Colours of sections; more sections begin again.
const COLOURS: usize = 8;

impl Found<'_> {
    /// Writes the page.
    pub(super) fn write_page(
        &self,
        out: &Path,
        args: &InspectArgs,
        global: &Global,
    ) -> Result<ExitStatus, Failure> {
        let page = self.page(global)?;
        let rules = Rules::table(output::inputs([self.path]), args.force);
        publish::replace(out, page.as_bytes(), rules).map_err(|error| build_failure(&error))?;
        if global.json {
            let mut document = json::document("inspect-html");
            document.insert("file".to_owned(), self.path.display().to_string().into());
            document.insert("verdict".to_owned(), self.verdict().name().into());
            document.insert("html".to_owned(), out.display().to_string().into());
            document.insert("html_bytes".to_owned(), json::int(page.len() as u64));
            stdout::print_json(document)?;
        } else if !global.quiet {
            crate::failure::say(&format!("wrote {}: {}", out.display(), counted(page.len() as u64, "byte")));
        }
        self.status()
    }

    fn page(&self, global: &Global) -> Result<String, Failure> {
        let verdict = self.verdict();
        let name =
            self.path.file_name().map_or_else(|| shown(self.path), |name| printable(&name.to_string_lossy()));
        let name = escaped(&name);
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
             img-src data:\">\n<link rel=\"icon\" href=\"data:,\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{name} - Pleach</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <header><h1>{name}</h1>\n<p><strong class=\"{state}\">{state}</strong> {bytes}</p>\n",
            state = verdict.name(),
            bytes = escaped(&counted(self.file_bytes, "byte")),
        );
        if let Some(problem) = self.problem_text() {
            let _ =
                writeln!(page, "<p class=\"problem\" role=\"alert\">{}</p>", escaped(&printable(&problem)));
        }
        page.push_str("</header>\n");
        if verdict == Verdict::Foreign {
            let first = hex(&self.head[..self.head.len().min(32)]);
            let _ = writeln!(page, "<section><h2>First bytes</h2><p><code>{first}</code></p></section>");
        }
        if let Some(header) = &self.header {
            page.push_str(&self.facts_of(header, global));
            page.push_str(&map(header));
            page.push_str(&fill(header));
            if verdict == Verdict::Whole {
                page.push_str(&histogram(&self.histogram(global)?));
            }
            page.push_str(&self.sums(header));
        }
        if verdict != Verdict::Foreign {
            page.push_str(&self.stored());
        }
        let version = env!("CARGO_PKG_VERSION");
        let _ = write!(
            page,
            "</main>\n<footer><p>Made by pleach {version} inspect --html</p></footer>\n</body>\n</html>\n"
        );
        Ok(page)
    }

    fn facts_of(&self, header: &Header, global: &Global) -> String {
        let mut text = String::from("<section><h2>Facts</h2>\n<table class=\"facts\">\n<tbody>\n");
        for (name, fact) in self.facts(header, global) {
            let _ = writeln!(
                text,
                "<tr><th scope=\"row\">{}</th><td>{}</td></tr>",
                escaped(name.trim()),
                escaped(&fact)
            );
        }
        text.push_str("</tbody>\n</table></section>\n");
        text
    }

    /// Says of each section which sums it has, and what a check of them found.
    fn sums(&self, header: &Header) -> String {
        let rows = header.sections.iter().map(|section| {
            let tag = section.entry.tag.to_string();
            let state = match &self.findings {
                // The sum of the last sums is the file id.
                _ if section.entry.sums.get() == 0 => String::new(),
                None => "not checked".to_owned(),
                Some(findings) => {
                    match findings.iter().filter(|finding| finding.section.starts_with(&tag)).count() {
                        0 => "good".to_owned(),
                        count => format!("<strong class=\"damaged\">damaged: {count}</strong>"),
                    }
                }
            };
            vec![
                escaped(&tag),
                grouped(section.entry.sums.get()),
                grouped(section.entry.sums_offset.get()),
                state,
            ]
        });
        let head =
            [("section", Side::Left), ("sums", Side::Right), ("at byte", Side::Right), ("state", Side::Left)];
        let mut text = String::from("<section><h2>Sums</h2>\n");
        let _ = writeln!(
            text,
            "<p>{}</p>",
            match &self.findings {
                None if self.verdict() != Verdict::Whole =>
                    "No sum was checked: <code>pleach fsck</code> does so.",
                None => "No sum was checked: <code>--verify full</code> checks all of them.",
                Some(findings) if findings.is_empty() =>
                    "All sums were checked, and every byte is as it was written.",
                Some(_) => "All sums were checked. What they found:",
            }
        );
        if let Some(findings) = self.findings.as_ref().filter(|findings| !findings.is_empty()) {
            text.push_str("<ul>\n");
            for finding in findings.iter().take(100) {
                let _ = writeln!(text, "<li>{}</li>", escaped(&printable(&finding.to_string())));
            }
            text.push_str("</ul>\n");
        }
        put_marked("Sums of each section", &head, rows, &mut text);
        text.push_str("</section>\n");
        text
    }

    /// Lists the fields of superblock and section table.
    fn stored(&self) -> String {
        let rows = self.fields().into_iter().map(|field| {
            let remark = field.remark.unwrap_or_default();
            vec![grouped(field.offset), field.name, printable(&field.value), printable(&remark)]
        });
        let head =
            [("byte", Side::Right), ("field", Side::Left), ("value", Side::Left), ("remark", Side::Left)];
        let mut text =
            String::from("<section><details><summary><h2>Superblock and section table</h2></summary>\n");
        put_table("Fields of superblock and section table, as stored", &head, rows, &mut text);
        text.push_str("</details></section>\n");
        text
    }
}

/// Draws all sections in proportion, with a table that says the same.
fn map(header: &Header) -> String {
    let bars = picture::bars(header);
    let whole = header.file_bytes.max(1) as f64;
    let widths: Vec<f64> = bars.iter().map(|bar| (MAP * bar.bytes as f64 / whole).max(MAP_LEAST)).collect();
    let scale = MAP / widths.iter().sum::<f64>();
    let largest = bars.iter().max_by_key(|bar| bar.bytes).map_or(String::new(), |bar| {
        format!("{} is the largest, {:.1}% of the file", bar.name, 100.0 * bar.bytes as f64 / whole)
    });
    let mut text = String::from("<section><h2>Map of the file</h2>\n");
    let _ = writeln!(
        text,
        "<svg class=\"map\" viewBox=\"0 0 {MAP} 48\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{} \
         sections in proportion; {}; the table below lists all\">",
        bars.len(),
        escaped(&largest)
    );
    let mut at = 0.0;
    for (place, (bar, width)) in bars.iter().zip(&widths).enumerate() {
        let width = width * scale;
        let title = escaped(&format!("{}: {}", bar.name, counted(bar.bytes, "byte")));
        let colour = place % COLOURS;
        let _ = writeln!(
            text,
            "<rect class=\"c{colour}\" x=\"{at:.2}\" y=\"0\" width=\"{width:.2}\" height=\"48\">\
             <title>{title}</title></rect>"
        );
        at += width;
    }
    text.push_str("</svg>\n");
    let rows = bars.iter().enumerate().map(|(place, bar)| {
        let share = 100.0 * bar.bytes as f64 / whole;
        let name = format!("<span class=\"key c{}\"></span>{}", place % COLOURS, escaped(&bar.name));
        let numbers = [grouped(bar.offset), grouped(bar.bytes), format!("{share:.2}%"), escaped(&bar.note)];
        std::iter::once(name).chain(numbers).collect()
    });
    let head = [
        ("section", Side::Left),
        ("offset", Side::Right),
        ("bytes", Side::Right),
        ("share", Side::Right),
        ("holds", Side::Left),
    ];
    put_marked("Sections in file order", &head, rows, &mut text);
    text.push_str("</section>\n");
    text
}

/// Draws how full lines are, level by level.
fn fill(header: &Header) -> String {
    let mut text = format!("<section><h2>Levels and fill</h2>\n<p>{}</p>\n", escaped(&look_up(header)));
    let spine =
        header.spine.levels.iter().rev().map(|level| (level.children, level.lines * level.fanout as u64));
    let slots = header.lines * header.geometry.tuples_per_line() as u64;
    let fills = spine.chain(std::iter::once((header.tuples, slots)));
    let rows = levels(header).into_iter().zip(fills).map(|(row, (used, slots))| {
        let share = used as f64 / slots.max(1) as f64;
        let mut row: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
        row.push(format!("{:.1}%", share * 100.0));
        row.push(drawn_bar(share));
        row
    });
    let mut head = LEVELS.to_vec();
    head.extend([("fill", Side::Right), ("", Side::Left)]);
    put_marked("Levels that a look-up passes, root first", &head, rows, &mut text);
    text.push_str("<ul>\n");
    for remark in remarks(header) {
        let _ = writeln!(text, "<li>{}</li>", escaped(&remark));
    }
    text.push_str("</ul></section>\n");
    text
}

/// Draws how keys are spread.
fn histogram(ranges: &[Range]) -> String {
    let Some(most) = ranges.iter().map(|range| range.tuples).max() else { return String::new() };
    let mut text = String::from(
        "<section><h2>Keys</h2>\n<p>Tuples in ranges of keys, from the smallest key to the largest.</p>\n",
    );
    let rows = ranges.iter().map(|range| {
        let share = range.tuples as f64 / most.max(1) as f64;
        vec![escaped(&range.from), grouped(range.tuples), drawn_bar(share)]
    });
    let head = [("from", Side::Right), ("tuples", Side::Right), ("", Side::Left)];
    put_marked("Tuples in ranges of keys", &head, rows, &mut text);
    text.push_str("</section>\n");
    text
}

/// Draws a bar; the number is in a cell beside it.
fn drawn_bar(share: f64) -> String {
    let width = (share * 100.0).clamp(0.0, 100.0);
    format!(
        "<svg class=\"bar\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect class=\"c2\" width=\"{width:.2}\" height=\"10\"></rect></svg>"
    )
}

/// Adds a table of texts.
fn put_table(
    caption: &str,
    head: &[(&str, Side)],
    rows: impl Iterator<Item = Vec<String>>,
    text: &mut String,
) {
    put_marked(caption, head, rows.map(|row| row.iter().map(|cell| escaped(cell)).collect()), text);
}

/// Adds a table whose cells are markup. It scrolls by itself where it is wider than the page, also by keys.
fn put_marked(
    caption: &str,
    head: &[(&str, Side)],
    rows: impl Iterator<Item = Vec<String>>,
    text: &mut String,
) {
    let class = |side: Side| if side == Side::Right { " class=\"n\"" } else { "" };
    let _ = write!(
        text,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\n<table>\n\
         <caption class=\"hidden\">{caption}</caption>\n<thead><tr>"
    );
    for (name, side) in head {
        let _ = match *name {
            "" => write!(text, "<td></td>"),
            name => write!(text, "<th scope=\"col\"{}>{name}</th>", class(*side)),
        };
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        text.push_str("<tr>");
        for (cell, (_, side)) in row.iter().zip(head) {
            let _ = write!(text, "<td{}>{cell}</td>", class(*side));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody>\n</table>\n</div>\n");
}

/// Returns text as part of a page, in elements and in quoted attributes.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_never_becomes_markup() {
        let hostile = "</td><script>alert('1')</script> & \"x\"";
        let text = escaped(hostile);
        assert!(!text.contains(['<', '>', '"', '\'']), "{text}");
        assert_eq!(text, "&lt;/td&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &quot;x&quot;");
    }
}

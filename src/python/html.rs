//! The HTML forms that notebooks show: escaped, bounded, readable on light and dark.

use std::fmt::Write as _;

use crate::query::{Plan, Report};

/// Rows of a table that are shown.
pub const ROWS: usize = 10;
/// Characters of a cell that are shown.
const CELL: usize = 24;

pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A cell's text, shortened in the middle as hashes are.
pub fn shorten(text: &str) -> String {
    let count = text.chars().count();
    if count <= CELL {
        return text.to_owned();
    }
    let head: String = text.chars().take(CELL / 2).collect();
    let tail: String = text.chars().skip(count - CELL / 2 + 3).collect();
    format!("{head}…{tail}")
}

pub fn table(caption: &str, head: &[(String, String)], rows: &[Vec<String>]) -> String {
    let mut html = format!("<div style=\"overflow-x:auto\"><table><caption>{}</caption><thead><tr>", escape(caption));
    for (name, kind) in head {
        _ = write!(html, "<th>{}<br><small style=\"opacity:.6\">{}</small></th>", escape(name), escape(kind));
    }
    html += "</tr></thead><tbody>";
    for row in rows {
        html += "<tr>";
        for cell in row {
            _ = write!(html, "<td title=\"{}\">{}</td>", escape(cell), escape(&shorten(cell)));
        }
        html += "</tr>";
    }
    html + "</tbody></table></div>"
}

pub fn report(report: &Report) -> String {
    let verdict = if report.complete { "✓ complete" } else { "⚠ not shown to be complete" };
    let rows = [
        ("records", report.records.to_string()),
        ("pages", report.pages.to_string()),
        ("requests", format!("{}, {} of them retries", report.requests, report.retries)),
        ("missing", report.missing.len().to_string()),
        ("bytes", report.bytes.to_string()),
        ("seconds", format!("{:.2}", report.elapsed.as_secs_f64())),
    ];
    account(verdict, &rows, &report.reasons)
}

pub fn plan(plan: &Plan) -> String {
    let verdict = if plan.cannot.is_empty() { "what is expected" } else { "⚠ not all of it can be had" };
    let about = if plan.exact { "" } else { "about " };
    let number = |value: Option<u64>| value.map_or("not known".into(), |value| format!("{about}{value}"));
    let rows = [
        ("records", number(plan.records)),
        ("pages", number(plan.pages)),
        ("requests", number(plan.requests)),
        ("windows", plan.windows.to_string()),
        ("seconds", plan.seconds.map_or("not known".into(), |seconds| format!("about {seconds:.1}"))),
    ];
    account(verdict, &rows, &plan.cannot)
}

/// Names with their values, and sentences below.
fn account(caption: &str, rows: &[(&str, String)], sentences: &[String]) -> String {
    let mut html = format!("<table><caption>{caption}</caption><tbody>");
    for (name, value) in rows {
        _ = write!(html, "<tr><th>{name}</th><td>{}</td></tr>", escape(value));
    }
    for sentence in sentences {
        _ = write!(html, "<tr><td colspan=\"2\">{}</td></tr>", escape(sentence));
    }
    html + "</tbody></table>"
}

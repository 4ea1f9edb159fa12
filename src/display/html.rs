//! The HTML forms that notebooks show: escaped, bounded, and drawn in shades of the text's own color, so that they
//! are read on light and dark whatever the notebook's theme is called.

use std::fmt::Write as _;

use crate::client::Usage;
use crate::decode::is_unprintable;
use crate::message::{Message, Syntax};
use crate::query::{Bounds, Completeness, Estimate, Report};

/// Rows of a table that are shown, from its head and from its end.
pub const HEAD: usize = 6;
pub const TAIL: usize = 4;
/// Characters of a cell, of an address or hash in a table, of a cell's tip and of a sentence that are shown.
pub const CELL: usize = 24;
const HEX: usize = 14;
const TIP: usize = 200;
const SENTENCE: usize = 300;
/// Sentences of a report that are shown.
const REASONS: usize = 10;

/// Rules for cells say more than they need to, since notebooks have rules of their own for them.
const STYLE: &str = "<style>\
.chainframe{margin:.4em 0;overflow-x:auto;font-size:13px;color:var(--jp-content-font-color1,inherit)}\
.chainframe p{margin:.2em 0}\
.chainframe .dim{opacity:.6}\
.chainframe .warn{border-left:3px solid #d9822b;padding-left:.6em;max-width:60em}\
.chainframe table{font-size:inherit;border-collapse:collapse;border:0;margin:.3em 0;font-variant-numeric:tabular-nums}\
.chainframe.chainframe table th,.chainframe.chainframe table td{padding:.2em .7em;text-align:left;vertical-align:top;white-space:nowrap;border:0;\
background:none;color:inherit}\
.chainframe.chainframe table thead th{border-bottom:1px solid rgba(128,128,128,.5);font-weight:600}\
.chainframe thead small{font-weight:400;opacity:.6}\
.chainframe tbody tr{background:none}\
.chainframe tbody tr:nth-child(even){background:rgba(128,128,128,.1)}\
.chainframe.chainframe table .num{text-align:right}\
.chainframe.chainframe table tbody th{font-weight:400;opacity:.7}\
</style>";

pub fn escape(text: &str) -> String {
    let text = harmless(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

/// The text without control characters, and without marks that turn the direction of writing: they would turn the text
/// around them as well.
fn harmless(text: &str) -> String {
    text.chars().map(|char| if is_unprintable(char) { '\u{fffd}' } else { char }).collect()
}

/// Text that is shortened in the middle, as hashes are.
fn shorten(text: &str, max_chars: usize) -> String {
    let count = text.chars().count();
    if count <= max_chars {
        return text.to_owned();
    }
    let head: String = text.chars().take(max_chars / 2).collect();
    let tail: String = text.chars().skip(count - max_chars / 2 + 3).collect();
    format!("{head}…{tail}")
}

/// Text of a cell in one line of plain text, of at most about that many characters.
pub fn excerpt(text: &str, max_chars: usize) -> String {
    shorten(&harmless(text), max_chars)
}

/// Text of a cell of a table. Addresses are shorter than other texts, so that what they sent is in sight next to them.
pub fn in_table(text: &str) -> String {
    excerpt(text, if text.starts_with("0x") { HEX } else { CELL })
}

/// 1234567 as 1,234,567.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// 1 page, 2 pages.
pub fn counted(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}

/// A whole form: what it is, a line about it, and its parts.
pub fn form(kind: &str, about: &str, parts: &[String]) -> String {
    let kind = escape(kind);
    let about = escape(&shorten(about, SENTENCE));
    format!(
        "{STYLE}<div class=\"chainframe\"><p><b>{kind}</b> <span class=\"dim\">{about}</span></p>{}</div>",
        parts.concat()
    )
}

/// A column's name, what it holds, and whether that is numbers.
pub struct ColumnHead {
    pub name: &'static str,
    pub kind: &'static str,
    pub is_number: bool,
}

impl ColumnHead {
    fn class(&self) -> &'static str {
        if self.is_number { " class=\"num\"" } else { "" }
    }
}

/// Cells of a row; a cell that is not there stands for no value, a row that is not there for those that are left out.
pub type Row = Option<Vec<Option<String>>>;

pub fn table(head: &[ColumnHead], rows: &[Row]) -> String {
    let mut html = String::from("<table><thead><tr>");
    for column in head {
        let class = column.class();
        _ = write!(html, "<th{class}>{}<br><small>{}</small></th>", escape(column.name), escape(column.kind));
    }
    html += "</tr></thead><tbody>";
    for row in rows {
        html += "<tr>";
        for (index, column) in head.iter().enumerate() {
            let class = column.class();
            _ = match row.as_ref().map(|cells| &cells[index]) {
                None => write!(html, "<td{class}><span class=\"dim\">⋮</span></td>"),
                Some(None) => write!(html, "<td{class}><span class=\"dim\">null</span></td>"),
                Some(Some(cell)) => {
                    let tip = escape(&shorten(cell, TIP));
                    let text = escape(&in_table(cell));
                    write!(html, "<td{class} title=\"{tip}\">{text}</td>")
                }
            };
        }
        html += "</tr>";
    }
    html + "</tbody></table>"
}

/// Names and values, one below the other.
pub fn pairs<N: AsRef<str>>(pairs: &[(N, String)]) -> String {
    let mut html = String::from("<table><tbody>");
    for (name, value) in pairs {
        let tip = escape(&shorten(value, TIP));
        let text = escape(&shorten(value, 5 * CELL));
        _ = write!(html, "<tr><th>{}</th><td title=\"{tip}\">{text}</td></tr>", escape(name.as_ref()));
    }
    html + "</tbody></table>"
}

/// Completeness of a result as text.
pub fn verdict(report: &Report) -> &'static str {
    match report.state() {
        Completeness::Complete => "✓ complete",
        Completeness::Incomplete => "⚠ possibly incomplete",
        Completeness::Unfinished => "run not finished",
    }
}

/// Counts of a run in one line, and the reasons why it is incomplete.
pub fn summary(report: &Report) -> String {
    let mut line = format!(
        "{}: {} in {}, {}, {:.1} s",
        verdict(report),
        counted(report.records, "record"),
        counted(report.pages, "page"),
        counted(report.requests, "request"),
        report.elapsed.as_secs_f64()
    );
    if report.retries > 0 {
        _ = write!(line, ", {} retries", count(report.retries));
    }
    format!("<p>{line}</p>{}", reasons(report))
}

/// Reasons why a result is incomplete, and remarks on it.
pub fn reasons(report: &Report) -> String {
    sentences(&report.reasons.to_vec()) + &sentences(&report.remarks.to_vec())
}

fn sentences(sentences: &[Message]) -> String {
    let shown = sentences.iter().take(REASONS);
    let shown = shown.map(|reason| escape(&shorten(&reason.sentence(Syntax::Python), SENTENCE)));
    let mut html: String = shown.map(|reason| format!("<p class=\"warn\">{reason}</p>")).collect();
    if let Some(more) = sentences.len().checked_sub(REASONS).filter(|more| *more > 0) {
        _ = write!(html, "<p class=\"warn\">and {} more</p>", count(more as u64));
    }
    html
}

fn names(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { shorten(&names.join(", "), SENTENCE) }
}

pub fn report(report: &Report) -> String {
    let facts = [
        ("records", count(report.records)),
        ("pages", count(report.pages)),
        ("requests", format!("{}, {} of them retries", count(report.requests), count(report.retries))),
        ("duplicates dropped", count(report.duplicates_dropped)),
        ("contradictory records dropped", count(report.dropped)),
        ("records that moved", count(report.moved)),
        ("lists read again", count(report.rereads)),
        ("missing", count(report.missing.len() as u64)),
        ("members absent", names(&report.members.absent())),
        ("members unknown", names(&report.members.unknown.to_vec())),
        ("bytes", count(report.bytes)),
        ("seconds", format!("{:.2}", report.elapsed.as_secs_f64())),
    ];
    form("Report", verdict(report), &[reasons(report), pairs(&facts)])
}

/// A size in bytes, for reading.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => counted(bytes, "byte"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// A usage in one line.
pub fn usage(usage: &Usage) -> String {
    let retries = if usage.retries == 1 { "retry" } else { "retries" };
    let cached =
        if usage.cached == 0 { String::new() } else { format!(", {} from the cache", counted(usage.cached, "record")) };
    format!(
        "{}, {} {retries}, {} throttled, {} received, {:.1} s held back by the rate limiter{cached}",
        counted(usage.requests, "request"),
        count(usage.retries),
        count(usage.throttled),
        size(usage.bytes),
        usage.waited.as_secs_f64()
    )
}

/// Facts of an estimate, by name.
pub fn estimate_facts(estimate: &Estimate) -> Vec<(&'static str, String)> {
    vec![
        ("records", bounds(estimate.records)),
        ("pages", bounds(estimate.pages)),
        ("requests", bounds(estimate.requests)),
        ("slices", count(estimate.num_slices)),
        ("estimated_seconds", format!("{}, unless the service throttles", about(estimate.estimated_seconds))),
    ]
}

fn about(seconds: f64) -> String {
    if seconds < 0.05 { "under 0.1".into() } else { format!("about {seconds:.1}") }
}

fn bounds(bounds: Bounds) -> String {
    match bounds {
        Bounds { low, high: None, .. } => format!("at least {}", count(low)),
        Bounds { expected, .. } if bounds.is_exact() => count(expected),
        Bounds { expected, low, high: Some(high) } if expected == high && low <= 1 => {
            format!("at most {}", count(high))
        }
        Bounds { expected, low, high: Some(high) } => {
            format!("about {} ({} to {})", count(expected), count(low), count(high))
        }
    }
}

pub fn estimate(estimate: &Estimate) -> String {
    let verdict = if estimate.limitations.is_empty() { "complete" } else { "⚠ partially available" };
    form("Estimate", verdict, &[sentences(&estimate.limitations), pairs(&estimate_facts(estimate))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_shortened_in_the_middle() {
        assert_eq!(shorten("short", CELL), "short");
        let hash = format!("0x{}", "0123456789abcdef".repeat(4));
        assert_eq!(shorten(&hash, CELL), "0x0123456789…789abcdef");
        assert_eq!(shorten(&"ä".repeat(1_000), CELL).chars().count(), CELL - 2);
    }

    #[test]
    fn counts_have_thousands_separators() {
        let texts: Vec<String> = [0, 999, 1_000, 1_234_567].map(count).into();
        assert_eq!(texts, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0, 1, 2_000].map(|number| counted(number, "page")), ["0 pages", "1 page", "2,000 pages"]);
    }
}

//! Small charts, drawn on the server as SVG: no script, no style of their own.
//!
//! Law: the line is the samples and nothing between them that was not measured.

use crate::history::SPAN_MS;
use maud::{Markup, html};
use std::fmt::Write as _;

/// Size of the drawing, in its own units.
const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 40.0;
/// A longer time without a sample is a gap, in milliseconds.
const GAP_MS: u64 = 10_000;

/// A chart of the last five minutes before `now`: times and values, oldest first. `label` says in
/// words what it shows, for who does not see it.
pub(crate) fn chart(label: &str, now: u64, points: &[(u64, f64)]) -> Markup {
    let highest = points.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let scale = if highest > 0.0 { highest } else { 1.0 };
    let x = |at: u64| {
        let ago = now.saturating_sub(at).min(SPAN_MS);
        WIDTH - WIDTH * ago as f64 / SPAN_MS as f64
    };
    let y = |value: f64| HEIGHT - 2.0 - (HEIGHT - 4.0) * value / scale;
    let mut line = String::new();
    let mut last: Option<u64> = None;
    for (at, value) in points {
        let joins = last.is_some_and(|last| at.saturating_sub(last) <= GAP_MS);
        let (x, y) = (x(*at), y(*value));
        // Writing to a string does not fail. A step of no length is a dot, where nothing joins.
        let _ = match joins {
            true => write!(line, "L{x:.1} {y:.1}"),
            false => write!(line, "M{x:.1} {y:.1}h0"),
        };
        last = Some(*at);
    }
    html! {
        svg.spark viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img"
            aria-label=(label) {
            path.base d={ "M0 " (HEIGHT - 1.0) "L" (WIDTH) " " (HEIGHT - 1.0) } {}
            path.line d=(line) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_not_drawn_over_and_nothing_is_a_chart_too() {
        let points = [(100_000, 1.0), (102_000, 2.0), (200_000, 1.0)];
        let drawn = chart("x", 300_000, &points).into_string();
        assert_eq!(drawn.matches('L').count(), 2, "one join, and the base: {drawn}");
        assert!(drawn.contains("M80.0 20.0h0L81.6 2.0M160.0 20.0h0"), "{drawn}");
        assert!(chart("x", 1, &[]).into_string().contains("<svg"));
        assert!(!chart("x", 1, &[(1, 0.0)]).into_string().contains("NaN"));
    }
}

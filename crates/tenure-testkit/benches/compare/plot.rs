//! The figures as a picture: a line per row, a panel per question, time by its logarithm.

use std::fmt::Write as _;
use std::time::Duration;

use crate::common::double::Double;
use crate::common::samples::human;
use crate::figures::Figures;
use crate::rows::Row;
use crate::{Extent, TTL};

const LINE: f64 = 26.0;
const NAMES: f64 = 250.0;
const PANEL: f64 = 205.0;
/// Of a panel, for its bars; the rest is for what is written behind them.
const BARS: f64 = 125.0;
const TOP: f64 = 74.0;
const SHORTEST: f64 = 0.000_5;

/// A bar, and what is written behind it.
struct Bar {
    length: f64,
    /// A thinner one that goes on from it.
    further: f64,
    label: String,
    /// Two led.
    is_bad: bool,
}

type Draw = fn(&Figures) -> Bar;

const PANELS: [(&str, &str, Draw); 4] = [
    ("planned hand-over", "p50, thin: p99", handover),
    ("crash → successor leads", "p50, thin: worst", crash),
    ("two leaders after a pause", "longest", |figures| double(figures, figures.pause)),
    ("two leaders after a cut", "longest", |figures| double(figures, figures.cut)),
];

pub fn draw(rows: &[Row<'_>], figures: &[Figures], extent: &Extent) -> String {
    let scale = Scale { longest: extent.patience.as_secs_f64() };
    let bottom = TOP + LINE * rows.len() as f64;
    let (width, height) = (NAMES + PANEL * PANELS.len() as f64, bottom + 52.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Tenure beside what people use today</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (number, row) in rows.iter().enumerate() {
        let y = TOP + LINE * number as f64;
        if number % 2 == 0 {
            _ = writeln!(
                svg,
                "<rect x=\"0\" y=\"{y}\" width=\"{width}\" height=\"{LINE}\" fill=\"#f4f5f7\"/>"
            );
        }
        let weight = if row.is_tenure { "bold" } else { "normal" };
        _ = writeln!(svg, "<text x=\"8\" y=\"{}\" font-weight=\"{weight}\">{}</text>", y + 17.0, row.name());
    }
    for (number, (title, subtitle, bar)) in PANELS.iter().enumerate() {
        let x = NAMES + PANEL * number as f64;
        _ = writeln!(svg, "<text x=\"{x}\" y=\"28\" font-weight=\"bold\">{title}</text>");
        _ = writeln!(svg, "<text x=\"{x}\" y=\"46\" fill=\"#5b6470\">{subtitle}</text>");
        scale.ticks(&mut svg, x, bottom);
        for (line, (row, figures)) in rows.iter().zip(figures).enumerate() {
            scale.bar(&mut svg, x, TOP + LINE * line as f64, &bar(figures), row.is_tenure);
        }
    }
    let legend = format!(
        "ttl {}; time by its logarithm. Blue: Tenure. Grey: others. Red: two processes claimed to lead at a time.",
        human(TTL)
    );
    _ = writeln!(svg, "<text x=\"8\" y=\"{}\" fill=\"#5b6470\">{legend}</text>", bottom + 42.0);
    svg + "</svg>\n"
}

struct Scale {
    /// Whatever is longer reaches to the end too.
    longest: f64,
}

impl Scale {
    fn length(&self, seconds: f64) -> f64 {
        if seconds <= SHORTEST {
            return 0.0;
        }
        (seconds / SHORTEST).ln() / (self.longest / SHORTEST).ln() * BARS
    }

    fn ticks(&self, svg: &mut String, x: f64, bottom: f64) {
        for tick in [0.001, 0.01, 0.1, 1.0, 10.0].into_iter().filter(|tick| *tick <= self.longest) {
            let (at, name) = (x + self.length(tick), human(Duration::from_secs_f64(tick)));
            let name = name.replace(".00", "").replace(".0", "");
            _ = writeln!(
                svg,
                "<line x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{bottom}\" stroke=\"#dde1e6\"/>"
            );
            _ = writeln!(
                svg,
                "<text x=\"{at:.1}\" y=\"{}\" font-size=\"8\" text-anchor=\"middle\" fill=\"#5b6470\">{name}</text>",
                bottom + 14.0
            );
        }
    }

    fn bar(&self, svg: &mut String, x: f64, y: f64, bar: &Bar, is_tenure: bool) {
        let colour = match (bar.is_bad, is_tenure) {
            (true, _) => "#c62828",
            (false, true) => "#1565c0",
            (false, false) => "#8a94a0",
        };
        let (length, further) = (self.length(bar.length), self.length(bar.further));
        for (length, height) in
            [(length, 12.0), (further, 4.0)].into_iter().filter(|(length, _)| *length > 0.0)
        {
            let top = y + (LINE - height) / 2.0;
            _ = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"{top}\" width=\"{length:.1}\" height=\"{height}\" fill=\"{colour}\"/>"
            );
        }
        let end = x + length.max(further) + 5.0;
        _ = writeln!(
            svg,
            "<text x=\"{end:.1}\" y=\"{}\" font-size=\"11\" fill=\"#222222\">{}</text>",
            y + 17.0,
            bar.label
        );
    }
}

fn handover(figures: &Figures) -> Bar {
    let Some(samples) = &figures.handover else { return unmeasured(figures, "has none") };
    let (p50, p99) = (samples.percentile(50), samples.percentile(99));
    times(p50, p99)
}

fn crash(figures: &Figures) -> Bar {
    let Some(samples) = &figures.crash else { return unmeasured(figures, "") };
    times(samples.percentile(50), samples.percentile(100))
}

fn times(usual: Duration, worst: Duration) -> Bar {
    Bar { length: usual.as_secs_f64(), further: worst.as_secs_f64(), label: human(usual), is_bad: false }
}

fn double(figures: &Figures, double: Option<Double>) -> Bar {
    let (Some(Double::For(time) | Double::Beyond(time)), Some(told)) = (double, double) else {
        return match double {
            Some(_) => remark("0; no successor"),
            None => unmeasured(figures, "no network"),
        };
    };
    let label = told.to_string().replace('>', "&gt;");
    Bar { length: time.as_secs_f64(), further: 0.0, label, is_bad: !told.is_none() }
}

/// Why there is no figure: the row failed before, or there is nothing to measure.
fn unmeasured(figures: &Figures, otherwise: &str) -> Bar {
    remark(if figures.failed.is_empty() { otherwise } else { "failed" })
}

fn remark(label: &str) -> Bar {
    Bar { length: 0.0, further: 0.0, label: label.to_owned(), is_bad: false }
}

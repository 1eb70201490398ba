//! Where another is ahead of Tenure, told from the figures.

use std::time::Duration;

use crate::common::double::Double;
use crate::common::samples::human;
use crate::figures::Figures;
use crate::rows::Row;

/// One thing that is compared: less is better.
struct Column {
    what: &'static str,
    value: fn(&Figures) -> Option<f64>,
    show: fn(f64) -> String,
}

const COLUMNS: [Column; 10] = [
    Column {
        what: "hand-over, p50",
        value: |f| Some(seconds(f.handover.as_ref()?.percentile(50))),
        show: time,
    },
    Column {
        what: "hand-over, p99",
        value: |f| Some(seconds(f.handover.as_ref()?.percentile(99))),
        show: time,
    },
    Column { what: "crash, p50", value: |f| Some(seconds(f.crash.as_ref()?.percentile(50))), show: time },
    Column {
        what: "crash, at worst",
        value: |f| Some(seconds(f.crash.as_ref()?.percentile(100))),
        show: time,
    },
    Column { what: "two leaders after a pause", value: |f| double(f.pause), show: time },
    Column { what: "two leaders after a cut", value: |f| double(f.cut), show: time },
    Column {
        what: "messages per second when idle",
        value: |f| f.idle.messages,
        show: |value| format!("{value:.1}"),
    },
    Column {
        what: "processor when idle",
        value: |f| Some(f.idle.cpu_percent),
        show: |value| format!("{value:.2} %"),
    },
    Column { what: "memory", value: |f| Some(f.idle.memory_mib), show: |value| format!("{value:.1} MiB") },
    Column {
        what: "program on disk",
        value: |f| f.idle.program_mib,
        show: |value| format!("{value:.0} MiB"),
    },
];

/// A line for each column: who is ahead of Tenure on the same server, or, without one, of the best row of Tenure.
pub fn tell(rows: &[Row<'_>], figures: &[Figures]) -> String {
    let mut lines = String::new();
    for column in &COLUMNS {
        let ahead: Vec<String> = rows
            .iter()
            .zip(figures)
            .filter(|(row, _)| !row.is_tenure)
            .filter_map(|(row, theirs)| {
                let (theirs, ours) = ((column.value)(theirs)?, rival(column, row, rows, figures)?);
                let (told, against) = ((column.show)(theirs), (column.show)(ours));
                // What reads the same is the same.
                (theirs < ours && told != against)
                    .then(|| format!("{} ({told} against {against})", row.name()))
            })
            .collect();
        let ahead = if ahead.is_empty() { String::from("nobody") } else { ahead.join("; ") };
        lines += &format!("- {}: {ahead}.\n", column.what);
    }
    lines
}

fn rival(column: &Column, row: &Row<'_>, rows: &[Row<'_>], figures: &[Figures]) -> Option<f64> {
    let ours = || rows.iter().zip(figures).filter(|(row, _)| row.is_tenure);
    let there = ours().find(|(one, _)| one.on == row.on);
    match there {
        Some((_, figures)) => (column.value)(figures),
        None => ours().filter_map(|(_, figures)| (column.value)(figures)).min_by(f64::total_cmp),
    }
}

fn double(double: Option<Double>) -> Option<f64> {
    Some(match double? {
        Double::Alone(_) => 0.0,
        Double::For(time) | Double::Beyond(time) => seconds(time),
    })
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

fn time(seconds: f64) -> String {
    human(Duration::from_secs_f64(seconds))
}

//! Series that take turns: what is compared is measured side by side.

use std::fmt;

/// A median and what it varied between.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spread {
    /// The middle value.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Sums values up.
    ///
    /// # Panics
    ///
    /// If there are none.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Self { median: sorted[sorted.len() / 2], min: sorted[0], max: sorted[sorted.len() - 1] }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}–{})", figure(self.median), figure(self.min), figure(self.max))
    }
}

/// Writes a figure with as many digits as it is worth.
fn figure(value: f64) -> String {
    if value < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// One thing to measure again and again.
pub struct Series<'a> {
    /// Its id, `area/operation/variant/param`.
    pub id: String,
    /// Measures once.
    pub measure: Box<dyn FnMut() -> f64 + 'a>,
}

impl<'a> Series<'a> {
    /// Names a measurement.
    pub fn new(id: impl Into<String>, measure: impl FnMut() -> f64 + 'a) -> Self {
        Self { id: id.into(), measure: Box::new(measure) }
    }
}

impl fmt::Debug for Series<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Series").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What one series came to.
#[derive(Clone, Debug)]
pub struct Line {
    /// The series' id.
    pub id: String,
    /// Its values over the rounds.
    pub spread: Spread,
}

/// Measures all series in turn: one warm-up round that counts for nothing, then `rounds`.
#[must_use]
pub fn interleave(mut series: Vec<Series<'_>>, rounds: usize) -> Vec<Line> {
    let mut values = vec![Vec::with_capacity(rounds); series.len()];
    for round in 0..=rounds {
        for (one, values) in series.iter_mut().zip(&mut values) {
            let value = (one.measure)();
            if round > 0 {
                values.push(value);
            }
        }
    }
    series
        .into_iter()
        .zip(values)
        .map(|(one, values)| Line { id: one.id, spread: Spread::of(&values) })
        .collect()
}

#[cfg(test)]
mod tests;

//! The fewest executions that each model must have: a model that has become smaller than that no
//! longer shows what it showed.

/// The text of `floors.toml`.
pub(crate) const TABLE: &str = include_str!("../floors.toml");

/// Finds the floor of a model in a table of `"id" = number` lines.
///
/// # Errors
///
/// A sentence if the model has no floor, or the line cannot be read.
pub(crate) fn of(table: &str, id: &str) -> Result<usize, String> {
    for line in table.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some((key, value)) = line.split_once('=') else { continue };
        if key.trim().trim_matches('"') == id {
            let number = value.trim().replace('_', "");
            return number.parse().map_err(|_| format!("floor of {id} is no number: {number}"));
        }
    }
    Err(format!("model {id} has no floor in floors.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_is_found_by_the_models_name() {
        let table = "# why\n\"L4\" = 5_000\nL4b = 7 # small\n";
        assert_eq!(of(table, "L4"), Ok(5_000));
        assert_eq!(of(table, "L4b"), Ok(7));
    }

    #[test]
    fn a_model_without_floor_is_an_error() {
        assert!(of("L4 = 1\n", "L5").is_err());
        assert!(of("L5 = many\n", "L5").is_err());
    }
}

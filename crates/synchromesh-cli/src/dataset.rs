//! The Breast Cancer Wisconsin (Diagnostic) table: 569 patients, 30 features each, and the diagnosis.
//!
//! Source: UCI Machine Learning Repository, <https://doi.org/10.24432/C5DW2B>, CC BY 4.0; see `data/README.md`.

use crate::table::{Table, TableError};

const CSV: &str = include_str!("../data/breast_cancer_wisconsin.csv");

/// Patients.
pub const PATIENTS: usize = 569;

/// Features of a patient.
pub const FEATURES: usize = 30;

/// The table in memory.
#[derive(Clone, Debug)]
pub struct Dataset {
    table: Table,
    features: Vec<[f64; FEATURES]>,
    malignant: Vec<bool>,
}

/// Some patients: features, and whether the diagnosis is malignant, row by row.
#[derive(Clone, Debug, Default)]
pub struct Patients {
    /// The features, in the units of the table.
    pub features: Vec<[f64; FEATURES]>,
    /// The diagnoses.
    pub malignant: Vec<bool>,
}

impl Dataset {
    /// Reads the table that is part of this program.
    ///
    /// # Errors
    /// None with the table as shipped; a [`TableError`] if the program was built with a damaged one.
    pub fn load() -> Result<Self, TableError> {
        let table = Table::from_bytes(CSV.as_bytes())?;
        let mut features = vec![[0.0; FEATURES]; table.rows()];
        for column in 0..FEATURES {
            for (row, value) in features.iter_mut().zip(table.reals(column)?) {
                row[column] = value;
            }
        }
        let malignant = table.reals(FEATURES)?.iter().map(|label| *label == 1.0).collect();
        Ok(Self { table, features, malignant })
    }

    /// The name of a feature, [`FEATURES`] standing for the label; empty when there is none of that number.
    #[must_use]
    pub fn name(&self, column: usize) -> &str {
        self.table.names().and_then(|names| names.get(column)).map_or("", String::as_str)
    }

    /// The column of the feature `name`.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.table.names()?.iter().position(|n| n == name)
    }

    /// A feature of every patient.
    pub fn feature(&self, column: usize) -> impl Iterator<Item = f64> + '_ {
        self.features.iter().filter_map(move |row| row.get(column).copied())
    }

    /// The diagnosis of every patient.
    #[must_use]
    pub fn malignant(&self) -> &[bool] {
        &self.malignant
    }

    /// Every fifth row, from the first, is for testing; all others are for training.
    #[must_use]
    pub fn split(&self) -> (Patients, Patients) {
        let (mut train, mut test) = (Patients::default(), Patients::default());
        for (row, (features, malignant)) in self.features.iter().zip(&self.malignant).enumerate() {
            let part = if row % 5 == 0 { &mut test } else { &mut train };
            part.features.push(*features);
            part.malignant.push(*malignant);
        }
        (train, test)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        let data = Dataset::load().unwrap();
        assert_eq!(data.malignant().len(), PATIENTS);
        assert_eq!(data.malignant().iter().filter(|m| **m).count(), 212);
        assert_eq!(
            (data.name(0), data.name(29), data.name(30)),
            ("mean_radius", "worst_fractal_dimension", "malignant")
        );
        let area = data.column("mean_area").unwrap();
        assert_eq!(data.feature(area).fold(0.0, f64::max), 2501.0);
        assert_eq!(data.feature(area).fold(f64::MAX, f64::min), 143.5);
        let sum: f64 = (0..FEATURES).map(|c| data.feature(c).sum::<f64>()).sum();
        assert!((sum - 1_056_474.459_635_6).abs() < 1e-6, "{sum}");
    }

    #[test]
    fn the_split_is_fixed() {
        let (train, test) = Dataset::load().unwrap().split();
        assert_eq!((train.features.len(), test.features.len()), (455, 114));
        assert_eq!(test.features[0][0], 17.99);
        assert_eq!((train.malignant.len(), test.malignant.len()), (455, 114));
    }
}

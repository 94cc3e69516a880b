//! Logistic regression fitted in the clear: P(malignant | x) = 1 / (1 + exp(-z)), z = <w, x> + b, and the polynomial
//! of degree 7 that stands for the sigmoid on encrypted data.
//!
//! A feature v enters as x = clamp((v - mean) / (1.5 deviation), -1, 1), so |z| <= reach = sum |w_i| + |b| for every
//! patient there can be. With u = z / reach the polynomial is evaluated on [-1, 1] and nowhere else.

use crate::dataset::{FEATURES, Patients};

/// Features are clamped at this many standard deviations.
pub const CLAMP: f64 = 1.5;

/// Weight of the penalty |w|^2 / 2, with features in standard deviations.
pub const PENALTY: f64 = 10.0;

/// Degree of the polynomial that stands for the sigmoid.
pub const DEGREE: usize = 7;

/// Newton steps; the gradient is below 1e-9 after eight.
const STEPS: usize = 12;

/// A fitted model.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    mean: [f64; FEATURES],
    deviation: [f64; FEATURES],
    weights: [f64; FEATURES],
    bias: f64,
    sigmoid: OddPolynomial,
}

/// 1/2 + c1 u + c3 u^3 + c5 u^5 + c7 u^7.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OddPolynomial {
    /// c1, c3, c5, c7.
    pub coefficients: [f64; DEGREE.div_ceil(2)],
}

impl OddPolynomial {
    /// Chebyshev's approximation of 1 / (1 + exp(-reach u)) on [-1, 1]: 64 nodes, truncated at degree 7.
    #[must_use]
    pub fn sigmoid(reach: f64) -> Self {
        const NODES: usize = 64;
        let coefficient = |k: usize| {
            let sum: f64 = (0..NODES)
                .map(|i| {
                    let angle = std::f64::consts::PI * (i as f64 + 0.5) / NODES as f64;
                    (sigmoid(reach * angle.cos()) - 0.5) * (k as f64 * angle).cos()
                })
                .sum();
            2.0 / NODES as f64 * sum
        };
        let [t1, t3, t5, t7] = [1, 3, 5, 7].map(coefficient);
        let coefficients =
            [t1 - 3.0 * t3 + 5.0 * t5 - 7.0 * t7, 4.0 * t3 - 20.0 * t5 + 56.0 * t7, 16.0 * t5 - 112.0 * t7, 64.0 * t7];
        Self { coefficients }
    }

    /// The value at u.
    #[must_use]
    pub fn evaluate(&self, u: f64) -> f64 {
        let [c1, c3, c5, c7] = self.coefficients;
        let v = u * u;
        0.5 + u * (c1 + v * (c3 + v * (c5 + v * c7)))
    }
}

impl Model {
    /// The penalised maximum-likelihood model of the patients, by Newton's method from zero.
    ///
    /// A feature that is the same for all patients gets the weight 0.
    #[must_use]
    pub fn fit(patients: &Patients) -> Self {
        let count = patients.features.len().max(1) as f64;
        let mean: [f64; FEATURES] =
            std::array::from_fn(|j| patients.features.iter().map(|row| row[j]).sum::<f64>() / count);
        let deviation: [f64; FEATURES] = std::array::from_fn(|j| {
            let variance = patients.features.iter().map(|row| (row[j] - mean[j]).powi(2)).sum::<f64>() / count;
            if variance > 0.0 { variance.sqrt() } else { 1.0 }
        });
        let mut model =
            Self { mean, deviation, weights: [0.0; FEATURES], bias: 0.0, sigmoid: OddPolynomial::sigmoid(1.0) };
        let rows: Vec<_> = patients.features.iter().map(|row| model.normalise(row)).collect();
        for _ in 0..STEPS {
            model.newton_step(&rows, &patients.malignant);
        }
        model.sigmoid = OddPolynomial::sigmoid(model.reach());
        model
    }

    /// A patient's features as the model takes them, each in [-1, 1].
    #[must_use]
    pub fn normalise(&self, features: &[f64; FEATURES]) -> [f64; FEATURES] {
        std::array::from_fn(|j| ((features[j] - self.mean[j]) / (CLAMP * self.deviation[j])).clamp(-1.0, 1.0))
    }

    /// The largest |z| there can be: sum |w_i| + |b|.
    #[must_use]
    pub fn reach(&self) -> f64 {
        self.weights.iter().map(|w| w.abs()).sum::<f64>() + self.bias.abs()
    }

    /// Weights and bias of u = z / reach on normalised features; their magnitudes add up to 1.
    #[must_use]
    pub fn scaled(&self) -> ([f64; FEATURES], f64) {
        let reach = self.reach().max(f64::MIN_POSITIVE);
        (self.weights.map(|w| w / reach), self.bias / reach)
    }

    /// The polynomial of u that stands for the sigmoid of z.
    #[must_use]
    pub fn polynomial(&self) -> OddPolynomial {
        self.sigmoid
    }

    /// z of normalised features.
    #[must_use]
    pub fn logit(&self, normalised: &[f64; FEATURES]) -> f64 {
        self.weights.iter().zip(normalised).map(|(w, x)| w * x).sum::<f64>() + self.bias
    }

    /// P(malignant) of normalised features.
    #[must_use]
    pub fn probability(&self, normalised: &[f64; FEATURES]) -> f64 {
        sigmoid(self.logit(normalised))
    }

    /// What [`Self::probability`] becomes with the polynomial in place of the sigmoid: the score computed on
    /// encrypted features.
    #[must_use]
    pub fn score(&self, normalised: &[f64; FEATURES]) -> f64 {
        self.sigmoid.evaluate(self.logit(normalised) / self.reach().max(f64::MIN_POSITIVE))
    }

    /// One Newton step on the penalised negative log-likelihood.
    fn newton_step(&mut self, rows: &[[f64; FEATURES]], malignant: &[bool]) {
        const SIZE: usize = FEATURES + 1;
        let mut gradient = [0.0; SIZE];
        let mut hessian = [[0.0; SIZE]; SIZE];
        for (row, &label) in rows.iter().zip(malignant) {
            let probability = self.probability(row);
            let residual = probability - f64::from(u8::from(label));
            let curvature = probability * (1.0 - probability);
            let entry = |j: usize| if j < FEATURES { row[j] } else { 1.0 };
            for j in 0..SIZE {
                gradient[j] += residual * entry(j);
                for k in 0..=j {
                    hessian[j][k] += curvature * entry(j) * entry(k);
                }
            }
        }
        let penalty = PENALTY / (CLAMP * CLAMP);
        for j in 0..FEATURES {
            gradient[j] += penalty * self.weights[j];
            hessian[j][j] += penalty;
        }
        let step = solve(hessian, gradient);
        for j in 0..FEATURES {
            self.weights[j] -= step[j];
        }
        self.bias -= step[FEATURES];
    }
}

/// The share of patients whose score is on the side of 1/2 that the diagnosis says.
#[must_use]
pub fn accuracy(scores: &[f64], malignant: &[bool]) -> f64 {
    let right = scores.iter().zip(malignant).filter(|(score, label)| (**score > 0.5) == **label).count();
    right as f64 / malignant.len().max(1) as f64
}

fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

/// x of A x = b by Cholesky's A = L L^T; of the symmetric positive definite A the lower triangle is read.
fn solve<const N: usize>(mut a: [[f64; N]; N], mut b: [f64; N]) -> [f64; N] {
    for j in 0..N {
        for k in 0..j {
            for i in j..N {
                a[i][j] -= a[i][k] * a[j][k];
            }
        }
        a[j][j] = a[j][j].max(f64::MIN_POSITIVE);
        let pivot = a[j][j].sqrt();
        for i in j..N {
            a[i][j] /= pivot;
        }
    }
    for i in 0..N {
        for k in 0..i {
            b[i] -= a[i][k] * b[k];
        }
        b[i] /= a[i][i];
    }
    for i in (0..N).rev() {
        for k in i + 1..N {
            b[i] -= a[k][i] * b[k];
        }
        b[i] /= a[i][i];
    }
    b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Dataset;

    fn fitted() -> (Model, Patients, Patients) {
        let (train, test) = Dataset::load().unwrap().split();
        (Model::fit(&train), train, test)
    }

    #[test]
    fn cholesky_solves_a_known_system() {
        let x = solve([[4.0, 0.0, 0.0], [2.0, 5.0, 0.0], [1.0, 3.0, 6.0]], [11.0, 21.0, 25.0]);
        for (found, expected) in x.iter().zip([1.0, 2.0, 3.0]) {
            assert!((found - expected).abs() < 1e-12, "{x:?}");
        }
    }

    #[test]
    fn the_gradient_vanishes_at_the_fit() {
        let (model, train, _) = fitted();
        let rows: Vec<_> = train.features.iter().map(|r| model.normalise(r)).collect();
        let residuals: Vec<f64> = rows
            .iter()
            .zip(&train.malignant)
            .map(|(row, label)| model.probability(row) - f64::from(u8::from(*label)))
            .collect();
        assert!(residuals.iter().sum::<f64>().abs() < 1e-9);
        for j in 0..FEATURES {
            let slope: f64 = rows.iter().zip(&residuals).map(|(row, r)| row[j] * r).sum();
            assert!((slope + PENALTY / (CLAMP * CLAMP) * model.weights[j]).abs() < 1e-9);
        }
    }

    #[test]
    fn accuracy_on_the_test_split_is_that_of_an_independent_fit() {
        let (model, _, test) = fitted();
        let rows: Vec<_> = test.features.iter().map(|r| model.normalise(r)).collect();
        let probabilities: Vec<f64> = rows.iter().map(|r| model.probability(r)).collect();
        assert_eq!(accuracy(&probabilities, &test.malignant), 110.0 / 114.0);
        let scores: Vec<f64> = rows.iter().map(|r| model.score(r)).collect();
        assert_eq!(accuracy(&scores, &test.malignant), 110.0 / 114.0);
        assert!((model.bias - -0.48).abs() < 0.01, "{}", model.bias);
    }

    #[test]
    fn the_polynomial_is_within_a_tenth_of_the_sigmoid_and_on_its_side_of_one_half() {
        let (model, ..) = fitted();
        let reach = model.reach();
        for step in 1..=1000 {
            let u = f64::from(step) / 1000.0;
            let gap = (model.polynomial().evaluate(u) - sigmoid(reach * u)).abs();
            assert!(gap < 0.1, "{u}: {gap}");
            assert!(model.polynomial().evaluate(u) > 0.5 && model.polynomial().evaluate(-u) < 0.5, "{u}");
        }
        let (weights, bias) = model.scaled();
        assert!((weights.iter().map(|w| w.abs()).sum::<f64>() + bias.abs() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_the_polynomial_leaves_is_orthogonal_to_all_of_its_degree() {
        let polynomial = OddPolynomial::sigmoid(9.0);
        for k in [1.0, 3.0, 5.0, 7.0] {
            let angles = (0..64).map(|i| std::f64::consts::PI * (f64::from(i) + 0.5) / 64.0);
            let product: f64 =
                angles.map(|a| (sigmoid(9.0 * a.cos()) - polynomial.evaluate(a.cos())) * (k * a).cos()).sum();
            assert!(product.abs() < 1e-10, "{k}: {product}");
        }
    }

    #[test]
    fn no_patients_or_equal_ones_make_no_nan() {
        let equal = Patients { features: vec![[1.0; FEATURES]; 4], malignant: vec![true, false, true, true] };
        let model = Model::fit(&equal);
        assert!(model.score(&model.normalise(&[2.0; FEATURES])).is_finite());
        let model = Model::fit(&Patients::default());
        assert!(model.score(&model.normalise(&[2.0; FEATURES])).is_finite());
    }
}

//! Small symmetric systems of equations, as in least squares with a handful of parameters, by
//! Cholesky factorisation.
//!
//! Out of scope: anything large, sparse or badly conditioned. A matrix that isn't clearly positive
//! definite has no solution here.

/// Share of the diagonal element below which a pivot is only rounding.
const SINGULAR: f64 = 1e-12;

/// A symmetric matrix, row by row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Symmetric(Vec<Vec<f64>>);

impl Symmetric {
    /// Returns the sum over `rows` of each row times its transpose.
    pub(crate) fn of_products(rows: &[Vec<f64>]) -> Symmetric {
        let width = rows.first().map_or(0, Vec::len);
        let mut products = vec![vec![0.0; width]; width];
        for row in rows {
            for (i, a) in row.iter().enumerate() {
                for (j, b) in row.iter().enumerate() {
                    products[i][j] += a * b;
                }
            }
        }
        Symmetric(products)
    }

    /// Raises the diagonal by a share of itself.
    pub(crate) fn damped(&self, share: f64) -> Symmetric {
        let mut damped = self.clone();
        for (i, row) in damped.0.iter_mut().enumerate() {
            row[i] *= 1.0 + share;
        }
        damped
    }

    /// Returns x such that this matrix times x is `right`; `None` if the matrix is singular.
    pub(crate) fn solve(&self, right: &[f64]) -> Option<Vec<f64>> {
        Some(substitute(&self.factor()?, right))
    }

    /// Returns the inverse; `None` if the matrix is singular.
    pub(crate) fn inverse(&self) -> Option<Vec<Vec<f64>>> {
        let factor = self.factor()?;
        let n = factor.len();
        let unit = |j: usize| (0..n).map(|i| if i == j { 1.0 } else { 0.0 }).collect::<Vec<f64>>();
        Some((0..n).map(|j| substitute(&factor, &unit(j))).collect())
    }

    /// Returns the lower triangle whose product with its transpose is this matrix.
    fn factor(&self) -> Option<Vec<Vec<f64>>> {
        let mut factor: Vec<Vec<f64>> = Vec::with_capacity(self.0.len());
        for (i, row) in self.0.iter().enumerate() {
            let mut row_of_factor: Vec<f64> = Vec::with_capacity(i + 1);
            for (j, earlier) in factor.iter().enumerate() {
                row_of_factor.push((row[j] - dot(&row_of_factor, &earlier[..j])) / earlier[j]);
            }
            let pivot = row[i] - dot(&row_of_factor, &row_of_factor);
            if !(pivot.is_finite() && pivot > SINGULAR * row[i]) {
                return None;
            }
            row_of_factor.push(pivot.sqrt());
            factor.push(row_of_factor);
        }
        Some(factor)
    }
}

/// Substitutes forwards through the factor, then backwards through its transpose.
fn substitute(factor: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let mut x: Vec<f64> = Vec::with_capacity(factor.len());
    for (i, row) in factor.iter().enumerate() {
        x.push((right[i] - dot(&x, &row[..i])) / row[i]);
    }
    for i in (0..factor.len()).rev() {
        let later: f64 = (i + 1..factor.len()).map(|j| factor[j][i] * x[j]).sum();
        x[i] = (x[i] - later) / factor[i][i];
    }
    x
}

/// Returns the product of two vectors of the same length.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dependent_columns_have_no_solution() {
        let rows = vec![vec![1.0, 2.0], vec![2.0, 4.0], vec![3.0, 6.0]];
        assert_eq!(Symmetric::of_products(&rows).solve(&[1.0, 1.0]), None);
    }

    proptest! {
        #[test]
        fn solution_satisfies_the_equations(
            rows in prop::collection::vec(prop::collection::vec(-1.0..1.0f64, 4), 12..20),
            right in prop::collection::vec(-1.0..1.0f64, 4),
        ) {
            let matrix = Symmetric::of_products(&rows);
            prop_assume!(matrix.factor().is_some_and(|f| f.iter().all(|r| r.last() > Some(&0.1))));
            let inverse = matrix.inverse().unwrap();
            let x = matrix.solve(&right).unwrap();
            for (i, row) in matrix.0.iter().enumerate() {
                prop_assert!((dot(row, &x) - right[i]).abs() < 1e-9);
                prop_assert!((dot(&inverse[i], &right) - x[i]).abs() < 1e-9);
            }
        }
    }
}

//! Where things are: PDF's six-number transformations.

use crate::object::Object;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix(pub(crate) [f64; 6]);

impl Matrix {
    pub(crate) const SAME: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    pub(crate) fn moved(x: f64, y: f64) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y])
    }

    pub(crate) fn from(items: &[Object]) -> Option<Self> {
        let numbers: Vec<f64> = items.iter().filter_map(Object::number).collect();
        <[f64; 6]>::try_from(numbers).ok().map(Self)
    }

    /// First this, then `next`.
    pub(crate) fn then(self, next: Self) -> Self {
        let [right, up, over, above, left, low] = self.0;
        let turn = |x: f64, y: f64| (x * next.0[0] + y * next.0[2], x * next.0[1] + y * next.0[3]);
        let (one, two, place) = (turn(right, up), turn(over, above), next.apply(left, low));
        Self([one.0, one.1, two.0, two.1, place.0, place.1])
    }

    /// Where `(x, y)` comes to lie.
    pub(crate) fn apply(self, x: f64, y: f64) -> (f64, f64) {
        let m = self.0;
        (m[0] * x + m[2] * y + m[4], m[1] * x + m[3] * y + m[5])
    }
}

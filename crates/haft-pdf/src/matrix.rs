//! PDF's affine transformations of six numbers.

use crate::object::Object;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix(pub(crate) [f64; 6]);

impl Matrix {
    pub(crate) const IDENTITY: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    pub(crate) fn translation(x: f64, y: f64) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y])
    }

    /// Returns `None` unless exactly six of the items are numbers.
    pub(crate) fn from_items(items: &[Object]) -> Option<Self> {
        let numbers: Vec<f64> = items.iter().filter_map(Object::number).collect();
        <[f64; 6]>::try_from(numbers).ok().map(Self)
    }

    /// Returns the transformation that applies `self` first and then `next`.
    pub(crate) fn then(self, next: Self) -> Self {
        let m = self.0;
        let rotate = |x: f64, y: f64| (x * next.0[0] + y * next.0[2], x * next.0[1] + y * next.0[3]);
        let (x_axis, y_axis, origin) = (rotate(m[0], m[1]), rotate(m[2], m[3]), next.apply(m[4], m[5]));
        Self([x_axis.0, x_axis.1, y_axis.0, y_axis.1, origin.0, origin.1])
    }

    pub(crate) fn apply(self, x: f64, y: f64) -> (f64, f64) {
        let m = self.0;
        (m[0] * x + m[2] * y + m[4], m[1] * x + m[3] * y + m[5])
    }
}

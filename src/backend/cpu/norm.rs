//! RMSNorm (<https://arxiv.org/abs/1910.07467>).

/// A row before it is divided: `x ⊙ weight · inverse` is its norm. In `f64`, where the products are exact.
pub struct Normalised<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    inverse: f64,
}

impl<'a> Normalised<'a> {
    pub fn new(x: &'a [f32], weight: &'a [f32], eps: f32) -> Self {
        assert_eq!(x.len(), weight.len());
        Self { x, weight, inverse: inverse_rms(x, eps) }
    }

    /// The norm times a factor, element by element.
    #[inline(always)]
    pub fn scaled(&self, factor: f64) -> impl Iterator<Item = f64> {
        let factor = self.inverse * factor;
        self.x.iter().zip(self.weight).map(move |(x, weight)| f64::from(*x) * f64::from(*weight) * factor)
    }

    /// The largest magnitude.
    pub fn largest(&self) -> f64 {
        let larger = |max: f64, product: f64| if product.abs() > max { product.abs() } else { max };
        let product = |(x, weight): (&f32, &f32)| f64::from(*x) * f64::from(*weight);
        let (x, x_rest) = self.x.as_chunks::<8>();
        let (weight, weight_rest) = self.weight.as_chunks::<8>();
        let mut lanes = [0.0; 8];
        for chunks in x.iter().zip(weight) {
            for (lane, pair) in lanes.iter_mut().zip(chunks.0.iter().zip(chunks.1)) {
                *lane = larger(*lane, product(pair));
            }
        }
        let rest = x_rest.iter().zip(weight_rest).map(product);
        lanes.into_iter().chain(rest).fold(0.0, larger) * self.inverse
    }
}

/// RMSNorm in place.
pub fn rms_norm_in_place(x: &mut [f32], weight: &[f32], eps: f32) {
    let inverse = inverse_rms(x, eps) as f32;
    for (x, weight) in x.iter_mut().zip(weight) {
        *x = weight * (*x * inverse);
    }
}

fn inverse_rms(x: &[f32], eps: f32) -> f64 {
    let mut sums = [0.0f64; 8];
    let (chunks, rest) = x.as_chunks::<8>();
    for chunk in chunks {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *sum += f64::from(*x) * f64::from(*x);
        }
    }
    let rest: f64 = rest.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
    let mean = (sums.iter().sum::<f64>() + rest) / x.len() as f64;
    1.0 / (mean + f64::from(eps)).sqrt()
}

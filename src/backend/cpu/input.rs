//! The input of linears: activations, and their integer form for ternary ones, which is made once for all the matrices
//! that it meets.

use super::codes::Codes;
use super::norm::Normalised;
use super::pool::Pool;
use super::tensor::CpuTensor;
use super::tiles::for_each;
use crate::backend::Norm;
use crate::model::LinearInput;
use std::cell::OnceCell;
use std::sync::Arc;

/// The prepared input of linears; both its forms are made on first use.
#[derive(Debug)]
pub struct CpuInput {
    x: CpuTensor,
    /// What `x` is still to be normalised by.
    norm: Option<(Arc<[f32]>, f32)>,
    kind: LinearInput,
    values: OnceCell<CpuTensor>,
    codes: OnceCell<Codes>,
}

impl CpuInput {
    pub fn new(x: CpuTensor, kind: LinearInput) -> Self {
        Self { x, norm: None, kind, values: OnceCell::new(), codes: OnceCell::new() }
    }

    /// RMSNorm, then quantisation.
    pub fn normalised(x: CpuTensor, norm: &Norm<'_, Arc<[f32]>>, kind: LinearInput) -> Self {
        Self { norm: Some((norm.weight.clone(), norm.eps)), ..Self::new(x, kind) }
    }

    pub fn tokens(&self) -> usize {
        self.x.tokens()
    }

    /// The float values, for dense linears.
    pub fn values(&self, pool: &Pool) -> &CpuTensor {
        let Some((weight, eps)) = &self.norm else { return &self.x };
        self.values.get_or_init(|| {
            let x = &self.x;
            let mut values = CpuTensor::zeros(x.tokens(), x.width());
            for_each(pool, values.rows_mut(), |token, values| {
                Normalised::new(x.row(token), weight, *eps).write(values);
            });
            values
        })
    }

    /// The integer form, for ternary linears. Int8 codes of a norm are rounded from its `f64` values: one within an
    /// `f32` rounding error of a tie thus falls as the exact mathematics has it, which keeps logits the same where
    /// another order of operations would flip a code.
    pub fn codes(&self, pool: &Pool) -> &Codes {
        self.codes.get_or_init(|| {
            let mut codes = Codes::blank(self.x.tokens(), self.x.width(), self.kind);
            match (&self.norm, self.kind) {
                (Some((weight, eps)), LinearInput::Int8) => {
                    let x = &self.x;
                    for_each(pool, codes.tokens_mut(), |token, codes| {
                        codes.fill_normalised(&Normalised::new(x.row(token), weight, *eps));
                    });
                }
                _ => {
                    let values = self.values(pool);
                    for_each(pool, codes.tokens_mut(), |token, codes| codes.fill(values.row(token)));
                }
            }
            codes
        })
    }
}

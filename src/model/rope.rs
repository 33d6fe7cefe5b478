//! Frequencies of rotary position embedding (<https://arxiv.org/abs/2104.09864>) and their scalings.

use super::{ModelConfig, RopeScaling};
use crate::Result;
use crate::backend::RopeAngles;
use crate::error::corrupt;
use std::f32::consts::PI;

/// One inverse frequency for each pair of a head, and what sine and cosine are multiplied with.
#[derive(Debug, Clone, PartialEq)]
pub struct RopeFrequencies {
    inverse: Vec<f32>,
    amplitude: f32,
}

impl RopeFrequencies {
    /// # Errors
    /// `corrupt_file` when theta or a scaling makes no sense.
    pub fn new(config: &ModelConfig) -> Result<Self> {
        let dim = config.head_dim;
        let theta = config.rope.theta;
        if !(theta.is_finite() && theta > 1.0) {
            return Err(corrupt!("the rotary base (rope_theta) is {theta}; it must be a number above 1"));
        }
        // In double precision: libraries differ in the last bit of single-precision powers.
        let power = |i: usize| f64::from(theta).powf(-((2 * i) as f64) / dim as f64) as f32;
        let base: Vec<f32> = (0..dim / 2).map(power).collect();
        let (inverse, amplitude) = match &config.rope.scaling {
            RopeScaling::None => (base, 1.0),
            RopeScaling::Linear { factor } => (base.iter().map(|f| f / factor).collect(), 1.0),
            RopeScaling::Factors { factors } => {
                if factors.len() != base.len() {
                    return Err(corrupt!(
                        "rope_freqs.weight has {} values, a head of {dim} needs {}",
                        factors.len(),
                        base.len()
                    ));
                }
                (base.iter().zip(factors).map(|(f, divisor)| f / divisor).collect(), 1.0)
            }
            RopeScaling::Yarn { factor, original_context, beta_fast, beta_slow, attention_factor } => {
                let ramp = YarnRamp::new(dim, theta, *original_context as f32, *beta_fast, *beta_slow);
                let amplitude =
                    attention_factor.unwrap_or(if *factor > 1.0 { 1.0 + 0.1 * factor.ln() } else { 1.0 });
                (base.iter().enumerate().map(|(i, f)| ramp.blend(i, *f, *factor)).collect(), amplitude)
            }
            RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => {
                let context = *original_context as f32;
                let scale = |f: &f32| {
                    let wavelength = 2.0 * PI / f;
                    if wavelength < context / high_freq_factor {
                        return *f;
                    }
                    if wavelength > context / low_freq_factor {
                        return f / factor;
                    }
                    let smooth =
                        (context / wavelength - low_freq_factor) / (high_freq_factor - low_freq_factor);
                    (1.0 - smooth) * f / factor + smooth * f
                };
                (base.iter().map(scale).collect(), 1.0)
            }
        };
        if inverse.iter().any(|f: &f32| !f.is_finite()) || !amplitude.is_finite() {
            return Err(corrupt!(
                "the rotary scaling {:?} gives frequencies that are not numbers",
                config.rope.scaling
            ));
        }
        Ok(Self { inverse, amplitude })
    }

    /// Pairs of a head.
    pub fn len(&self) -> usize {
        self.inverse.len()
    }

    pub fn is_empty(&self) -> bool {
        self.inverse.is_empty()
    }

    /// Cosine and sine for positions `start..start + count`.
    pub fn angles(&self, start: usize, count: usize) -> RopeAngles {
        let angle =
            (start..start + count).flat_map(|position| self.inverse.iter().map(move |f| position as f32 * f));
        // In double precision: libraries differ in the last bit of single-precision sines.
        let (sin_cos, amplitude) = (|angle: f32| f64::from(angle).sin_cos(), self.amplitude);
        let (cos, sin) = angle
            .map(|angle| {
                let (sin, cos) = sin_cos(angle);
                (cos as f32 * amplitude, sin as f32 * amplitude)
            })
            .unzip();
        RopeAngles { cos, sin }
    }
}

/// YaRN's ramp between dimensions that keep their frequency and those that are interpolated.
struct YarnRamp {
    low: f32,
    high: f32,
}

impl YarnRamp {
    fn new(dim: usize, theta: f32, original_context: f32, beta_fast: f32, beta_slow: f32) -> Self {
        // The dimension at which a pair makes `rotations` turns over the original context.
        let dimension = |rotations: f32| {
            dim as f32 * (original_context / (rotations * 2.0 * PI)).ln() / (2.0 * theta.ln())
        };
        let last = dim as f32 - 1.0;
        let low = dimension(beta_fast).floor().clamp(0.0, last);
        let high = dimension(beta_slow).ceil().clamp(0.0, last);
        // Equal ends would divide by zero.
        Self { low, high: if low == high { high + 0.001 } else { high } }
    }

    fn blend(&self, index: usize, frequency: f32, factor: f32) -> f32 {
        let interpolated = ((index as f32 - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        frequency * (1.0 - interpolated) + frequency / factor * interpolated
    }
}

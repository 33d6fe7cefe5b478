//! Logits → the next token. The order of the steps is that of transformers: repetition penalty,
//! temperature, top-k, top-p, min-p, then one draw.

use crate::float::{exp, maximum};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::HashSet;

/// Checked sampling options; see [`super::GenerationOptions`].
#[derive(Debug, Clone, PartialEq)]
pub struct SamplerOptions {
    pub temperature: f32,
    /// 0 keeps all.
    pub top_k: usize,
    pub top_p: f32,
    pub min_p: f32,
    pub repetition_penalty: f32,
    pub seed: u64,
    /// How many draws of the seed were made before: those of a generation that is continued.
    pub drawn: u64,
}

impl SamplerOptions {
    /// The likeliest token, whatever was said.
    pub fn greedy() -> Self {
        Self {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            seed: 0,
            drawn: 0,
        }
    }
}

/// A seeded sampler. The same seed, options and logits give the same tokens on every platform.
#[derive(Debug, Clone)]
pub struct Sampler {
    options: SamplerOptions,
    draws: UniformDraws,
    /// Tokens that the repetition penalty applies to.
    seen: HashSet<u32>,
    /// Unnormalised probabilities of the vocabulary.
    weights: Vec<f32>,
    candidates: Vec<Candidate>,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    id: u32,
    weight: f32,
}

impl Sampler {
    pub fn new(options: SamplerOptions) -> Self {
        let draws = UniformDraws::new(&options);
        Self { options, draws, seen: HashSet::new(), weights: Vec::new(), candidates: Vec::new() }
    }

    /// Makes `ids` count as said before.
    pub fn observe(&mut self, ids: &[u32]) {
        if self.options.repetition_penalty != 1.0 {
            self.seen.extend(ids);
        }
    }

    /// Chooses a token; `logits` is changed on the way.
    pub fn sample(&mut self, logits: &mut [f32]) -> u32 {
        self.penalise(logits);
        if self.options.temperature == 0.0 {
            return argmax(logits);
        }
        self.weigh(logits);
        let total = self.gather();
        let total = if self.keep_top_k() { self.total() } else { total };
        self.keep_top_p(total);
        self.drop_below_min_p();
        self.draw()
    }

    fn penalise(&self, logits: &mut [f32]) {
        let penalty = self.options.repetition_penalty;
        for id in &self.seen {
            if let Some(logit) = logits.get_mut(*id as usize) {
                *logit = if *logit > 0.0 { *logit / penalty } else { *logit * penalty };
            }
        }
    }

    /// `exp((logit - max) / temperature)` of every token.
    fn weigh(&mut self, logits: &[f32]) {
        let (max, inverse) = (maximum(logits), 1.0 / self.options.temperature);
        let weight = |logit: f32| exp((logit - max) * inverse);
        self.weights.clear();
        self.weights.extend_from_slice(logits);
        let (chunks, rest) = self.weights.as_chunks_mut::<16>();
        chunks.iter_mut().for_each(|chunk| *chunk = chunk.map(weight));
        rest.iter_mut().for_each(|logit| *logit = weight(*logit));
    }

    /// Makes candidates of all tokens that the steps after this one may keep. Returns the weight of all tokens.
    fn gather(&mut self) -> f64 {
        let levels = Levels::of(&self.weights);
        let (SamplerOptions { top_k, top_p, min_p, .. }, total) = (&self.options, levels.total());
        let least = if *top_k > 0 {
            levels.least_of(|count, _| count >= *top_k)
        } else if *top_p < 1.0 {
            levels.least_of(|_, weight| weight >= total * f64::from(*top_p))
        } else {
            // The heaviest weighs 1.
            *min_p
        };
        self.candidates.clear();
        for (id, weight) in (0..).zip(&self.weights) {
            if *weight >= least {
                self.candidates.push(Candidate { id, weight: *weight });
            }
        }
        total
    }

    /// Returns whether there were more.
    fn keep_top_k(&mut self) -> bool {
        let k = self.options.top_k;
        if k == 0 || k >= self.weights.len() {
            return false;
        }
        if k < self.candidates.len() {
            self.candidates.select_nth_unstable_by(k - 1, by_weight);
            self.candidates.truncate(k);
        }
        true
    }

    fn total(&self) -> f64 {
        self.candidates.iter().map(|c| f64::from(c.weight)).sum()
    }

    /// `total` is the weight of the candidates and of the tokens that are too light to be one.
    fn keep_top_p(&mut self, total: f64) {
        if self.options.top_p >= 1.0 {
            return;
        }
        let wanted = total * f64::from(self.options.top_p);
        // The nucleus is usually small: sort a growing prefix instead of the whole vocabulary.
        let mut sorted = 0;
        let mut sum = 0.0;
        let mut size = 64;
        while sorted < self.candidates.len() {
            let end = self.candidates.len().min(sorted + size);
            let rest = &mut self.candidates[sorted..];
            if end - sorted < rest.len() {
                rest.select_nth_unstable_by(end - sorted - 1, by_weight);
            }
            self.candidates[sorted..end].sort_unstable_by(by_weight);
            for index in sorted..end {
                sum += f64::from(self.candidates[index].weight);
                if sum >= wanted {
                    self.candidates.truncate(index + 1);
                    return;
                }
            }
            (sorted, size) = (end, size * 4);
        }
    }

    fn drop_below_min_p(&mut self) {
        if self.options.min_p > 0.0 {
            let max = self.candidates.iter().map(|c| c.weight).fold(0.0, f32::max);
            let least = max * self.options.min_p;
            self.candidates.retain(|candidate| candidate.weight >= least);
        }
    }

    /// The draw goes through the candidates in order of ids, so that it does not depend on how they were
    /// found.
    fn draw(&mut self) -> u32 {
        if !self.candidates.is_sorted_by_key(|candidate| candidate.id) {
            self.candidates.sort_unstable_by_key(|candidate| candidate.id);
        }
        let mut left = self.draws.double() * self.total();
        for candidate in &self.candidates {
            left -= f64::from(candidate.weight);
            if left < 0.0 {
                return candidate.id;
            }
        }
        self.candidates.last().map_or(0, |candidate| candidate.id)
    }
}

/// How many weights, all within 0 to 1, there are at each level of weight, and what they weigh together: what keeps
/// most of a large vocabulary from being sorted. A level is a sixteenth of an octave wide.
struct Levels {
    counts: Vec<usize>,
    weights: Vec<f64>,
}

impl Levels {
    /// Bits of a float below those that tell its level.
    const SHIFT: u32 = 19;

    fn of(weights: &[f32]) -> Self {
        let size = Self::level(1.0) + 1;
        let mut levels = Self { counts: vec![0; size], weights: vec![0.0; size] };
        for weight in weights {
            let level = Self::level(*weight).min(size - 1);
            levels.counts[level] += 1;
            levels.weights[level] += f64::from(*weight);
        }
        levels
    }

    fn level(weight: f32) -> usize {
        (weight.to_bits() >> Self::SHIFT) as usize
    }

    fn total(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// The least weight such that what weighs no less is enough, in numbers or in weight; 0 if all is not.
    fn least_of(&self, is_enough: impl Fn(usize, f64) -> bool) -> f32 {
        let (mut count, mut weight) = (0, 0.0);
        for level in (0..self.counts.len()).rev() {
            count += self.counts[level];
            weight += self.weights[level];
            if is_enough(count, weight) {
                return f32::from_bits((level as u32) << Self::SHIFT);
            }
        }
        0.0
    }
}

/// Uniform numbers in [0, 1), the same on every platform for the same seed; a step of sampling takes one.
#[derive(Debug, Clone)]
pub struct UniformDraws(Pcg64Mcg);

impl UniformDraws {
    /// Those that the options leave.
    pub fn new(options: &SamplerOptions) -> Self {
        let mut generator = Pcg64Mcg::seed_from_u64(options.seed);
        generator.advance(options.drawn.into());
        Self(generator)
    }

    /// The next number.
    pub fn double(&mut self) -> f64 {
        // 53 random bits make a uniform double.
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The next number in single precision, below 1 even after rounding.
    pub fn single(&mut self) -> f32 {
        (self.double() as f32).min(1.0 - f32::EPSILON / 2.0)
    }
}

/// Heaviest first; ties by id, so that the result does not depend on the sort.
fn by_weight(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    b.weight.total_cmp(&a.weight).then(a.id.cmp(&b.id))
}

/// The index of the largest value, the first of equals; 0 where none is a number.
pub fn argmax(values: &[f32]) -> u32 {
    let max = maximum(values);
    values.iter().position(|value| *value == max).unwrap_or(0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> SamplerOptions {
        SamplerOptions {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            seed: 7,
            drawn: 0,
        }
    }

    /// Share of each token among many draws.
    fn shares(options: SamplerOptions, logits: &[f32]) -> Vec<f64> {
        let mut sampler = Sampler::new(options);
        let draws = 40_000;
        let mut counts = vec![0.0; logits.len()];
        for _ in 0..draws {
            counts[sampler.sample(&mut logits.to_vec()) as usize] += 1.0 / f64::from(draws);
        }
        counts
    }

    fn logits_of(probabilities: &[f32]) -> Vec<f32> {
        probabilities.iter().map(|p| p.ln()).collect()
    }

    #[test]
    fn draws_follow_the_softmax() {
        let wanted = [0.5, 0.3, 0.15, 0.05];
        for (share, wanted) in shares(options(), &logits_of(&wanted)).iter().zip(wanted) {
            assert!((share - f64::from(wanted)).abs() < 0.01, "{share} {wanted}");
        }
    }

    #[test]
    fn temperature_zero_is_greedy_and_the_first_of_equals_wins() {
        let mut sampler = Sampler::new(SamplerOptions { temperature: 0.0, ..options() });
        assert_eq!(sampler.sample(&mut [0.0, 3.0, 3.0, 1.0]), 1);
    }

    #[test]
    fn top_k_top_p_and_min_p_cut_the_tail() {
        let logits = logits_of(&[0.05, 0.5, 0.15, 0.3]);
        let kept = |options| shares(options, &logits).iter().map(|s| *s > 0.0).collect::<Vec<_>>();
        assert_eq!(kept(SamplerOptions { top_k: 2, ..options() }), [false, true, false, true]);
        assert_eq!(kept(SamplerOptions { top_p: 0.79, ..options() }), [false, true, false, true]);
        assert_eq!(kept(SamplerOptions { top_p: 0.81, ..options() }), [false, true, true, true]);
        assert_eq!(kept(SamplerOptions { top_p: 0.0, ..options() }), [false, true, false, false]);
        assert_eq!(kept(SamplerOptions { min_p: 0.25, ..options() }), [false, true, true, true]);
    }

    #[test]
    fn cuts_of_a_large_vocabulary_equal_those_of_a_full_sort() {
        let logits: Vec<f32> =
            (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 * 3e-7).collect();
        let cases = [(0, 0.7, 0.0), (0, 0.999, 0.0), (1, 1.0, 0.0), (300, 1.0, 0.0), (300, 0.5, 0.0)];
        for (top_k, top_p, min_p) in
            cases.into_iter().chain([(0, 1.0, 0.3), (2000, 0.9, 0.4), (9999, 1.0, 0.0)])
        {
            let mut sampler = Sampler::new(SamplerOptions { top_k, top_p, min_p, ..options() });
            sampler.weigh(&logits);
            let candidate = |(id, weight): (u32, &f32)| Candidate { id, weight: *weight };
            let mut wanted: Vec<Candidate> = (0..).zip(&sampler.weights).map(candidate).collect();
            wanted.sort_by(by_weight);
            wanted.truncate(if top_k == 0 { usize::MAX } else { top_k });
            let total: f64 = wanted.iter().map(|c| f64::from(c.weight)).sum();
            let mut before = 0.0;
            wanted.retain(|c| {
                let is_kept = before < f64::from(top_p) * total && c.weight >= min_p;
                before += f64::from(c.weight);
                is_kept
            });
            sampler.sample(&mut logits.clone());
            let sorted = |candidates: &[Candidate]| {
                let mut ids: Vec<u32> = candidates.iter().map(|c| c.id).collect();
                ids.sort();
                ids
            };
            assert_eq!(sorted(&sampler.candidates), sorted(&wanted), "{top_k} {top_p} {min_p}");
        }
    }

    #[test]
    fn the_repetition_penalty_weakens_what_was_said() {
        let mut sampler =
            Sampler::new(SamplerOptions { temperature: 0.0, repetition_penalty: 2.0, ..options() });
        sampler.observe(&[1, 9]);
        assert_eq!(sampler.sample(&mut [1.1, 2.0, -5.0]), 0);
    }

    #[test]
    fn a_seed_repeats_and_another_seed_differs() {
        let logits = vec![0.0; 1000];
        let run = |seed| {
            let mut sampler = Sampler::new(SamplerOptions { seed, ..options() });
            (0..20).map(|_| sampler.sample(&mut logits.clone())).collect::<Vec<_>>()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    #[test]
    fn a_continued_sampler_draws_what_the_first_one_would_have_drawn() {
        let logits = vec![0.0; 1000];
        let mut whole = Sampler::new(options());
        let ids: Vec<u32> = (0..20).map(|_| whole.sample(&mut logits.clone())).collect();
        for drawn in [1, 7, 19] {
            let mut rest = Sampler::new(SamplerOptions { drawn: drawn as u64, ..options() });
            assert_eq!(rest.sample(&mut logits.clone()), ids[drawn]);
        }
    }

    #[test]
    fn logits_that_are_not_numbers_do_not_panic() {
        let mut sampler = Sampler::new(SamplerOptions { top_p: 0.9, top_k: 3, ..options() });
        sampler.sample(&mut [f32::NAN, f32::INFINITY, 1.0, f32::NEG_INFINITY]);
        sampler.sample(&mut [f32::NAN; 4]);
    }
}

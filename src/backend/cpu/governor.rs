//! How many threads take part in a step. Where other programs keep the processors busy, a thread that is suspended
//! within a part of a job holds up all others, and several threads may get less done than few do. What the
//! operating system gives to whom cannot be asked for in a browser, so it is tried: while the calling thread loses
//! time to others that do not end, steps with fewer threads are measured beside those with more. On a quiet
//! machine no time is lost, and nothing is tried.

use web_time::{Duration, Instant};

/// A measurement takes at least so much computing, many turns of a scheduler.
const WINDOW: Duration = Duration::from_millis(500);
/// What a scheduler takes to spread threads anew, while nothing is measured.
const SETTLING: Duration = Duration::from_millis(200);
/// Of a window, the share lost that makes fewer threads worth a trial.
const LOST_SHARE: f64 = 0.02;
/// Time from a trial of fewer threads that failed to the next one; doubled each time in a row. A trial may cost
/// half of the speed.
const FEWER_AFTER: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(16));
/// The same for more threads, whose trial costs little.
const MORE_AFTER: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(8));
/// What is tried has to take less than this share of the time, or chance would change the number of threads.
const BETTER: f64 = 0.97;

/// Chooses the number of threads by the times of steps.
#[derive(Debug)]
pub struct Governor {
    threads: usize,
    active: usize,
    /// When `active` changed.
    changed: Option<Instant>,
    begun: Option<Instant>,
    window: Window,
    trial: Option<Trial>,
    fewer: Retry,
    more: Retry,
}

/// Steps with one number of threads, one after the other.
#[derive(Debug, Default)]
struct Window {
    /// Of a step: steps of as many tokens take about as long.
    tokens: usize,
    steps: u32,
    time: Duration,
    lost: Duration,
}

/// What is compared with the window that is open.
#[derive(Debug)]
struct Trial {
    active_before: usize,
    tokens: usize,
    step_before: f64,
}

/// When something that failed may be tried again.
#[derive(Debug)]
struct Retry {
    bounds: (Duration, Duration),
    pause: Duration,
    not_before: Option<Instant>,
}

impl Governor {
    pub fn new(threads: usize) -> Self {
        Self {
            threads,
            active: threads,
            changed: None,
            begun: None,
            window: Window::default(),
            trial: None,
            fewer: Retry::new(FEWER_AFTER),
            more: Retry::new(MORE_AFTER),
        }
    }

    /// A step begins.
    pub fn begin(&mut self, now: Instant) {
        self.begun = Some(now);
    }

    /// The step that was last begun ends, one of `tokens` tokens; the caller slept for `lost` of its time, waiting
    /// for parts that other threads had taken. Returns how many threads are to take part from now on.
    pub fn end(&mut self, tokens: usize, now: Instant, lost: Duration) -> usize {
        let Some(start) = self.begun.take() else { return self.active };
        if let Some(trial) = self.trial.take_if(|trial| trial.tokens != tokens) {
            // There is nothing to compare with.
            self.use_threads(trial.active_before, now);
        }
        let time = now - start;
        let has_settled = self.changed.is_none_or(|changed| start - changed >= SETTLING);
        // In a long step what it begins with matters little.
        if has_settled || time >= 4 * SETTLING {
            self.window.add(tokens, time, lost);
        }
        if self.window.time >= WINDOW {
            let window = std::mem::take(&mut self.window);
            match self.trial.take() {
                Some(trial) => self.judge(&trial, &window, now),
                None => self.consider(&window, now),
            }
        }
        self.active
    }

    fn use_threads(&mut self, active: usize, now: Instant) {
        self.active = active;
        self.changed = Some(now);
        self.window = Window::default();
    }

    fn consider(&mut self, window: &Window, now: Instant) {
        let is_held_up = window.lost.as_secs_f64() > LOST_SHARE * window.time.as_secs_f64();
        let (less, more) = (self.active.div_ceil(4), self.active.div_ceil(3));
        let other = if is_held_up && self.active > 1 && self.fewer.is_due(now) {
            self.active - less
        } else if self.active < self.threads && self.more.is_due(now) {
            self.threads.min(self.active + more)
        } else {
            return;
        };
        self.trial = Some(Trial {
            active_before: self.active,
            tokens: window.tokens,
            step_before: window.step_seconds(),
        });
        self.use_threads(other, now);
    }

    fn judge(&mut self, trial: &Trial, window: &Window, now: Instant) {
        let (tried, opposite) = if self.active < trial.active_before {
            (&mut self.fewer, &mut self.more)
        } else {
            (&mut self.more, &mut self.fewer)
        };
        if window.step_seconds() < BETTER * trial.step_before {
            tried.succeed();
            opposite.begin(now);
        } else {
            tried.fail(now);
            self.use_threads(trial.active_before, now);
        }
    }
}

impl Window {
    fn add(&mut self, tokens: usize, time: Duration, lost: Duration) {
        if self.tokens != tokens {
            *self = Self { tokens, ..Self::default() };
        }
        self.steps += 1;
        self.time += time;
        self.lost += lost;
    }

    fn step_seconds(&self) -> f64 {
        self.time.as_secs_f64() / f64::from(self.steps)
    }
}

impl Retry {
    fn new(bounds: (Duration, Duration)) -> Self {
        Self { bounds, pause: bounds.0, not_before: None }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|not_before| now >= not_before)
    }

    fn succeed(&mut self) {
        (self.pause, self.not_before) = (self.bounds.0, None);
    }

    fn fail(&mut self, now: Instant) {
        self.not_before = Some(now + self.pause);
        self.pause = self.bounds.1.min(2 * self.pause);
    }

    /// As if it had just failed for the first time.
    fn begin(&mut self, now: Instant) {
        self.succeed();
        self.fail(now);
    }
}

#[cfg(test)]
#[path = "governor_tests.rs"]
mod tests;

//! The governor on machines that are made up: what a step takes there, by the number of threads.

use super::*;

/// A step's time and what of it is lost, in milliseconds, by the number of threads.
type Machine = fn(usize) -> (u64, u64);

/// Nothing else runs.
const QUIET: Machine = |threads| (80 / threads as u64, 0);
/// Other programs run, and several threads get as much of the machine as one does: the more, the worse.
const SHARED: Machine = |threads| if threads == 1 { (80, 0) } else { (80 + 8 * threads as u64, 10) };
/// Other programs run, and threads are held up, but several get more than one.
const CROWDED: Machine = |threads| if threads == 1 { (120, 0) } else { (80, 8) };
/// Two of eight processors belong to others.
const SIX_LEFT: Machine = |threads| if threads <= 6 { (240 / threads as u64, 0) } else { (60, 10) };

struct Run {
    governor: Governor,
    now: Instant,
    active: usize,
}

impl Run {
    fn new(threads: usize) -> Self {
        Self { governor: Governor::new(threads), now: Instant::now(), active: threads }
    }

    fn step(&mut self, tokens: usize, machine: Machine) {
        let (time, lost) = machine(self.active);
        self.governor.begin(self.now);
        self.now += Duration::from_millis(time);
        self.active = self.governor.end(tokens, self.now, Duration::from_millis(lost));
    }

    /// Decodes for some seconds; returns which share of them `threads` threads took part.
    fn share_with(&mut self, threads: usize, machine: Machine, seconds: u64) -> f64 {
        let (begin, mut with) = (self.now, Duration::ZERO);
        while self.now < begin + Duration::from_secs(seconds) {
            let (start, active) = (self.now, self.active);
            self.step(1, machine);
            if active == threads {
                with += self.now - start;
            }
        }
        with.as_secs_f64() / (self.now - begin).as_secs_f64()
    }
}

#[test]
fn on_a_quiet_machine_nothing_is_tried() {
    for threads in [1, 2, 8] {
        assert_eq!(Run::new(threads).share_with(threads, QUIET, 60), 1.0);
    }
}

#[test]
fn threads_that_only_hold_up_others_rest() {
    let mut run = Run::new(2);
    run.share_with(1, SHARED, 3);
    assert!(run.share_with(1, SHARED, 60) > 0.85);
}

#[test]
fn threads_that_help_stay() {
    assert!(Run::new(2).share_with(2, CROWDED, 60) > 0.9);
}

#[test]
fn as_many_threads_work_as_there_are_processors_left() {
    let mut run = Run::new(8);
    run.share_with(6, SIX_LEFT, 10);
    assert!(run.share_with(6, SIX_LEFT, 60) > 0.85);
}

#[test]
fn when_the_others_are_gone_all_threads_work_again() {
    for threads in [2, 3, 8] {
        let mut run = Run::new(threads);
        run.share_with(1, SHARED, 60);
        assert!(run.active < threads);
        run.share_with(threads, QUIET, 20);
        assert_eq!(run.share_with(threads, QUIET, 60), 1.0, "{threads} threads");
    }
}

#[test]
fn steps_of_different_kinds_are_not_compared() {
    let mut run = Run::new(2);
    while run.active == 2 {
        run.step(1, SHARED);
    }
    run.step(48, |_| (2000, 0));
    assert_eq!(run.active, 2);
}

#[test]
fn a_long_step_is_a_measurement() {
    let mut run = Run::new(2);
    let prompt: Machine = |threads| if threads == 1 { (1300, 0) } else { (1500, 100) };
    run.step(48, prompt);
    assert_eq!(run.active, 1);
    run.step(48, prompt);
    assert!(run.active == 1 && run.governor.trial.is_none());
}

#[test]
fn a_step_that_failed_is_forgotten() {
    let mut run = Run::new(2);
    run.governor.begin(run.now);
    run.now += Duration::from_secs(9);
    run.step(1, QUIET);
    assert_eq!(run.governor.window.time, Duration::from_millis(40));
}

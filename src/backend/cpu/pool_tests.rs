//! Stress tests of the pool: what goes wrong here would be a hang or a race in a browser.

use super::*;
use std::sync::Barrier;
use std::sync::atomic::AtomicU8;

/// Runs a job and checks that each part was done once.
fn check_job(pool: &Pool, parts: usize) {
    let counts: Vec<AtomicU8> = (0..parts).map(|_| AtomicU8::new(0)).collect();
    pool.run(parts, &|part| {
        counts[part].fetch_add(1, Relaxed);
    });
    assert!(counts.iter().all(|count| count.load(Relaxed) == 1), "{parts} parts");
}

#[test]
fn every_part_of_many_tiny_jobs_is_done_once() {
    for threads in [1, 2, 3, 16] {
        let pool = Pool::new(threads);
        for job in 0..20_000 {
            check_job(&pool, job % 41);
        }
    }
}

#[test]
fn a_job_may_have_very_many_parts() {
    check_job(&Pool::new(5), MAX_PARTS);
}

#[test]
fn jobs_reach_threads_that_sleep() {
    let pool = Pool::new(3);
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(5));
        check_job(&pool, 7);
    }
}

#[test]
fn other_threads_do_take_part() {
    let pool = Pool::new(2);
    let ids = Mutex::new(std::collections::HashSet::new());
    pool.run(50, &|_| {
        ids.lock().unwrap().insert(std::thread::current().id());
        std::thread::sleep(Duration::from_millis(2));
    });
    assert_eq!(ids.into_inner().unwrap().len(), 2);
}

#[test]
fn threads_that_do_not_take_part_come_back() {
    let pool = Pool::new(4);
    for active in [1, 4, 2, 3, 0, 9, 1] {
        pool.set_active(active);
        assert_eq!(pool.active(), active.clamp(1, 4));
        for job in 0..500 {
            check_job(&pool, job % 41);
        }
        // Passed only when each part has a thread of its own.
        let meeting = Barrier::new(pool.active());
        pool.run(pool.active(), &|_| {
            meeting.wait();
        });
    }
    let caller = std::thread::current().id();
    pool.run(50, &|_| assert_eq!(std::thread::current().id(), caller));
}

#[test]
fn time_that_the_caller_sleeps_is_told_once() {
    let pool = Pool::new(2);
    assert_eq!(pool.take_slept(), Duration::ZERO);
    let (caller, meeting) = (std::thread::current().id(), Barrier::new(2));
    pool.run(2, &|_| {
        meeting.wait();
        while std::thread::current().id() != caller && !pool.shared.caller_sleeps.load(SeqCst) {
            std::thread::yield_now();
        }
    });
    assert!(pool.take_slept() > Duration::ZERO);
    assert_eq!(pool.take_slept(), Duration::ZERO);
}

#[test]
fn a_caller_that_has_nothing_left_sleeps_until_the_last_part_is_done() {
    let pool = Pool::new(2);
    for _ in 0..5 {
        let done = AtomicUsize::new(0);
        pool.run(2, &|_| {
            std::thread::sleep(Duration::from_millis(if done.load(SeqCst) == 0 { 20 } else { 1 }));
            done.fetch_add(1, SeqCst);
        });
        assert_eq!(done.load(SeqCst), 2);
    }
}

#[test]
fn pools_are_dropped_at_any_moment() {
    for round in 0..200 {
        let pool = Pool::new(1 + round % 6);
        for job in 0..round % 4 {
            check_job(&pool, 3 * job);
        }
        if round % 50 == 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn jobs_within_jobs_run_in_their_thread() {
    let pool = Pool::new(4);
    let count = AtomicUsize::new(0);
    pool.run(30, &|_| {
        pool.run(10, &|_| {
            count.fetch_add(1, Relaxed);
        })
    });
    assert_eq!(count.load(Relaxed), 300);
}

#[test]
fn two_threads_may_share_a_pool() {
    let pool = Pool::new(3);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..2000).for_each(|job| check_job(&pool, job % 9)));
        }
    });
}

#[test]
fn a_panic_reaches_the_caller_after_all_parts_and_the_pool_stays_usable() {
    let pool = Pool::new(3);
    for bad in [0, 5, 19] {
        let done = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.run(20, &|part| {
                assert!(part != bad, "part {part} fails");
                done.fetch_add(1, Relaxed);
            })
        }));
        let message = *result.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(message, format!("part {bad} fails"));
        assert_eq!(done.load(Relaxed), 19);
        check_job(&pool, 20);
    }
}

#[test]
fn a_seat_survives_being_a_number() {
    let pool = Pool::new(2);
    let raw = pool.seat().into_raw();
    // SAFETY: just made, and claimed once.
    let seat = unsafe { Seat::from_raw(raw) };
    let thread = std::thread::spawn(move || seat.serve());
    check_job(&pool, 100);
    drop(pool);
    thread.join().unwrap();
}

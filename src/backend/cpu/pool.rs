//! A pool of threads for jobs of microseconds: no message and no allocation a job, and no thread that has
//! to run before the job can end.
//!
//! A job is a number of parts. Its whole state is one word, `(epoch, next part, parts)`, and a thread
//! takes a part by adding one to `next part`. What a thread claims from that word below `parts` belongs
//! to a job that is still open, because [`Pool::run`] does not return before every part is finished; so
//! a thread that comes late can never touch a job that is over. The caller takes parts too: threads
//! that sleep, or have no core to run on, cost nothing but their share of the work.
//!
//! The same code runs natively, on [`std::thread`], and in WebAssembly with shared memory, where
//! JavaScript starts the threads with [`Seat::serve`] in workers of their own.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use web_time::{Duration, Instant};

/// Most parts of a job.
pub const MAX_PARTS: usize = 1 << 15;
/// Most threads of a pool, the caller's among them.
pub const MAX_THREADS: usize = 256;

/// How often a thread looks for work, or the caller for the end of its job, before it sleeps: some tens
/// of microseconds, longer than what lies between two jobs of a forward pass. (Natively a look includes
/// a pause instruction, which WebAssembly does not have.)
const SPINS: u32 = if cfg!(target_arch = "wasm32") { 20_000 } else { 2_000 };

/// One part of a job.
type Task = dyn Fn(usize) + Sync;

/// Threads that do jobs together with the thread that calls [`Pool::run`].
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    threads: usize,
    #[cfg(not(target_arch = "wasm32"))]
    handles: Vec<std::thread::JoinHandle<()>>,
}

/// A thread's place in a pool.
#[derive(Debug)]
pub struct Seat(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// A [`Job`].
    job: AtomicU64,
    /// What a part of the open job is; only valid while one is open.
    task: UnsafeCell<Option<*const Task>>,
    finished: AtomicUsize,
    /// A job is running, in whatever thread.
    busy: AtomicBool,
    /// A thread trapped in a job, which therefore never ends.
    broken: AtomicBool,
    sleepers: AtomicU32,
    caller_sleeps: AtomicBool,
    /// Nanoseconds that callers slept.
    slept: AtomicU64,
    /// Threads that serve the pool or did.
    seated: AtomicUsize,
    /// Threads that take part, the caller's among them.
    active: AtomicUsize,
    gate: Mutex<()>,
    work: Condvar,
    done: Condvar,
    /// More threads take part, or the pool closes.
    recall: Condvar,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `task` is written only by the thread that holds `busy`, while no job is open, and read only by
// threads that claimed a part of an open job; claim and publication of the job's word order the two. What
// it points to is `Sync`, and outlives the job because `run` waits for its end.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// The word that is a job: an epoch, the next part to take, and the number of parts. A job without parts
/// closes the pool.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Job(u64);

impl Job {
    const NEXT: u64 = 1 << 16;

    /// The job after `self`.
    fn successor(self, parts: usize) -> Self {
        Self(u64::from(self.epoch().wrapping_add(1)) << 32 | parts as u64)
    }

    fn epoch(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn next(self) -> usize {
        (self.0 >> 16) as usize & 0xffff
    }

    fn parts(self) -> usize {
        self.0 as usize & 0xffff
    }
}

impl Pool {
    /// A pool of `threads` threads, the caller's among them; at least 1, at most [`MAX_THREADS`]. In
    /// WebAssembly the others have to be given a [`Seat`]; until then the caller does all the work.
    pub fn new(threads: usize) -> Self {
        let threads = threads.clamp(1, MAX_THREADS);
        let shared = Arc::new(Shared {
            job: AtomicU64::new(0),
            task: UnsafeCell::new(None),
            finished: AtomicUsize::new(0),
            busy: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            sleepers: AtomicU32::new(0),
            caller_sleeps: AtomicBool::new(false),
            slept: AtomicU64::new(0),
            seated: AtomicUsize::new(1),
            active: AtomicUsize::new(threads),
            gate: Mutex::new(()),
            work: Condvar::new(),
            done: Condvar::new(),
            recall: Condvar::new(),
            panic: Mutex::new(None),
        });
        Self {
            threads,
            #[cfg(not(target_arch = "wasm32"))]
            handles: (1..threads)
                .map(|_| Seat(shared.clone()))
                .map(|seat| std::thread::spawn(move || seat.serve()))
                .collect(),
            shared,
        }
    }

    pub fn threads(&self) -> usize {
        self.threads
    }

    /// How many threads take part in jobs.
    pub fn active(&self) -> usize {
        self.shared.active.load(Relaxed)
    }

    /// Lets `active` of the threads take part in jobs from now on; the caller's always does.
    pub fn set_active(&self, active: usize) {
        let active = active.clamp(1, self.threads);
        if self.shared.active.swap(active, SeqCst) < active {
            self.shared.wake(&self.shared.recall);
        }
    }

    /// How long callers slept since this was last asked, waiting for parts that other threads had taken.
    pub fn take_slept(&self) -> Duration {
        Duration::from_nanos(self.shared.slept.swap(0, Relaxed))
    }

    /// A place for one more thread.
    pub fn seat(&self) -> Seat {
        Seat(self.shared.clone())
    }

    /// Runs `task` for every part below `parts`, each exactly once, in any order and in any thread, and
    /// returns when all are done. Within a task, or while another thread runs a job, all parts run in the
    /// calling thread.
    ///
    /// # Panics
    /// With what a task panicked with, after all parts are done; when a thread was lost; for more than
    /// [`MAX_PARTS`] parts.
    pub fn run(&self, parts: usize, task: &(dyn Fn(usize) + Sync)) {
        assert!(parts <= MAX_PARTS, "a job has at most {MAX_PARTS} parts");
        let alone = parts < 2 || self.active() == 1;
        if alone || self.shared.busy.swap(true, Acquire) {
            (0..parts).for_each(task);
            return;
        }
        self.shared.publish(parts, task);
        self.shared.take_parts();
        self.shared.wait_for(parts);
        let panic = lock(&self.shared.panic).take();
        self.shared.busy.store(false, Release);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.announce(0);
        self.shared.wake(&self.shared.recall);
        #[cfg(not(target_arch = "wasm32"))]
        for handle in self.handles.drain(..) {
            // Tasks' panics are caught: a thread can only end in order.
            let _ = handle.join();
        }
    }
}

impl Seat {
    /// Works for the pool until it is dropped.
    pub fn serve(self) {
        let place = self.0.seated.fetch_add(1, Relaxed);
        let mut seen = 0;
        let mut spins = SPINS;
        while let Some(job) = self.0.next_job(seen, spins) {
            seen = job.epoch();
            if place >= self.0.active.load(SeqCst) {
                self.0.wait_for_recall(place);
                continue;
            }
            let parts = self.0.take_parts();
            // A thread that finds nothing left competes with those that work: it looks less long.
            spins = if parts > 0 { SPINS } else { spins / 2 };
        }
    }

    /// Tells the pool that the thread in this place trapped, so that the caller traps too instead of
    /// waiting for ever. (Natively a task's panic is caught, and no thread is lost.)
    #[cfg(target_arch = "wasm32")]
    pub fn abandon(self) {
        self.0.broken.store(true, SeqCst);
        self.0.wake(&self.0.done);
    }

    /// The place as a number, for another thread to claim with [`Self::from_raw`].
    pub fn into_raw(self) -> usize {
        Arc::into_raw(self.0).expose_provenance()
    }

    /// # Safety
    /// `raw` comes from [`Self::into_raw`], and is claimed once.
    pub unsafe fn from_raw(raw: usize) -> Self {
        // SAFETY: the caller vouches that this is the pointer that `into_raw` gave away.
        Self(unsafe { Arc::from_raw(std::ptr::with_exposed_provenance(raw)) })
    }
}

impl Shared {
    fn publish(&self, parts: usize, task: &(dyn Fn(usize) + Sync)) {
        // SAFETY: only the lifetime changes, and no thread uses the task after its job, which ends before
        // the borrow that `run` was given.
        let task: *const Task =
            unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static Task>(task) };
        // SAFETY: this thread holds `busy` and no job is open, so nobody else looks at the task.
        unsafe { *self.task.get() = Some(task) };
        self.finished.store(0, Relaxed);
        self.announce(parts);
    }

    /// Stores the next job and wakes who sleeps. Stores and loads of `job` and `sleepers` are sequentially
    /// consistent: either this thread sees the sleeper, or the sleeper sees the job.
    fn announce(&self, parts: usize) {
        let next = Job(self.job.load(Relaxed)).successor(parts);
        self.job.store(next.0, SeqCst);
        if self.sleepers.load(SeqCst) > 0 {
            self.wake(&self.work);
        }
    }

    /// Wakes all who wait for something that has become true.
    fn wake(&self, waiting: &Condvar) {
        // Who found it untrue a moment ago waits by now: the gate was closed in between.
        let _gate = lock(&self.gate);
        waiting.notify_all();
    }

    /// Takes and does parts until none is left; returns how many it did.
    fn take_parts(&self) -> usize {
        let mut taken = 0;
        loop {
            let job = Job(self.job.load(Relaxed));
            if job.next() >= job.parts() {
                return taken;
            }
            let job = Job(self.job.fetch_add(Job::NEXT, SeqCst));
            if job.next() >= job.parts() {
                return taken;
            }
            taken += 1;
            self.do_part(job);
        }
    }

    fn do_part(&self, job: Job) {
        // SAFETY: a part of `job` was claimed and is not finished, so the job is open: its task was
        // written before its word, which the claim read, and stays until `run` has seen this part's end.
        let task = unsafe { &*(*self.task.get()).expect("an open job has a task") };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| task(job.next()))) {
            lock(&self.panic).get_or_insert(panic);
        }
        let is_last = self.finished.fetch_add(1, SeqCst) + 1 == job.parts();
        if is_last && self.caller_sleeps.load(SeqCst) {
            self.wake(&self.done);
        }
    }

    /// Waits until other threads have finished the parts that they took.
    fn wait_for(&self, parts: usize) {
        let is_over = || self.finished.load(SeqCst) == parts || self.broken.load(SeqCst);
        for _ in 0..SPINS {
            if is_over() {
                break;
            }
            std::hint::spin_loop();
        }
        if !is_over() {
            let mut gate = lock(&self.gate);
            let start = Instant::now();
            self.caller_sleeps.store(true, SeqCst);
            while !is_over() {
                gate = self.done.wait(gate).unwrap_or_else(PoisonError::into_inner);
            }
            self.caller_sleeps.store(false, SeqCst);
            self.slept.fetch_add(start.elapsed().as_nanos() as u64, Relaxed);
        }
        assert!(!self.broken.load(SeqCst), "a thread of the pool was lost");
    }

    /// Waits until the thread in a place takes part again, or the pool closes.
    fn wait_for_recall(&self, place: usize) {
        let is_away = || place >= self.active.load(SeqCst) && Job(self.job.load(SeqCst)).parts() > 0;
        let mut gate = lock(&self.gate);
        while is_away() {
            gate = self.recall.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The first job after epoch `seen`, or `None` when the pool closes.
    fn next_job(&self, seen: u32, spins: u32) -> Option<Job> {
        let news = || Some(Job(self.job.load(SeqCst))).filter(|job| job.epoch() != seen);
        let open = |job: Job| Some(job).filter(|job| job.parts() > 0);
        for _ in 0..spins {
            if let Some(job) = news() {
                return open(job);
            }
            std::hint::spin_loop();
        }
        let mut gate = lock(&self.gate);
        self.sleepers.fetch_add(1, SeqCst);
        let job = loop {
            if let Some(job) = news() {
                break job;
            }
            gate = self.work.wait(gate).unwrap_or_else(PoisonError::into_inner);
        };
        self.sleepers.fetch_sub(1, SeqCst);
        open(job)
    }
}

/// Locks what a panic cannot leave half done.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "pool_tests.rs"]
mod tests;

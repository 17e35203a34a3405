//! The worker threads of one connection.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::peer::lock;

/// Idle threads that are kept for the next job.
const MAX_IDLE_WORKERS: usize = 8;

/// Runs jobs on threads that are started on demand. There are as many threads as jobs at most, and every accepted job gets one,
/// so jobs may wait for one another.
pub(super) struct WorkerPool<J: Send + 'static, A: 'static> {
    shared: Arc<PoolShared<J, A>>,
    max_jobs: usize,
}

struct PoolShared<J, A> {
    /// Must not panic.
    run: fn(J) -> A,
    /// Sends what a job has returned. The job no longer counts then, because the client may send the next one at once.
    send: fn(A),
    state: Mutex<PoolState<J>>,
    /// A job was queued, or the pool was closed.
    job_ready: Condvar,
    /// The last job has finished and its answer was sent.
    all_finished: Condvar,
}

struct PoolState<J> {
    queue: VecDeque<J>,
    /// Jobs that are queued or running.
    unfinished: usize,
    /// Answers that are being sent.
    sending: usize,
    /// Workers that wait for a job.
    idle: usize,
    /// All workers.
    threads: usize,
    closed: bool,
}

impl<J> PoolState<J> {
    fn is_finished(&self) -> bool {
        self.unfinished == 0 && self.sending == 0
    }
}

impl<J: Send + 'static, A: 'static> WorkerPool<J, A> {
    /// A pool that accepts up to `max_jobs` at once, runs each with `run` and passes its answer to `send`.
    pub(super) fn new(max_jobs: usize, run: fn(J) -> A, send: fn(A)) -> Self {
        let state = PoolState {
            queue: VecDeque::new(),
            unfinished: 0,
            sending: 0,
            idle: 0,
            threads: 0,
            closed: false,
        };
        let (job_ready, all_finished) = (Condvar::new(), Condvar::new());
        Self {
            shared: Arc::new(PoolShared { run, send, state: Mutex::new(state), job_ready, all_finished }),
            max_jobs,
        }
    }

    /// Runs `job` on a worker. Gives it back if there are too many, or if no thread can be started.
    pub(super) fn submit(&self, job: J) -> Result<(), J> {
        let mut state = lock(&self.shared.state);
        if state.unfinished >= self.max_jobs {
            return Err(job);
        }
        state.queue.push_back(job);
        if state.idle < state.queue.len() && state.threads < self.max_jobs {
            let shared = Arc::clone(&self.shared);
            let started =
                std::thread::Builder::new().name("mcp-worker".to_owned()).spawn(move || shared.work());
            match started {
                Ok(_) => state.threads += 1,
                Err(_) => {
                    if let Some(job) = state.queue.pop_back() {
                        return Err(job);
                    }
                }
            }
        }
        state.unfinished += 1;
        self.shared.job_ready.notify_one();
        Ok(())
    }

    /// Waits until all jobs have finished and their answers were sent, at most for `timeout`. Returns whether they have.
    pub(super) fn wait_finished(&self, timeout: Duration) -> bool {
        let state = lock(&self.shared.state);
        let unfinished = |state: &mut PoolState<J>| !state.is_finished();
        let waited = self.shared.all_finished.wait_timeout_while(state, timeout, unfinished);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_finished()
    }
}

impl<J: Send + 'static, A: 'static> Drop for WorkerPool<J, A> {
    fn drop(&mut self) {
        lock(&self.shared.state).closed = true;
        self.shared.job_ready.notify_all();
    }
}

impl<J, A> PoolShared<J, A> {
    fn work(&self) {
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.queue.pop_front() {
                drop(state);
                let answer = (self.run)(job);
                state = lock(&self.state);
                state.unfinished -= 1;
                state.sending += 1;
                drop(state);
                (self.send)(answer);
                state = lock(&self.state);
                state.sending -= 1;
                if state.is_finished() {
                    self.all_finished.notify_all();
                }
            } else if state.closed || state.idle >= MAX_IDLE_WORKERS {
                state.threads -= 1;
                return;
            } else {
                state.idle += 1;
                state = self.job_ready.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    const LONG_TIMEOUT: Duration = Duration::from_mins(1);

    type TestJob = Box<dyn FnOnce() + Send>;

    fn pool() -> WorkerPool<TestJob, ()> {
        WorkerPool::new(100, |job| job(), |()| {})
    }

    type TestAnswer = Box<dyn FnOnce() + Send>;
    type AnswerPool = Arc<WorkerPool<TestAnswer, TestAnswer>>;

    /// Submits a job whose answer submits the next one, as a client does that keeps a number of requests in flight.
    fn submit_next(pool: &AnswerPool, left: usize, done: Sender<usize>) {
        let again = Arc::clone(pool);
        let answer = move || {
            if left == 0 {
                done.send(lock(&again.shared.state).threads).unwrap();
            } else {
                submit_next(&again, left - 1, done);
            }
        };
        assert!(pool.submit(Box::new(answer)).is_ok(), "{left} are left");
    }

    #[test]
    fn a_job_no_longer_counts_when_its_answer_is_sent() {
        let pool: AnswerPool = Arc::new(WorkerPool::new(2, |answer| answer, |answer| answer()));
        let (done, finished) = channel();
        for _ in 0..2 {
            submit_next(&pool, 1_000, done.clone());
        }
        drop(done);
        let threads: Vec<usize> = finished.iter().collect();
        assert!(threads.len() == 2 && threads.iter().all(|threads| *threads <= 2), "{threads:?}");
    }

    #[test]
    fn jobs_that_wait_for_one_another_all_run() {
        let pool = pool();
        let (send, receive) = channel();
        let barrier = Arc::new(std::sync::Barrier::new(101));
        for number in 0..100 {
            let (send, barrier) = (send.clone(), Arc::clone(&barrier));
            let job = move || {
                barrier.wait();
                send.send(number).unwrap();
            };
            assert!(pool.submit(Box::new(job)).is_ok());
        }
        assert!(pool.submit(Box::new(|| {})).is_err(), "one too many");
        barrier.wait();
        assert!(pool.wait_finished(LONG_TIMEOUT));
        let mut finished: Vec<i32> = receive.try_iter().collect();
        finished.sort_unstable();
        assert_eq!(finished, (0..100).collect::<Vec<_>>());
        assert!(lock(&pool.shared.state).idle <= MAX_IDLE_WORKERS);
    }

    #[test]
    fn waiting_for_a_job_ends_with_the_timeout() {
        let pool = pool();
        let (release, wait) = channel::<()>();
        assert!(pool.submit(Box::new(move || assert!(wait.recv().is_err()))).is_ok());
        assert!(!pool.wait_finished(Duration::from_millis(5)));
        drop(release);
        assert!(pool.wait_finished(LONG_TIMEOUT));
    }
}

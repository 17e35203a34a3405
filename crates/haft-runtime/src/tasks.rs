//! Tasks in the ledger, and the news of their ends.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use haft_sandbox::{OnTaskEnd, TaskBook, TaskEnd, TaskPage};
use haft_tool::Record;
use haft_tool::{ErrorKind, Exit, Receipt, State, TaskInfo, ToolError, lock};
use tokio::sync::Notify;

use crate::Runtime;
use crate::steps::record::{Page, with_gap};

/// How many ends are remembered for somebody who has not asked yet.
const MOST_NEWS: usize = 256;

/// The ends that nobody has heard of yet.
#[derive(Default)]
pub(crate) struct News {
    ended: Mutex<VecDeque<TaskInfo>>,
    more: Notify,
}

impl News {
    /// What tells of an end.
    pub(crate) fn teller(self: &Arc<Self>) -> OnTaskEnd {
        let news = Arc::clone(self);
        Arc::new(move |info| {
            let mut ended = lock(&news.ended);
            if ended.len() == MOST_NEWS {
                ended.pop_front();
            }
            ended.push_back(info);
            drop(ended);
            news.more.notify_one();
        })
    }

    async fn next(&self) -> TaskInfo {
        loop {
            let next = lock(&self.ended).pop_front();
            match next {
                Some(info) => return info,
                None => self.more.notified().await,
            }
        }
    }
}

impl Runtime {
    /// Waits until a task has ended, and tells which. Each end is told once, also if it came before this was asked.
    pub async fn task_ended(&self) -> TaskInfo {
        self.inner.news.next().await
    }

    /// The session's tasks, the oldest first.
    pub fn tasks(&self) -> Vec<TaskInfo> {
        self.inner.ground.tasks.list()
    }
}

impl TaskBook for Page {
    fn open_task(&self) -> Result<Arc<dyn TaskPage>, ToolError> {
        let (page, receipt) = self.for_task()?;
        Ok(Arc::new(Open { page: Arc::new(page), receipt, start: Instant::now() }))
    }
}

/// The page of a task that runs.
struct Open {
    page: Arc<Page>,
    receipt: i64,
    start: Instant,
}

impl TaskPage for Open {
    fn receipt(&self) -> i64 {
        self.receipt
    }

    fn journal(&self) -> Arc<dyn Record> {
        Arc::<Page>::clone(&self.page)
    }

    fn finish(&self, ended: &TaskEnd<'_>) -> Result<(), ToolError> {
        let (state, failure) = outcome(ended);
        let end = |receipt: &mut Receipt| {
            receipt.state = state;
            (receipt.error_kind, receipt.error) = failure.unzip();
            receipt.duration_us = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        };
        let output = ended.output.as_ref().map(with_gap);
        self.page.finish(end, output.as_deref(), false).map(drop)
    }
}

/// How a task's receipt says that it ended.
fn outcome(ended: &TaskEnd<'_>) -> (State, Option<(ErrorKind, String)>) {
    let failed = |kind, words: String| (State::Failed, Some((kind, words)));
    let exit = match (ended.finished, ended.error) {
        (_, Some(error)) => return failed(error.kind, error.message.clone()),
        (None, None) => return failed(ErrorKind::Internal, "it is not known how it ended".to_owned()),
        (Some(finished), None) => finished.exit,
    };
    match exit {
        Exit::Code(0) => (State::Completed, None),
        Exit::Code(code) => failed(ErrorKind::ExecutionFailed, format!("Exit code {code}")),
        Exit::Signal(signal) => failed(ErrorKind::ExecutionFailed, format!("Ended by signal {signal}")),
        Exit::TimedOut => failed(ErrorKind::Timeout, "Timed out".to_owned()),
        Exit::Cancelled => (State::Interrupted, Some((ErrorKind::Interrupted, "Stopped".to_owned()))),
    }
}

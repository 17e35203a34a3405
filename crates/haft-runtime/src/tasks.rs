//! The background tasks of a session, and the queue of those that have ended.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use haft_sandbox::OnTaskEnd;
use haft_tool::{TaskInfo, lock};
use tokio::sync::Notify;

use crate::Runtime;

/// How many ended tasks are queued; the oldest are dropped.
const MAX_QUEUED_COUNT: usize = 256;

/// Tasks that have ended and have not been returned by [`Runtime::task_ended`] yet.
#[derive(Default)]
pub(crate) struct TaskEndQueue {
    ended: Mutex<VecDeque<TaskInfo>>,
    more: Notify,
}

impl TaskEndQueue {
    /// A callback that adds to the queue.
    pub(crate) fn sender(self: &Arc<Self>) -> OnTaskEnd {
        let queue = Arc::clone(self);
        Arc::new(move |info| {
            let mut ended = lock(&queue.ended);
            if ended.len() == MAX_QUEUED_COUNT {
                ended.pop_front();
            }
            ended.push_back(info);
            drop(ended);
            queue.more.notify_one();
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
    /// Waits until a task has ended and returns it. Each task is returned once, also if it ended before this call.
    pub async fn task_ended(&self) -> TaskInfo {
        self.inner.env.commands.task_ends.next().await
    }

    /// The session's tasks, the oldest first.
    pub fn tasks(&self) -> Vec<TaskInfo> {
        self.inner.env.commands.tasks.list()
    }
}

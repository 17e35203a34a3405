//! The tasks of a session, and the news of their ends.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use haft_sandbox::OnTaskEnd;
use haft_tool::{TaskInfo, lock};
use tokio::sync::Notify;

use crate::Runtime;

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

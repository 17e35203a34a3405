//! Work on many things, divided over a few threads.

/// Fewer things than this are faster done than divided.
const WORTH_DIVIDING: usize = 512;
/// No faster with more: the disk and the other calls have a word, too.
const MOST_THREADS: usize = 4;

/// Does `work` on all of `things`, a stretch per thread. The results come in the order of the stretches; a stretch whose
/// thread broke down has none.
pub(super) fn divide<T: Send, R: Send>(
    mut things: Vec<T>,
    work: impl Fn(Vec<T>) -> R + Sync,
) -> Vec<Option<R>> {
    // To ask for processors takes as long as to look at a hundred files, so that is left for when there are many.
    let cores = match things.len() {
        ..WORTH_DIVIDING => 1,
        _ => std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS),
    };
    if cores < 2 {
        return vec![Some(work(things))];
    }
    let each = things.len().div_ceil(cores);
    let work = &work;
    std::thread::scope(|scope| {
        let mut others = Vec::with_capacity(cores);
        while things.len() > each {
            let last = things.split_off((things.len() - 1) / each * each);
            others.push(scope.spawn(move || work(last)));
        }
        let first = std::iter::once(Some(work(things)));
        first.chain(others.into_iter().rev().map(|thread| thread.join().ok())).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thing_is_done_once_and_in_order() {
        for count in [0, 1, WORTH_DIVIDING - 1, WORTH_DIVIDING, 4 * WORTH_DIVIDING + 3] {
            let things: Vec<usize> = (0..count).collect();
            let done = divide(things.clone(), |stretch| stretch);
            let done: Vec<usize> = done.into_iter().flatten().flatten().collect();
            assert_eq!(done, things);
        }
    }
}

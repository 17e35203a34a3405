//! Puts the filter's program together, as short as it gets: the kernel translates it anew for every command.

/// The program that does with each call what its body says. Calls without a body just run, those above `newest` are
/// not there.
pub(super) fn assemble(mut calls: Vec<(u32, Vec<libc::sock_filter>)>, newest: u32) -> Vec<libc::sock_filter> {
    #[cfg(target_arch = "x86_64")]
    const ARCH: u32 = 0xc000_003e;
    #[cfg(target_arch = "aarch64")]
    const ARCH: u32 = 0xc000_00b7;
    calls.sort_by_key(|(number, _)| *number);
    let mut program = Backwards::default();
    let stretches = stretches(calls, newest, &mut program);
    let first = program.choose(&stretches);
    program.go_to(first);
    program.push(load(0));
    program.push(ret(libc::SECCOMP_RET_KILL_PROCESS));
    program.push(jump(libc::BPF_JEQ, ARCH, 1, 0));
    program.push(load(4));
    program.0.reverse();
    program.0
}

/// The first number of calls that are treated alike, and where that is done.
type Stretch = (u32, usize);

/// All numbers there are, by what is done with them. Each body is in the program once.
fn stretches(
    calls: Vec<(u32, Vec<libc::sock_filter>)>,
    newest: u32,
    program: &mut Backwards,
) -> Vec<Stretch> {
    let mut places: Vec<(Vec<libc::sock_filter>, usize)> = Vec::new();
    let mut place = |body: Vec<libc::sock_filter>| {
        if let Some((_, place)) = places.iter().find(|(known, _)| same(known, &body)) {
            return *place;
        }
        body.iter().rev().for_each(|step| program.push(*step));
        places.push((body, program.last()));
        program.last()
    };
    let run = place(vec![ret(libc::SECCOMP_RET_ALLOW)]);
    let mut all: Vec<Stretch> = vec![(0, run)];
    for (number, body) in calls {
        let body = place(body);
        // Of two bodies for one call the first counts.
        if all.last().is_some_and(|(next, _)| *next <= number) {
            all.retain(|(first, _)| *first != number);
            all.extend([(number, body), (number + 1, run)]);
        }
    }
    let missing = place(vec![ret(libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned())]);
    all.retain(|(first, _)| *first <= newest);
    all.push((newest + 1, missing));
    all.dedup_by_key(|(_, place)| *place);
    all
}

fn same(one: &[libc::sock_filter], other: &[libc::sock_filter]) -> bool {
    let parts = |step: &libc::sock_filter| (step.code, step.jt, step.jf, step.k);
    one.iter().map(parts).eq(other.iter().map(parts))
}

/// A program with its last step first: a jump leads forward, so where it leads to is known when it is made.
#[derive(Default)]
struct Backwards(Vec<libc::sock_filter>);

impl Backwards {
    fn push(&mut self, step: libc::sock_filter) {
        self.0.push(step);
    }

    fn last(&self) -> usize {
        self.0.len().saturating_sub(1)
    }

    /// Halves the numbers until one stretch is left, and gives where that begins. When a filter is put on, the kernel
    /// tries it on every call there is, so a long list of questions would cost each command half a millisecond.
    fn choose(&mut self, stretches: &[Stretch]) -> usize {
        let (low, high) = match stretches {
            [(_, place)] => return *place,
            _ => stretches.split_at(stretches.len() / 2),
        };
        let from = high[0].0;
        let above = self.choose(high);
        let below = self.choose(low);
        let above = self.within_reach(above);
        let below = self.within_reach(below);
        let distance = |place: usize| u8::try_from(self.0.len() - place - 1).unwrap_or_default();
        self.push(jump(libc::BPF_JGE, from, distance(above), distance(below)));
        self.last()
    }

    /// A place that a question asked next can lead to: this one, or a step from where it goes on to it.
    fn within_reach(&mut self, place: usize) -> usize {
        // Less than 255, for there may be one more such step in between.
        if self.0.len() - place < 250 {
            return place;
        }
        self.go_to(place);
        self.last()
    }

    /// Goes on at `place`.
    fn go_to(&mut self, place: usize) {
        let steps = self.0.len() - place - 1;
        if steps > 0 {
            self.push(statement(libc::BPF_JMP | libc::BPF_JA, u32::try_from(steps).unwrap_or_default()));
        }
    }
}

/// Where the low half of an argument stands in what the filter sees.
pub(super) const fn argument_at(index: u32) -> u32 {
    16 + index * 8
}

pub(super) fn load(at: u32) -> libc::sock_filter {
    statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at)
}

pub(super) fn and(mask: u32) -> libc::sock_filter {
    statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, mask)
}

pub(super) fn ret(action: u32) -> libc::sock_filter {
    statement(libc::BPF_RET | libc::BPF_K, action)
}

fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: u16::try_from(code).unwrap_or_default(), jt: 0, jf: 0, k }
}

pub(super) fn jump(test: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    let code = u16::try_from(libc::BPF_JMP | test | libc::BPF_K).unwrap_or_default();
    libc::sock_filter { code, jt, jf, k }
}

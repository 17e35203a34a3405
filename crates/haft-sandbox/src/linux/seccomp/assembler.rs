//! Assembles the BPF program of the filter. It is kept short, because the kernel compiles it for every command.

#[cfg(target_arch = "x86_64")]
pub(super) const AUDIT_ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub(super) const AUDIT_ARCH: u32 = 0xc000_00b7;
/// Offset of the call number in `seccomp_data`.
const NUMBER_OFFSET: u32 = 0;
/// Offset of the architecture in `seccomp_data`.
const ARCH_OFFSET: u32 = 4;
/// Conditional jumps reach 255 instructions; one more jump may be added in between.
const MAX_JUMP: usize = 250;

/// A program that runs the body of each listed call. Other calls are allowed; those above `last_known` fail with ENOSYS.
pub(super) fn assemble(
    mut calls: Vec<(u32, Vec<libc::sock_filter>)>,
    last_known: u32,
) -> Vec<libc::sock_filter> {
    calls.sort_by_key(|(number, _)| *number);
    let mut program = ReversedProgram::default();
    let ranges = ranges(calls, last_known, &mut program);
    let first = program.dispatch(&ranges);
    program.go_to(first);
    program.push(load(NUMBER_OFFSET));
    program.push(ret(libc::SECCOMP_RET_KILL_PROCESS));
    program.push(jump(libc::BPF_JEQ, AUDIT_ARCH, 1, 0));
    program.push(load(ARCH_OFFSET));
    program.0.reverse();
    program.0
}

/// The first number of a range of calls with the same body, and the position of the body.
type CallRange = (u32, usize);

/// All call numbers as ranges. Each distinct body is in the program once.
fn ranges(
    calls: Vec<(u32, Vec<libc::sock_filter>)>,
    last_known: u32,
    program: &mut ReversedProgram,
) -> Vec<CallRange> {
    let mut places: Vec<(Vec<libc::sock_filter>, usize)> = Vec::new();
    let mut place = |body: Vec<libc::sock_filter>| {
        if let Some((_, place)) = places.iter().find(|(known, _)| same(known, &body)) {
            return *place;
        }
        body.iter().rev().for_each(|step| program.push(*step));
        places.push((body, program.last()));
        program.last()
    };
    let allow = place(vec![ret(libc::SECCOMP_RET_ALLOW)]);
    let mut all: Vec<CallRange> = vec![(0, allow)];
    for (number, body) in calls {
        let body = place(body);
        // If a call is listed twice, the first body counts.
        if all.last().is_some_and(|(next, _)| *next <= number) {
            all.retain(|(first, _)| *first != number);
            all.extend([(number, body), (number + 1, allow)]);
        }
    }
    let missing = place(vec![ret(libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned())]);
    all.retain(|(first, _)| *first <= last_known);
    all.push((last_known + 1, missing));
    all.dedup_by_key(|(_, place)| *place);
    all
}

fn same(one: &[libc::sock_filter], other: &[libc::sock_filter]) -> bool {
    let parts = |step: &libc::sock_filter| (step.code, step.jt, step.jf, step.k);
    one.iter().map(parts).eq(other.iter().map(parts))
}

/// A program in reverse order: jumps lead forward, so their targets are known when they are added.
#[derive(Default)]
struct ReversedProgram(Vec<libc::sock_filter>);

impl ReversedProgram {
    fn push(&mut self, step: libc::sock_filter) {
        self.0.push(step);
    }

    fn last(&self) -> usize {
        self.0.len().saturating_sub(1)
    }

    /// Adds a binary search over the ranges, and returns its position. When a filter is installed, the kernel runs it for
    /// every call number, so a linear search would cost each command half a millisecond.
    fn dispatch(&mut self, ranges: &[CallRange]) -> usize {
        let (low, high) = match ranges {
            [(_, place)] => return *place,
            _ => ranges.split_at(ranges.len() / 2),
        };
        let from = high[0].0;
        let above = self.dispatch(high);
        let below = self.dispatch(low);
        let above = self.within_reach(above);
        let below = self.within_reach(below);
        let distance = |place: usize| u8::try_from(self.0.len() - place - 1).unwrap_or_default();
        self.push(jump(libc::BPF_JGE, from, distance(above), distance(below)));
        self.last()
    }

    /// A position that the next conditional jump can reach: `place` itself, or an unconditional jump to it.
    fn within_reach(&mut self, place: usize) -> usize {
        if self.0.len() - place < MAX_JUMP {
            return place;
        }
        self.go_to(place);
        self.last()
    }

    /// Adds an unconditional jump to `place`.
    fn go_to(&mut self, place: usize) {
        let steps = self.0.len() - place - 1;
        if steps > 0 {
            self.push(statement(libc::BPF_JMP | libc::BPF_JA, u32::try_from(steps).unwrap_or_default()));
        }
    }
}

/// Offset of the low half of an argument in `seccomp_data`.
pub(super) const fn argument_offset(index: u32) -> u32 {
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

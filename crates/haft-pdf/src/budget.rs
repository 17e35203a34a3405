//! The bound on the work that one document causes: every loop whose length a file controls spends from it.

use std::cell::Cell;

use crate::{PdfError, PdfOptions};

/// Steps between two calls of `is_cancelled`.
const STEPS_PER_CHECK: u64 = 4_096;
/// Bytes that are parsed for the price of one step.
const PARSED_BYTES_PER_STEP: u64 = 8;
/// Bytes that are searched or decoded for the price of one step.
const SCANNED_BYTES_PER_STEP: u64 = 64;

pub(crate) struct WorkBudget<'a> {
    steps_left: Cell<u64>,
    bytes_left: Cell<u64>,
    steps_since_check: Cell<u64>,
    is_cancelled: &'a dyn Fn() -> bool,
}

impl<'a> WorkBudget<'a> {
    pub(crate) fn new(options: PdfOptions<'a>) -> Self {
        Self {
            steps_left: Cell::new(options.max_steps),
            bytes_left: Cell::new(options.max_decoded_bytes),
            steps_since_check: Cell::new(0),
            is_cancelled: options.is_cancelled,
        }
    }

    pub(crate) fn spend(&self, steps: u64) -> Result<(), PdfError> {
        self.steps_left.set(self.steps_left.get().checked_sub(steps).ok_or(PdfError::LimitExceeded)?);
        let since_check = self.steps_since_check.get() + steps;
        if since_check < STEPS_PER_CHECK {
            self.steps_since_check.set(since_check);
            return Ok(());
        }
        self.steps_since_check.set(0);
        if (self.is_cancelled)() { Err(PdfError::Cancelled) } else { Ok(()) }
    }

    pub(crate) fn spend_parsed(&self, bytes: usize) -> Result<(), PdfError> {
        self.spend(1 + bytes as u64 / PARSED_BYTES_PER_STEP)
    }

    pub(crate) fn spend_searched(&self, bytes: usize) -> Result<(), PdfError> {
        self.spend(1 + bytes as u64 / SCANNED_BYTES_PER_STEP)
    }

    /// Spends what the output of a filter costs.
    pub(crate) fn spend_decoded(&self, bytes: usize) -> Result<(), PdfError> {
        self.bytes_left.set(self.bytes_left.get().checked_sub(bytes as u64).ok_or(PdfError::LimitExceeded)?);
        self.spend_searched(bytes)
    }
}

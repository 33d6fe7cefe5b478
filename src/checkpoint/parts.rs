//! Cuts the jobs of large dense matrices into jobs of some rows each, for backends that want them so: a device
//! with memory of its own can take an embedding of half a gigabyte without the host ever holding it whole.

use super::names;
use super::plan::{Coding, Form, Job, Recipe, RowOrder};

/// Rows of a part are a multiple of this, so that what some rows share is whole.
const ROW_ALIGN: usize = 64;

/// The same jobs, those of matrices that keep more than `part_bytes` cut.
pub(super) fn cut(jobs: Vec<Job>, part_bytes: Option<usize>) -> Vec<Job> {
    match part_bytes {
        None => jobs,
        Some(part_bytes) => jobs.into_iter().flat_map(|job| cut_job(job, part_bytes)).collect(),
    }
}

fn cut_job(job: Job, part_bytes: usize) -> Vec<Job> {
    let Some((rows, row_bytes)) = divisible_rows(&job) else {
        return vec![job];
    };
    let kept_row = job.form.resident_bytes().div_ceil(rows as u64).max(1);
    let part_rows = ((part_bytes as u64 / kept_row) as usize / ROW_ALIGN * ROW_ALIGN).max(ROW_ALIGN);
    if part_rows >= rows {
        return vec![job];
    }
    (0..rows)
        .step_by(part_rows)
        .map(|first| {
            let count = part_rows.min(rows - first);
            let mut part = job.clone();
            part.offset += (first * row_bytes) as u64;
            part.bytes = (count * row_bytes) as u64;
            part.more_rows = first + count < rows;
            if let Form::Matrix { rows, .. } = &mut part.form {
                *rows = count;
            }
            part
        })
        .collect()
}

/// Rows, and the bytes of one in the file, of a matrix whose rows come one after another and stand for
/// themselves.
fn divisible_rows(job: &Job) -> Option<(usize, usize)> {
    let Form::Matrix { rows, cols, order: RowOrder::AsStored, coding } = job.form else {
        return None;
    };
    let (Coding::Dense(encoding)
    | Coding::ToF16(encoding)
    | Coding::ToInt8(encoding)
    | Coding::ToInt4(encoding)) = coding
    else {
        return None;
    };
    let is_plain = job.recipe == Recipe::Plain && names::is_matrix(job.role);
    let row_bytes = encoding.row_bytes(cols)?;
    (is_plain && rows > 0 && job.bytes == rows as u64 * row_bytes as u64).then_some((rows, row_bytes))
}

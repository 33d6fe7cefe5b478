//! Walks through the data of a weights file and hands every tensor's bytes to its sink.

use super::assembly::Assembly;
use super::entry::cut_short;
use super::plan::Job;
use super::sink::TensorSink;
use crate::Result;
use crate::error::corrupt;

/// Where in a file's data the reader is.
pub(super) struct Walk {
    jobs: std::vec::IntoIter<Job>,
    /// The tensor that `position` is in or before.
    next: Option<Job>,
    sink: Option<TensorSink>,
    position: u64,
    /// The end of the last tensor.
    end: u64,
    /// No byte may come after this one.
    padded_end: u64,
}

impl Walk {
    /// `jobs` in the order of their data, `position` the place of the first byte that will be pushed.
    pub fn new(jobs: Vec<Job>, position: u64, end: u64, padded_end: u64) -> Self {
        let mut jobs = jobs.into_iter();
        Self { next: jobs.next(), jobs, sink: None, position, end, padded_end }
    }

    /// Takes the next bytes; returns how many tensors they completed.
    pub fn push(&mut self, mut bytes: &[u8], assembly: &mut Assembly) -> Result<usize> {
        let mut completed = 0;
        while !bytes.is_empty() {
            let Some(job) = &self.next else {
                self.position += bytes.len() as u64;
                break;
            };
            if self.position < job.offset {
                let skipped = (job.offset - self.position).min(bytes.len() as u64);
                self.position += skipped;
                bytes = &bytes[skipped as usize..];
                continue;
            }
            let left = job.offset + job.bytes - self.position;
            let taken = left.min(bytes.len() as u64);
            let named = |error: crate::Error| error.in_tensor(&job.name);
            let sink = match &mut self.sink {
                Some(sink) => sink,
                none => none.insert(TensorSink::open(job.form).map_err(named)?),
            };
            sink.push(&bytes[..taken as usize]).map_err(named)?;
            self.position += taken;
            bytes = &bytes[taken as usize..];
            if taken < left {
                continue;
            }
            if let Some(sink) = self.sink.take() {
                assembly.add(job, sink.finish().map_err(named)?)?;
            }
            completed += usize::from(!job.more_rows);
            self.next = self.jobs.next();
        }
        if self.position > self.padded_end {
            return Err(corrupt!(
                "the file goes on after its last tensor: it is damaged, or its blocks have another size \
                 than its types say"
            ));
        }
        Ok(completed)
    }

    /// Bytes up to the end of the tensor that comes next, or is being read.
    pub fn until_tensor_end(&self) -> Option<u64> {
        self.next.as_ref().map(|job| job.offset + job.bytes - self.position)
    }

    /// Checks that all data came, `received` bytes of the file in all.
    pub fn finish(self, received: u64) -> Result<()> {
        match received < self.end {
            true => Err(cut_short(received, self.end)),
            false => Ok(()),
        }
    }
}

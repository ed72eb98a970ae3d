//! `quelea bench disk`: a bare append-and-fdatasync loop over pre-zeroed, recycled files: what the
//! disk gives at best to a log that writes batches of the given size.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::args::DiskArgs;
use crate::clock::{now_ns, seconds_between, seconds_to_ns};
use crate::device::Device;
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::latency::{Latencies, Percentiles};
use crate::report::{percentiles, publish};
use crate::units::thousands;

const SEGMENTS_MAX: u32 = 1_024;
const SEGMENT_BYTES_MAX: usize = 1 << 30;
const ZEROS_BYTES: usize = 1 << 20;

/// What the disk did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct DiskReport {
    /// Bytes of each append.
    pub batch_bytes: usize,
    /// Seconds measured.
    pub seconds: f64,
    /// Appends, each with its fdatasync.
    pub batches: u64,
    /// Appends a second.
    pub batches_per_s: f64,
    /// 10^6 bytes appended a second.
    pub megabytes_per_s: f64,
    /// Of write and fdatasync together.
    pub latency: Percentiles,
    /// Bytes that reached the device for each byte appended, if its counters can be read.
    pub written_per_byte: Option<f64>,
}

/// Files of zeros that vanish with the value.
#[derive(Debug)]
struct Segments {
    files: Vec<(PathBuf, File)>,
    bytes: usize,
}

pub(crate) fn run(args: &DiskArgs) -> Result<(), BenchError> {
    check(args)?;
    let interrupt = Interrupt::install();
    let segments = Segments::create(&args.dir, args.segments, args.segment_bytes)?;
    let report = measure(args, &segments, &interrupt)?;
    drop(segments);
    publish(&to_text(args, &report), &report, args.json.as_deref())
}

fn check(args: &DiskArgs) -> Result<(), BenchError> {
    let refuse = |words: &str| Err(BenchError::Arguments(words.to_owned()));
    if args.segments == 0 || args.segments > SEGMENTS_MAX {
        return refuse("--segments takes 1 to 1,024");
    }
    if args.batch_bytes == 0 || args.batch_bytes > args.segment_bytes {
        return refuse("--batch-bytes takes 1 byte to the size of a segment");
    }
    if args.segment_bytes > SEGMENT_BYTES_MAX {
        return refuse("--segment-bytes takes at most 1 GiB");
    }
    Ok(())
}

impl Segments {
    /// Fills the files with zeros and syncs them, so that the loop meets neither allocation nor
    /// unwritten extents.
    fn create(dir: &Path, count: u32, bytes: usize) -> Result<Self, BenchError> {
        let mut segments = Self { files: Vec::new(), bytes };
        let zeros = vec![0; ZEROS_BYTES];
        for number in 0..count {
            let name = format!("quelea-bench-disk-{}-{number}", std::process::id());
            let path = dir.join(name);
            let result = create_zeroed(&path, bytes, &zeros);
            let error =
                |source| BenchError::File { doing: "cannot create", path: path.clone(), source };
            segments.files.push((path.clone(), result.map_err(error)?));
        }
        Ok(segments)
    }
}

fn create_zeroed(path: &Path, bytes: usize, zeros: &[u8]) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let mut offset = 0;
    while offset < bytes {
        let step = zeros.len().min(bytes - offset);
        file.write_all_at(&zeros[..step], offset as u64)?;
        offset += step;
    }
    file.sync_all()?;
    Ok(file)
}

impl Drop for Segments {
    fn drop(&mut self) {
        for (path, _) in &self.files {
            // A file that cannot be removed is left; its name says whose it was.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn measure(
    args: &DiskArgs,
    segments: &Segments,
    interrupt: &Interrupt,
) -> Result<DiskReport, BenchError> {
    let device = Device::below(&args.dir).ok();
    let batch: Vec<u8> =
        (0..args.batch_bytes as u64).map(|i| (i.wrapping_mul(0x9E37_79B9) >> 24) as u8).collect();
    let before = device.as_ref().and_then(Device::sample);
    let start = now_ns();
    let end = start + seconds_to_ns(args.duration_s);
    let mut latencies = Latencies::new();
    let (mut segment, mut offset, mut batches) = (0, 0, 0_u64);
    let mut now = start;
    while now < end && !interrupt.is_set() {
        if offset + batch.len() > segments.bytes {
            segment = (segment + 1) % segments.files.len();
            offset = 0;
        }
        let (path, file) = &segments.files[segment];
        file.write_all_at(&batch, offset as u64).and_then(|()| file.sync_data()).map_err(
            |source| BenchError::File {
                doing: "cannot write and sync",
                path: path.clone(),
                source,
            },
        )?;
        offset += batch.len();
        batches += 1;
        let done = now_ns();
        latencies.record_since(now, done);
        now = done;
    }
    let seconds = seconds_between(start, now).max(1e-9);
    let appended = batches as f64 * batch.len() as f64;
    let after = device.as_ref().and_then(Device::sample);
    Ok(DiskReport {
        batch_bytes: batch.len(),
        seconds,
        batches,
        batches_per_s: batches as f64 / seconds,
        megabytes_per_s: appended / seconds / 1e6,
        latency: latencies.percentiles(),
        written_per_byte: before
            .zip(after)
            .map(|(before, after)| after.since(before).written_bytes as f64 / appended.max(1.0)),
    })
}

fn to_text(args: &DiskArgs, report: &DiskReport) -> String {
    let mut text = format!(
        "{}: {} B appended and synced at a time, {} pre-zeroed files of {} MiB\n",
        args.dir.display(),
        thousands(report.batch_bytes as f64),
        args.segments,
        args.segment_bytes >> 20
    );
    text += &format!(
        "  {} batches in {:.1} s, {}/s, {:.1} MB/s\n",
        thousands(report.batches as f64),
        report.seconds,
        thousands(report.batches_per_s),
        report.megabytes_per_s
    );
    text += &format!("  latency    {}\n", percentiles(&report.latency));
    if let Some(ratio) = report.written_per_byte {
        text += &format!("  device     {ratio:.2} x the bytes appended\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(dir: PathBuf) -> DiskArgs {
        DiskArgs {
            dir,
            batch_bytes: 3_000,
            duration_s: 0.02,
            segments: 2,
            segment_bytes: 8_192,
            json: None,
        }
    }

    #[test]
    fn the_loop_recycles_its_files_and_leaves_none_behind() {
        let dir = std::env::temp_dir().join(format!("quelea-bench-test-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let args = args(dir.clone());
        let segments = Segments::create(&dir, args.segments, args.segment_bytes).unwrap();
        for (_, file) in &segments.files {
            assert_eq!(file.metadata().unwrap().len(), 8_192);
        }
        let report = measure(&args, &segments, &Interrupt::default()).unwrap();
        assert!(report.batches >= 1 && report.latency.count == report.batches);
        drop(segments);
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
        std::fs::remove_dir(&dir).unwrap();
    }

    #[test]
    fn a_batch_must_fit_into_a_segment() {
        let args = DiskArgs { batch_bytes: 9_000, ..args(PathBuf::from("/nowhere")) };
        assert!(check(&args).unwrap_err().to_string().contains("--batch-bytes"));
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = Segments::create(Path::new("/nowhere/at/all"), 1, 1).unwrap_err().to_string();
        assert!(error.contains("cannot create /nowhere/at/all/quelea-bench-disk"), "{error}");
    }
}
